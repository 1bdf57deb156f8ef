// The log level that legacy servers are asked for: one per connection, while its callers may want different ones.

import type { Log } from '../observe/log.ts'
import { moreVerbose } from '../protocol/levels.ts'
import type { LogLevel } from '../protocol/levels.ts'
import { isObject } from '../protocol/messages.ts'
import type { Upstream } from '../protocol/seams.ts'
import { nobody } from '../upstream/exchange.ts'

export interface Levels {
  /**
   * Asks the server for messages from this level on, where it has any and was not asked before. Never rejects.
   * @param shared others use the connection too: it says as much as the most curious of them wants, and each caller's own
   * filter does the rest. That stays until the connection ends: nobody says when a caller has lost interest.
   */
  set (upstream: Upstream, wanted: LogLevel, shared: boolean): Promise<void>
}

export function createLevels ({ log }: { readonly log: Log }): Levels {
  const levels = new WeakMap<Upstream, LogLevel>()
  return {
    async set (upstream, wanted, shared) {
      if (!isObject(upstream.capabilities['logging'])) return
      const current = levels.get(upstream)
      const next = shared && current !== undefined ? moreVerbose(current, wanted) : wanted
      if (next === current) return
      levels.set(upstream, next)
      await upstream.request({ method: 'logging/setLevel', params: { level: next } }, nobody, AbortSignal.timeout(5_000)).catch((err: unknown) => {
        levels.delete(upstream)
        log.warn({ err, upstream: upstream.name }, 'the upstream did not take the log level; its messages are filtered here')
      })
    }
  }
}
