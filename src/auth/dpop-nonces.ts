// Nonces for proofs (RFC 9449 sections 8 and 9): a proof with a current nonce was made just now, not in advance by an
// attacker who had the key for a moment. A nonce is derived from the time and a key that all processes share, so none
// is stored.

import type { Tenant } from '../config/snapshot.ts'
import type { Sealer } from '../store/seal.ts'
import type { Clock } from '../time/clock.ts'

/** The period of a nonce, in seconds; it is accepted for one more period. */
const nonceSeconds = 60

export type Nonces = ReturnType<typeof createNonces>

export interface NonceParts {
  readonly sealer: Pick<Sealer, 'proofs' | 'proves'>
  /** The time of day. */
  readonly clock: Pick<Clock, 'now'>
}

export function createNonces({ sealer, clock }: NonceParts) {
  const numberNow = (): number => Math.floor(clock.now() / 1000 / nonceSeconds)

  return {
    current: ({ id }: Pick<Tenant, 'id'>): string => sealer.proofs('dpop-nonce', [id])(numberNow()),
    /** Whether the nonce is the current one or one beside it: the clock of another process may be ahead. */
    isGood({ id }: Pick<Tenant, 'id'>, nonce: string): boolean {
      const now = numberNow()
      return [now, now - 1, now + 1].some((number) => sealer.proves('dpop-nonce', [id], number, nonce))
    }
  }
}
