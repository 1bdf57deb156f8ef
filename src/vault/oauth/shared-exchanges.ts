// What a process has exchanged the token of a caller for, kept for the process that holds the caller's session: their
// token does not come there. In the vault, like all that people use an upstream with.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { exchangedTokenKey, exchangeTurnKey } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import { abortable, type Clock, noReason, pause } from '../../time/clock.ts'
import { type Release, tryLock } from '../lock.ts'
import type { SealedValues } from '../sealed-values.ts'
import type { Tokens } from './tokens.ts'

/** The time for which other processes read a token of which the provider does not say when it ends. */
const unsaidMs = 60_000
/** Others wait so long for an exchange, which is several requests where an assertion is asked for. */
const longestMs = 60_000
const pollMs = 100

export interface ExchangedToken {
  readonly tokens: Tokens
  /** Epoch ms. */
  readonly since: number
}

/** Why there is no token, as callers are told. */
interface FailedExchange {
  readonly failed: string
}

type Found = ExchangedToken | FailedExchange | undefined
type IsGood = (outcome: ExchangedToken) => boolean

interface Search {
  readonly outcome: Promise<Found>
  /** Calls. */
  waiting: number
  /** Removes one waiting call; the search ends with the last. */
  leave(): void
}

export type SharedExchanges = ReturnType<typeof createSharedExchanges>

interface SharedExchangesOptions {
  readonly store: Pick<Store, 'get' | 'set' | 'delete'>
  readonly values: Pick<SealedValues, 'read' | 'readToReplace' | 'write'>
  /**
   * Whether the vault has keys. Without keys nothing is kept: the store is then that of one process
   * (config/auth/upstream-auth-rules.ts).
   */
  readonly hasKeys: () => boolean
  readonly clock: Clock
}

export function createSharedExchanges({ store, values, hasKeys, clock }: SharedExchangesOptions) {
  const placeOf = ({ tenant, hash }: UpstreamDefinition): string => exchangedTokenKey(tenant, hash)
  const lockKeyOf = ({ tenant, hash }: UpstreamDefinition): string => exchangeTurnKey(tenant, hash)
  /** The search of each place, shared by all calls that wait: a host with many would else ask the store for each. */
  const searches = new Map<string, Search>()

  async function search(definition: UpstreamDefinition, isGood: IsGood, signal: AbortSignal): Promise<Found> {
    while (hasKeys() && !signal.aborted) {
      // Looked at first: whoever ends meanwhile has written before.
      const isUnderWay = (await store.get(lockKeyOf(definition))) !== undefined
      const found = (await values.read(definition.tenant, placeOf(definition))) as Found
      if (found !== undefined && 'tokens' in found && isGood(found)) return found
      if (!isUnderWay) return found !== undefined && 'failed' in found ? found : undefined
      await pause(clock, pollMs, signal)
    }
    return undefined
  }

  function newSearch(definition: UpstreamDefinition, isGood: IsGood): Search {
    const place = placeOf(definition)
    const ending = new AbortController()
    const over = (): void => {
      if (searches.get(place) === begun) searches.delete(place)
    }
    const begun: Search = {
      outcome: search(definition, isGood, ending.signal).finally(over),
      waiting: 0,
      leave() {
        if (--begun.waiting > 0) return
        over()
        ending.abort(noReason)
      }
    }
    searches.set(place, begun)
    return begun
  }

  async function outcomeOf(own: Search, signal: AbortSignal): Promise<Found> {
    own.waiting++
    try {
      return await abortable(own.outcome, signal)
    } catch (error) {
      if (signal.aborted) return undefined
      throw error
    } finally {
      own.leave()
    }
  }

  return {
    /** Begins an exchange: processes that need its outcome wait for it. @returns the function that ends their wait */
    async begin(definition: UpstreamDefinition): Promise<Release> {
      const lock = { store, clock, key: lockKeyOf(definition), longestMs }
      const release = hasKeys() ? await tryLock(lock) : undefined
      return release ?? (() => Promise.resolve())
    },

    async keep(definition: UpstreamDefinition, outcome: ExchangedToken): Promise<void> {
      if (!hasKeys()) return
      const { expiresAt = outcome.since + unsaidMs } = outcome.tokens
      const ttlMs = Math.max(1, expiresAt - outcome.since)
      await values.write(definition.tenant, placeOf(definition), outcome, { ttlMs })
    },

    /** A token of the same caller that can be used still is left. */
    async keepFailure(
      definition: UpstreamDefinition,
      failure: FailedExchange,
      { ttlMs, isGood }: { readonly ttlMs: number; readonly isGood: IsGood }
    ): Promise<void> {
      if (!hasKeys()) return
      const { value, replace } = await values.readToReplace(definition.tenant, placeOf(definition))
      const before = value as Found
      if (before === undefined || 'failed' in before || !isGood(before)) await replace(failure, ttlMs)
    },

    /**
     * What other processes have, or are about to have.
     * @param isGood whether it can be used; the same for all who ask for a definition
     * @returns undefined where nobody is at it, and there is none, or the wait was cancelled
     */
    async find(definition: UpstreamDefinition, isGood: IsGood, signal: AbortSignal): Promise<Found> {
      if (!hasKeys() || signal.aborted) return undefined
      const others = searches.get(placeOf(definition))
      const found = await outcomeOf(others ?? newSearch(definition, isGood), signal)
      if (others === undefined || (found !== undefined && 'tokens' in found) || signal.aborted) return found
      // It may have looked before the exchange of this very call was begun.
      return await outcomeOf(searches.get(placeOf(definition)) ?? newSearch(definition, isGood), signal)
    }
  }
}
