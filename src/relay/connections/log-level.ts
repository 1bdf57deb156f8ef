// The log level that legacy servers are asked for: one per connection, while its callers may want different ones.

import type { Log } from '../../observe/log.ts'
import { type LogLevel, moreVerboseLevel, noClient, type Upstream } from '../../protocol/seams.ts'
import { isObject } from '../../protocol/messages.ts'
import { timeoutSignal } from '../../time/clock.ts'

export type LogLevels = ReturnType<typeof createLogLevels>

const setLevelMs = 5_000

export function createLogLevels(log: Log) {
  const levels = new WeakMap<Upstream, LogLevel>()
  return {
    /**
     * Asks the server for messages from this level on, where it has any and was not asked before. Never rejects.
     * @param shared others use the connection too: it says as much as the most curious of them wants, and each caller's
     * own filter does the rest. That stays until the connection ends: nobody says when a caller has lost interest.
     */
    async set(upstream: Upstream, wanted: LogLevel, shared: boolean) {
      if (!isObject(upstream.capabilities['logging'])) return
      const current = levels.get(upstream)
      const next = shared && current !== undefined ? moreVerboseLevel(current, wanted) : wanted
      if (next === current) return
      levels.set(upstream, next)
      await upstream
        .request({ method: 'logging/setLevel', params: { level: next } }, noClient, timeoutSignal(setLevelMs))
        .catch((err: unknown) => {
          levels.delete(upstream)
          log.warn(
            { err, upstream: upstream.name },
            'the upstream did not take the log level; its messages are filtered here'
          )
        })
    }
  }
}
