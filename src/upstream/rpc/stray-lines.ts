// Lines on the standard output of servers that are no MCP messages, which the specification forbids. The first one of a
// server is logged; later ones are counted, and the count is logged from time to time.

import type { StdioDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { Clock } from '../../time/clock.ts'

/** The time between two log lines about one server; also after its last stray line, until it counts as quiet. */
const quietMs = 600_000
/** The most servers that are counted; beyond, the one that was added first is dropped. */
const maxServers = 1_000

interface Stray {
  lines: number
  /** How many of them were not logged yet. */
  untold: number
  toldAt: number
  lastAt: number
}

type Server = Pick<StdioDefinition, 'tenant' | 'name'>

export type StrayLines = ReturnType<typeof createStrayLines>

export function createStrayLines(clock: Pick<Clock, 'now'>) {
  const known = new Map<string, Stray>()
  const keyOf = ({ tenant, name }: Server): string => `${tenant}/${name}`

  function begun(key: string): Stray {
    const [oldest] = known.keys()
    if (known.size >= maxServers && oldest !== undefined) known.delete(oldest)
    const stray = { lines: 0, untold: 0, toldAt: -Infinity, lastAt: -Infinity }
    known.set(key, stray)
    return stray
  }

  return {
    /** @param fields called only if a line is logged */
    note(server: Server, log: Log, fields: () => object): void {
      const now = clock.now()
      const stray = known.get(keyOf(server)) ?? begun(keyOf(server))
      stray.lines = now - stray.lastAt < quietMs ? stray.lines + 1 : 1
      stray.lastAt = now
      stray.untold++
      if (now - stray.toldAt < quietMs) return
      const text = 'left out a line of the upstream that is no message: its log belongs on its standard error'
      log.warn({ upstream: server.name, ...fields(), lines: stray.untold }, text)
      stray.untold = 0
      stray.toldAt = now
    },
    /** The number of stray lines of a server; 0 once it counts as quiet. */
    of(server: Server): number {
      const stray = known.get(keyOf(server))
      return stray !== undefined && clock.now() - stray.lastAt < quietMs ? stray.lines : 0
    }
  }
}
