// Logs connections to upstreams that end by themselves. The first one of an upstream is logged at once, later ones are
// counted and logged once a minute: a server that dies ends a connection of each session.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { Clock } from '../../time/clock.ts'
import { withoutRequest } from '../rpc/errors.ts'

/** Between two lines of the log about one upstream. */
const tellMs = 60_000

type Server = Pick<UpstreamDefinition, 'tenant' | 'name'>

export function createLostConnections(clock: Clock, log: Log) {
  /** The upstreams logged within the last minute: how many more connections ended since, and why the last one did. */
  const told = new Map<string, { more: number; reason: string }>()

  function tellLater(key: string, { tenant, name: upstream }: Server): void {
    const tell = (): void => {
      const { more: connections = 0, reason } = told.get(key) ?? {}
      told.delete(key)
      if (connections === 0) return
      const fields = { upstream, tenant, reason, connections, withinMs: tellMs }
      log.warn(fields, 'more connections to the upstream ended')
      told.set(key, { more: 0, reason: '' })
      tellLater(key, { tenant, name: upstream })
    }
    clock.timer(tellMs, tell).unref()
  }

  return {
    note({ tenant, name }: Server, { message }: Error): void {
      const key = `${tenant}/${name}`
      const reason = withoutRequest(message)
      const known = told.get(key)
      if (known !== undefined) return void Object.assign(known, { more: known.more + 1, reason })
      log.warn({ upstream: name, tenant, reason }, 'a connection to the upstream ended')
      told.set(key, { more: 0, reason })
      tellLater(key, { tenant, name })
    }
  }
}
