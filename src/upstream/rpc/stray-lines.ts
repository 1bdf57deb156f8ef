// Lines that servers write to standard output among their messages, although nothing else may stand there: told once of
// each server, then counted, and told again once in a while as long as they go on.

import type { StdioDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { Clock } from '../../time/clock.ts'

/** Between two lines of the log about one server; and since its last stray line, until it counts as quiet. */
const quietMs = 600_000
/** Beyond it, the one that is known for longest is forgotten. */
const maxServers = 1_000

interface Stray {
  lines: number
  /** Of these, how many the log does not know of. */
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
    /** @param fields called only for what is logged */
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
    /** How many, where it still writes some. */
    of(server: Server): number {
      const stray = known.get(keyOf(server))
      return stray !== undefined && clock.now() - stray.lastAt < quietMs ? stray.lines : 0
    }
  }
}
