// The streams that are being resumed from the store: how many of a session at once, and until when. Each holds all
// stored events of its stream in memory, for as long as its reader takes.

import { GatewayError } from '../protocol/messages.ts'

export interface ResumeLimit {
  /**
   * Runs with a signal that is aborted when the session ends, or `wanted` is aborted.
   * @throws GatewayError too_many; whatever `run` throws
   */
  run<T>(sessionKey: string, wanted: AbortSignal | undefined, run: (stop: AbortSignal) => Promise<T>): Promise<T>
  /** The session ended. */
  stop(sessionKey: string): void
  close(): void
}

const maxPerSession = 4

export function createResumeLimit(): ResumeLimit {
  const bySession = new Map<string, Set<AbortController>>()
  const stop = (sessionKey: string): void => {
    for (const resumed of bySession.get(sessionKey) ?? []) resumed.abort()
  }

  return {
    async run(sessionKey, wanted, run) {
      const running = bySession.get(sessionKey) ?? new Set<AbortController>()
      if (running.size >= maxPerSession) {
        const message =
          `This session resumes ${maxPerSession} streams at once, which is the limit. Read them ` +
          'before resuming more.'
        throw new GatewayError('too_many', message, { headers: { 'Retry-After': '1' } })
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
    close() {
      for (const sessionKey of bySession.keys()) stop(sessionKey)
    }
  }
}
