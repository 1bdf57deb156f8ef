// Checks everybody with an open stream or call again: with every heartbeat, when a token expires, and after a reload.

import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/messages.ts'
import { createOpenSet } from '../limits/open-set.ts'
import { every, type Clock, type Timer } from '../time/clock.ts'
import { nextTurn } from '../time/turns.ts'
import type { Credential } from './admission.ts'

/** Streams that are checked in one turn of the event loop, at some 50 us each. */
const checkedPerTurn = 64

/** A stream or a call that is open. */
export interface RevalidationTarget {
  /** A newer token of the same caller may take the place of the one before. */
  readonly credential: Credential
  /** Checks whether the session exists. Loading a session keeps it alive, as it should: its client is listening. */
  sessionExists?(): Promise<boolean>
  /** Keeps proxies from cutting a quiet connection. */
  beat(): void
  onValid?(): void
  /** Called where the caller would not be let in now. May be called more than once. */
  onInvalid(): void
}

interface Watch {
  readonly target: RevalidationTarget
  expiry: Timer | undefined
  ended: boolean
}

export type Revalidator = ReturnType<typeof createRevalidator>

/**
 * Checks callers again with every heartbeat, when their token expires, and when the configuration changed: whoever was
 * let in once would stay in for as long as the connection lasts. One heartbeat for all, not a timer each.
 */
export function createRevalidator(clock: Clock, intervalMs: number, log: Log) {
  const watches = createOpenSet<Watch>()
  let closed = false
  const heartbeat = every(
    clock,
    intervalMs,
    () =>
      void inTurns((watch) => {
        watch.target.beat()
        void revalidate(watch)
        armExpiry(watch)
      })
  )

  /** Thousands in one turn of the event loop would hold up everybody. */
  async function inTurns(run: (watch: Watch) => void): Promise<void> {
    let count = 0
    for (const watch of [...watches]) {
      if (count > 0 && count % checkedPerTurn === 0) await nextTurn()
      if (closed) return
      if (watch.ended) continue
      count++
      run(watch)
    }
  }

  function revalidate(watch: Watch): Promise<void> {
    return isStillValid(watch.target).then(
      (valid) => {
        if (watch.ended) return
        if (valid) watch.target.onValid?.()
        else watch.target.onInvalid()
      },
      (err: unknown) => log.debug({ err }, 'a caller with an open stream could not be checked again; next time')
    )
  }

  /** Only when the expiry is near: most calls are over long before their tokens. */
  function armExpiry(watch: Watch): void {
    const leftMs = watch.target.credential.validUntil - clock.now()
    if (watch.expiry !== undefined || leftMs > intervalMs) return
    watch.expiry = clock.timer(Math.max(0, leftMs) + 1, () => {
      watch.expiry = undefined
      if (clock.now() >= watch.target.credential.validUntil) watch.target.onInvalid()
      else armExpiry(watch) // A newer token came.
    })
  }

  return {
    intervalMs,
    /** @returns how to stop */
    watch(target: RevalidationTarget): () => void {
      const watch: Watch = { target, expiry: undefined, ended: false }
      const remove = watches.add(watch)
      armExpiry(watch)
      return () => {
        watch.ended = true
        remove()
        watch.expiry?.close()
      }
    },
    /**
     * Those that cannot be checked now, as the store is away, are checked again with the next heartbeat. Never rejects.
     */
    async revalidateAll(): Promise<void> {
      const checks: Array<Promise<void>> = []
      await inTurns((watch) => checks.push(revalidate(watch)))
      await Promise.all(checks)
    },
    close(): void {
      closed = true
      heartbeat.close()
    }
  }
}

async function isStillValid({ credential, sessionExists }: RevalidationTarget): Promise<boolean> {
  try {
    await credential.revalidate()
    return sessionExists === undefined || (await sessionExists())
  } catch (error) {
    if (error instanceof GatewayError && !error.row.retry) return false
    throw error
  }
}

export const noLongerAccepted = (): GatewayError =>
  new GatewayError(
    'unauthenticated',
    'The token or key of this request is no longer accepted. Whether the call took effect is unknown.',
    { data: { outcome: 'unknown' } }
  )
