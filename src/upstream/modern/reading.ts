// Reading the tools of a server for the headers of calls: once for all who need it at the same time, and not as often as a server may
// refuse calls.

import { createBudget, maxPages } from '../budget.ts'
import { deadline } from '../clock.ts'
import { nobody } from '../exchange.ts'
import type { Log } from '../../observe/log.ts'
import type { UpstreamName } from '../../protocol/ids.ts'
import type { Clock } from '../clock.ts'
import type { Exchange } from '../exchange.ts'
import type { Schemas } from './schemas.ts'

export interface ToolReaderOptions {
  readonly name: UpstreamName
  readonly connectMs: number
  readonly clock: Clock
  readonly log: Log
  readonly schemas: Schemas
  exchange (): Exchange
}

export interface ToolReader {
  /** How often they were read to the end. */
  readonly count: number
  /** Never rejects. Undefined where it is not time yet. */
  read (): Promise<void> | undefined
}

/** From the beginning of one reading to the next: a refusal costs the server a few bytes, and us a whole list. */
const everyMs = 1_000

export function createToolReader ({ name, connectMs, clock, log, schemas, exchange }: ToolReaderOptions): ToolReader {
  let count = 0
  let reading: Promise<void> | undefined
  let begunAt = -Infinity

  async function readTools (): Promise<void> {
    const limit = deadline(clock, connectMs, undefined)
    const budget = createBudget()
    const cursors = new Set<unknown>()
    try {
      for (let cursor: unknown; ;) {
        const result = await exchange().request({ method: 'tools/list', ...cursor === undefined ? {} : { params: { cursor } } }, nobody, limit.signal)
        schemas.learn(result, cursor)
        const { tools, nextCursor } = result
        const within = !Array.isArray(tools) || tools.every(budget.spend)
        if (typeof nextCursor !== 'string' || cursors.has(nextCursor) || cursors.size + 1 >= maxPages || !within) {
          schemas.stop(nextCursor)
          count++
          return
        }
        cursors.add(cursor = nextCursor)
      }
    } catch (err) {
      log.warn({ err, upstream: name }, 'the tools of the upstream could not be read for the headers of calls')
    } finally {
      limit.close()
    }
  }

  return {
    get count () { return count },
    read () {
      if (reading !== undefined) return reading
      // A clock that was set back must not stop the reading.
      const passedMs = clock.now() - begunAt
      if (passedMs >= 0 && passedMs < everyMs) return undefined
      begunAt = clock.now()
      return reading = readTools().finally(() => { reading = undefined })
    }
  }
}
