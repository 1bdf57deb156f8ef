// What is being sent to clients from the store, by session: how much at once, and until when. Each holds all that is kept of a stream in
// memory, for as long as its reader takes.

import { GatewayError } from '../protocol/errors.ts'

export interface Replays {
  /**
   * Runs with a signal that is aborted when the session ends, or `wanted` is.
   * @throws GatewayError too_many; whatever `run` throws
   */
  run<T> (sessionKey: string, wanted: AbortSignal | undefined, run: (stop: AbortSignal) => Promise<T>): Promise<T>
  /** The session ended. */
  stop (sessionKey: string): void
  close (): void
}

const maxPerSession = 4

export function createReplays (): Replays {
  const bySession = new Map<string, Set<AbortController>>()
  const stop = (sessionKey: string): void => {
    for (const replay of bySession.get(sessionKey) ?? []) replay.abort()
  }

  return {
    async run (sessionKey, wanted, run) {
      const running = bySession.get(sessionKey) ?? new Set<AbortController>()
      if (running.size >= maxPerSession) {
        throw new GatewayError('too_many', `This session resumes ${maxPerSession} streams at once, which is the limit. Read them before resuming more.`, { headers: { 'Retry-After': '1' } })
      }
      const own = new AbortController()
      bySession.set(sessionKey, running.add(own))
      try {
        return await run(wanted === undefined ? own.signal : AbortSignal.any([wanted, own.signal]))
      } finally {
        running.delete(own)
        if (running.size === 0) bySession.delete(sessionKey)
      }
    },
    stop,
    close () {
      for (const sessionKey of bySession.keys()) stop(sessionKey)
    }
  }
}
