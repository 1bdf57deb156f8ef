// Reads the tools of a server for the headers of calls: once for all calls that need them at the same time, and not as
// often as a server may refuse calls.

import { noClient } from '../../protocol/seams.ts'
import { deadline } from '../../time/clock.ts'
import { createListBudget, maxPages } from '../rpc/list-budget.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { RpcClient } from '../rpc/rpc-client.ts'
import type { LinkContext } from '../rpc/transport.ts'
import type { ParamHeaderCache } from './param-header-cache.ts'

export interface ToolReader {
  /** How often they were read to the end. */
  readonly count: number
  /** Never rejects. Undefined where it is not time yet. */
  read(): Promise<void> | undefined
}

/** From the start of one reading to the next: a refusal costs the server a few bytes, and us a whole list. */
const everyMs = 1_000

export function createToolReader(
  { name, connectMs }: Pick<UpstreamDefinition, 'name' | 'connectMs'>,
  { clock, log }: Pick<LinkContext, 'clock' | 'log'>,
  rpc: RpcClient,
  paramHeaders: ParamHeaderCache
): ToolReader {
  let count = 0
  let reading: Promise<void> | undefined
  let begunAt = -Infinity

  async function readTools(): Promise<void> {
    const limit = deadline(clock, connectMs, undefined)
    const budget = createListBudget()
    const cursors = new Set<unknown>()
    try {
      for (let cursor: unknown; ;) {
        const request = cursor === undefined ? { method: 'tools/list' } : { method: 'tools/list', params: { cursor } }
        const result = await rpc.request(request, noClient, limit.signal)
        paramHeaders.learn(result, cursor)
        const { tools, nextCursor } = result
        const within = !Array.isArray(tools) || tools.every(budget.spend)
        if (typeof nextCursor !== 'string' || cursors.has(nextCursor) || cursors.size + 1 >= maxPages || !within) {
          paramHeaders.stop(nextCursor)
          count++
          return
        }
        cursors.add((cursor = nextCursor))
      }
    } catch (err) {
      log.warn({ err, upstream: name }, 'the tools of the upstream could not be read for the headers of calls')
    } finally {
      limit.close()
    }
  }

  return {
    get count() {
      return count
    },
    read() {
      if (reading !== undefined) return reading
      // A clock that was set back must not stop the reading.
      const passedMs = clock.now() - begunAt
      if (passedMs >= 0 && passedMs < everyMs) return undefined
      begunAt = clock.now()
      return (reading = readTools().finally(() => {
        reading = undefined
      }))
    }
  }
}
