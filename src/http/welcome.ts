// Whoever something is open for is looked at again: on every beat, when its token expires, and when the configuration changed. What was
// let in once does not stay in for as long as it likes.

import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/errors.ts'
import type { KeepAlive } from './stream.ts'
import type { Visit } from './visit.ts'

/** A caller for whom a stream or a call is open. */
export interface Guest {
  /** Rejects as the request itself would be refused now. */
  recheck (): Promise<void>
  /** Is its session there? Asking keeps the session alive: a listening client is a living one. */
  alive (): Promise<boolean>
  /** Epoch ms, leeway included; a newer token may move it. */
  validUntil (): number
  beat (): void
  onWelcome (): void
  /** It would not be let in now. May come more than once. */
  onUnwelcome (): void
}

export interface Welcome {
  /** Looks after a guest from now on. @returns how to stop */
  attend (guest: Guest): () => void
  /** Looks at every guest now. Whoever cannot be checked is looked at again with the next beat. */
  recheckAll (): void
}

export interface WelcomeOptions {
  readonly keepAlive: KeepAlive
  readonly clock: { now (): number }
  readonly log: Log
}

export function createWelcome ({ keepAlive, clock, log }: WelcomeOptions): Welcome {
  const checks = new Set<() => void>()

  return {
    attend (guest) {
      let late: NodeJS.Timeout | undefined
      const check = (): void => {
        stillWelcome(guest).then((welcome) => {
          if (!checks.has(check)) return
          if (welcome) guest.onWelcome()
          else guest.onUnwelcome()
        }, (err: unknown) => log.debug({ err }, 'a caller with an open stream could not be checked again; next time'))
      }
      const expire = (): void => {
        late = undefined
        if (clock.now() >= guest.validUntil()) guest.onUnwelcome()
        else arm() // A newer token has moved it.
      }
      // Not before it is near: most calls are over long before their tokens.
      const arm = (): void => {
        const left = guest.validUntil() - clock.now()
        if (late === undefined && left <= keepAlive.intervalMs) late = setTimeout(expire, Math.max(0, left) + 1)
      }
      arm()
      checks.add(check)
      const quiet = keepAlive.add(() => {
        guest.beat()
        check()
        arm()
      })
      return () => {
        quiet()
        checks.delete(check)
        clearTimeout(late)
      }
    },
    recheckAll () {
      for (const check of checks) check()
    }
  }
}

async function stillWelcome (guest: Guest): Promise<boolean> {
  try {
    await guest.recheck()
    return await guest.alive()
  } catch (error) {
    if (error instanceof GatewayError && !error.row.retry) return false
    throw error
  }
}

/** From when on the token of a request is no longer good: epoch ms, leeway included. */
export const validUntil = ({ principal: { expiresAt }, tenant }: Visit): number =>
  expiresAt === undefined ? Infinity : expiresAt + tenant.auth.leewaySeconds * 1000

export const noLongerWelcome = (): GatewayError => new GatewayError('unauthenticated', 'The token or key of this request is no longer accepted. Whether the call took effect is unknown.', { data: { outcome: 'unknown' } })
