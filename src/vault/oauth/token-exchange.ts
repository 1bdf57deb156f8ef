// `auth: { type: tokenExchange }`: the token of a caller is exchanged at the identity provider that issued it for one
// that the upstream takes (RFC 8693). The caller's own token goes nowhere else, and is not kept.

import type { FetchFor } from '../../egress/fetch.ts'
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import * as oauth from 'oauth4webapi'
import { bringsIdToken } from '../../config/auth/upstream-auth.ts'
import type { Endpoint, Tenant, UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { GatewayError } from '../../protocol/messages.ts'
import { abortable, type Clock, settledWithin } from '../../time/clock.ts'
import type { UpstreamCredential } from '../../upstream/rpc/credential.ts'
import type { AskingCaller, CallerDefinitions } from '../caller-definitions.ts'
import { exchangedTokens, type ExchangingDefinition } from './exchange-request.ts'
import type { ExchangedToken, SharedExchanges } from './shared-exchanges.ts'
import type { FirstIssuers } from './first-issuers.ts'
import { createMaskedTokens, isGood } from './tokens.ts'

/** The time after a failure in which the same token is not exchanged again. */
const retryMs = 5_000
/**
 * A request waits at most so many milliseconds for the exchange of its token, so that calls of other upstreams go on.
 */
const admissionMs = 2_000
/** The most tokens of one caller that are remembered. */
const maxTokens = 4

type Outcome = ExchangedToken | { readonly error: GatewayError; readonly since: number }

/** The exchanged tokens of one caller at one upstream. */
interface Held {
  /** The outcomes, by digest of the caller's token. */
  readonly byToken: LRUCache<string, Outcome>
  readonly pending: Map<string, Promise<void>>
  /** The exchange for the newest call. */
  waiting: Promise<void> | undefined
  /** The outcome for the newest call. */
  latest: Outcome | undefined
  lines: string
  readonly masked: ReturnType<typeof createMaskedTokens>
}

/**
 * Returns a valid ID token of a person who signed in at the provider of the tenant's login front.
 * @returns undefined if they have to sign in again
 */
export type IdTokenOf = (tenant: Tenant, subject: string) => Promise<string | undefined>

interface ExchangeOptions {
  readonly callers: Pick<CallerDefinitions, 'of'>
  readonly idTokenOf: IdTokenOf
  readonly servers: { readonly fetch: FetchFor; readonly firstIssuers: Pick<FirstIssuers, 'of'> }
  readonly shared: SharedExchanges
  readonly clock: Pick<Clock, 'timer'>
  /** The time of day. */
  readonly wall: { now(): number }
  readonly log: Log
}

const exchanges = (definition: UpstreamDefinition): definition is ExchangingDefinition =>
  definition.type === 'http' && definition.auth?.type === 'tokenExchange'

export type TokenExchanges = ReturnType<typeof createTokenExchanges>

export function createTokenExchanges(options: ExchangeOptions) {
  const { callers, idTokenOf, servers, shared, clock, wall, log } = options
  const heldOf = new Map<string, Held>()

  function held(definitionHash: string): Held {
    const known = heldOf.get(definitionHash) ?? {
      byToken: new LRUCache<string, Outcome>({ max: maxTokens }),
      pending: new Map<string, Promise<void>>(),
      waiting: undefined,
      latest: undefined,
      lines: '',
      masked: createMaskedTokens(maxTokens)
    }
    heldOf.set(definitionHash, known)
    return known
  }

  const isFresh = (outcome: Outcome, now: number): boolean =>
    'error' in outcome
      ? now >= outcome.since && now - outcome.since < retryMs
      : isGood(outcome.tokens, outcome.since, now)

  const isUsable = ({ tokens, since }: ExchangedToken): boolean => isGood(tokens, since, wall.now())

  function use(own: Held, outcome: Outcome): void {
    if (own.latest === outcome) return
    own.latest = outcome
    own.lines = 'error' in outcome ? '' : `authorization: Bearer ${outcome.tokens.accessToken}\r\n`
    if ('tokens' in outcome) own.masked.show(outcome.tokens)
  }

  /** Exchanges a token. Never rejects: a failure becomes the outcome, and is reported by calls of the upstream. */
  async function exchange(
    definition: ExchangingDefinition,
    own: Held,
    digest: string,
    subjectToken: () => Promise<string>
  ): Promise<void> {
    const { name, tenant, url, publicHosts, auth } = definition
    const { issuer, tokenUrl, identityAssertion } = auth
    const written = [issuer, tokenUrl, identityAssertion && url, identityAssertion?.issuer]
    const reach = servers.fetch(tenant, written, publicHosts)
    const told = (work: Promise<unknown>): Promise<unknown> =>
      work.catch((err: unknown) =>
        log.warn({ err, upstream: name, tenant }, 'other processes are not told what a token was exchanged for')
      )
    // If the store fails, the exchange goes on for this process alone.
    let end = (): Promise<unknown> => Promise.resolve()
    await told(
      shared.begin(definition).then((ends) => {
        end = ends
      })
    )
    let outcome: Outcome
    try {
      const first = identityAssertion && servers.firstIssuers.of(definition, identityAssertion)
      const tokens = await exchangedTokens(definition, await subjectToken(), reach, wall.now, first)
      outcome = { tokens, since: wall.now() }
      await told(shared.keep(definition, outcome))
    } catch (err) {
      log.warn({ err, upstream: name, tenant }, 'the token of a caller cannot be exchanged for one of an upstream')
      const why = err instanceof oauth.ResponseBodyError ? `its identity provider answers ${err.error}` : 'see the log'
      outcome = { error: noToken(name, why, err), since: wall.now() }
      await told(shared.keepFailure(definition, { failed: why }, { ttlMs: retryMs, isGood: isUsable }))
    }
    own.byToken.set(digest, outcome)
    use(own, outcome)
    await told(end())
  }

  /** Gets the token that another process has exchanged or is exchanging: the caller's token came there. */
  async function fromOthers(definition: UpstreamDefinition, own: Held, signal: AbortSignal): Promise<void> {
    const found = await shared.find(definition, isUsable, signal)
    if (found !== undefined && 'tokens' in found) return use(own, found)
    throw noToken(definition.name, found?.failed ?? 'its caller has to call again')
  }

  return {
    /**
     * Exchanges the token of a caller for those of the endpoint's upstreams that want one.
     * @param rawHeaders of a request that was let in
     * @returns undefined if there is nothing to wait for. Never rejects
     */
    ensure(
      { tenant, endpoint }: { readonly tenant: Tenant; readonly endpoint: Pick<Endpoint, 'members'> },
      caller: AskingCaller,
      rawHeaders: readonly string[]
    ): Promise<unknown> | undefined {
      const at = rawHeaders.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'authorization')
      const token = /^\S+ (\S+)$/.exec(rawHeaders[at + 1] ?? '')?.[1]
      if (at === -1 || token === undefined) return undefined
      const digest = hash('sha256', token, 'base64url')
      const now = wall.now()
      const work = [...(callers.of(tenant, caller)?.values() ?? [])].flatMap((definition) => {
        if (!exchanges(definition) || definition.refusal !== undefined) return []
        if (!endpoint.members.some(({ upstream }) => upstream === definition.name)) return []
        const own = held(definition.hash)
        const known = own.byToken.get(digest)
        if (known !== undefined && isFresh(known, now)) {
          own.waiting = undefined
          use(own, known)
          return []
        }
        const pending =
          own.pending.get(digest) ??
          exchange(definition, own, digest, async () => {
            if (!bringsIdToken(tenant, definition.auth, caller.issuer)) return token
            const idToken = await idTokenOf(tenant, caller.subject)
            if (idToken === undefined) throw new Error('its provider gave no ID token that holds: they sign in again')
            return idToken
          }).finally(() => {
            if (own.waiting === own.pending.get(digest)) own.waiting = undefined
            own.pending.delete(digest)
          })
        own.pending.set(digest, pending)
        own.waiting = pending
        return [pending]
      })
      return work.length === 0 ? undefined : settledWithin(clock, admissionMs, Promise.all(work))
    },
    credentialOf(definition: UpstreamDefinition): UpstreamCredential {
      const own = held(definition.hash)
      const judged = (signal: AbortSignal): Promise<void> | undefined => {
        const { latest } = own
        if (latest === undefined || !isFresh(latest, wall.now())) return fromOthers(definition, own, signal)
        return 'error' in latest ? Promise.reject(latest.error) : undefined
      }
      return {
        lines: () => own.lines,
        secrets: own.masked.secrets,
        hint: () =>
          'it does not take what the token of this caller was exchanged for: check audience and scopes of its auth, ' +
          'and what this caller may do there.',
        ready: (signal) =>
          own.waiting === undefined ? judged(signal) : abortable(own.waiting, signal).then(() => judged(signal)),
        refused: (lines) => Promise.resolve(lines !== own.lines)
      }
    },
    retain(hashes: Pick<ReadonlySet<string>, 'has'>): void {
      for (const each of heldOf.keys()) if (!hashes.has(each)) heldOf.delete(each)
    }
  }
}

const noToken = (upstream: string, why: string, cause?: unknown): GatewayError =>
  new GatewayError(
    'upstream_unavailable',
    `Upstream ${upstream} was not called: the token of this caller could not be exchanged (${why}).`,
    { cause, data: { upstream } }
  )
