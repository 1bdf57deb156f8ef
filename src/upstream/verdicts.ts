// What was found out about servers, by hash of their definition: bounded, because definitions come and go with the configuration.

import type { Clock } from './clock.ts'

/** Modern: `only` where it had refused the older era. */
export type Verdict = { readonly era: 'legacy', readonly until: number } | { readonly era: 'modern', readonly only: boolean }

export interface Verdicts {
  get (hash: string, clock: Clock): Verdict | undefined
  set (hash: string, verdict: Verdict): void
  drop (hash: string): void
}

/** Far more than a gateway has upstreams; one that was forgotten is asked again. */
const maxVerdicts = 10_000

export function createVerdicts (): Verdicts {
  /** The longest unconfirmed first. */
  const known = new Map<string, Verdict>()
  return {
    get (hash, clock) {
      const verdict = known.get(hash)
      return verdict?.era === 'legacy' && verdict.until <= clock.now() ? undefined : verdict
    },
    set (hash, verdict) {
      known.delete(hash)
      known.set(hash, verdict)
      if (known.size <= maxVerdicts) return
      const [oldest = hash] = known.keys()
      known.delete(oldest)
    },
    drop (hash) { known.delete(hash) }
  }
}
