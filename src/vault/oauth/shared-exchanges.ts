// What a process has exchanged the token of a caller for, kept for the process that holds the caller's session: their
// token does not come there. In the vault, like all that people use an upstream with.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { exchangedTokenKey, exchangeTurnKey } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import { type Clock, pause } from '../../time/clock.ts'
import { begunTurn } from '../renewal-turns.ts'
import type { SealedValues } from '../sealed-values.ts'
import type { Tokens } from './tokens.ts'

/** Where the provider does not say when a token ends, other processes read it so long. */
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

type Outcome = ExchangedToken | FailedExchange

export type SharedExchanges = ReturnType<typeof createSharedExchanges>

interface SharedExchangesOptions {
  readonly store: Pick<Store, 'get' | 'set' | 'delete'>
  readonly values: Pick<SealedValues, 'read' | 'readToReplace' | 'write'>
  /** Without keys nothing is kept: the store is then that of one process (config/auth/upstream-auth-rules.ts). */
  readonly hasKeys: () => boolean
  readonly clock: Clock
}

export function createSharedExchanges({ store, values, hasKeys, clock }: SharedExchangesOptions) {
  const placeOf = ({ tenant, hash }: UpstreamDefinition): string => exchangedTokenKey(tenant, hash)
  const turnOf = ({ tenant, hash }: UpstreamDefinition): string => exchangeTurnKey(tenant, hash)

  return {
    /** Whoever needs the outcome elsewhere waits for it. @returns what ends that */
    async begin(definition: UpstreamDefinition): Promise<() => Promise<unknown>> {
      const end = hasKeys() ? await begunTurn(store, clock, turnOf(definition), longestMs) : undefined
      return end ?? (() => Promise.resolve())
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
      { ttlMs, isGood }: { readonly ttlMs: number; readonly isGood: (outcome: ExchangedToken) => boolean }
    ): Promise<void> {
      if (!hasKeys()) return
      const { value, replace } = await values.readToReplace(definition.tenant, placeOf(definition))
      const before = value as Outcome | undefined
      if (before === undefined || 'failed' in before || !isGood(before)) await replace(failure, ttlMs)
    },

    /**
     * What other processes have, or are about to have.
     * @param isGood whether it can be used
     * @returns undefined where nobody is at it, and there is none, or the wait was cancelled
     */
    async find(
      definition: UpstreamDefinition,
      isGood: (outcome: ExchangedToken) => boolean,
      signal: AbortSignal
    ): Promise<Outcome | undefined> {
      while (hasKeys() && !signal.aborted) {
        // Looked at first: whoever ends meanwhile has written before.
        const isUnderWay = (await store.get(turnOf(definition))) !== undefined
        const found = (await values.read(definition.tenant, placeOf(definition))) as Outcome | undefined
        if (found !== undefined && 'tokens' in found && isGood(found)) return found
        if (!isUnderWay) return found !== undefined && 'failed' in found ? found : undefined
        await pause(clock, pollMs, signal)
      }
      return undefined
    }
  }
}
