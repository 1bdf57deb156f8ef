// Shares exchanged tokens between processes: the process that holds a caller's session does not get the caller's token,
// and reads the exchanged one from the vault.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { exchangedTokenKey, exchangeTurnKey } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import { abortable, type Clock, noReason, pause } from '../../time/clock.ts'
import { type Release, tryLock } from '../lock.ts'
import type { SealedValues } from '../sealed-values.ts'
import type { Tokens } from './tokens.ts'

/** How long a token without a stated lifetime is shared, in milliseconds. */
const unsaidMs = 60_000
/** The longest time that other processes wait for an exchange, which may take several requests. */
const longestMs = 60_000
const pollMs = 100

export interface ExchangedToken {
  readonly tokens: Tokens
  /** Epoch ms. */
  readonly since: number
}

/** Why there is no token, in words for the caller. */
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
  /** The running search of each place, shared by all calls that wait, to spare the store. */
  const searches = new Map<string, Search>()

  async function search(definition: UpstreamDefinition, isGood: IsGood, signal: AbortSignal): Promise<Found> {
    while (hasKeys() && !signal.aborted) {
      // The lock is read first: a process that releases it afterwards has written its outcome before.
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

    /** Stores a failure, unless a usable token of the same caller is stored. */
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
     * Finds the outcome of other processes, and waits for a running exchange.
     * @param isGood whether an outcome can be used; the same function for all calls of a definition
     * @returns undefined if there is none and no exchange runs, or the wait was cancelled
     */
    async find(definition: UpstreamDefinition, isGood: IsGood, signal: AbortSignal): Promise<Found> {
      if (!hasKeys() || signal.aborted) return undefined
      const others = searches.get(placeOf(definition))
      const found = await outcomeOf(others ?? newSearch(definition, isGood), signal)
      if (others === undefined || (found !== undefined && 'tokens' in found) || signal.aborted) return found
      // Searched again, because that search may have looked before the exchange for this call began.
      return await outcomeOf(searches.get(placeOf(definition)) ?? newSearch(definition, isGood), signal)
    }
  }
}
