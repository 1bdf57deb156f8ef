// Signing in to the console at the identity provider: authorization code with PKCE, state and nonce (OpenID Connect
// Core 1.0 section 3.1). What has to be kept meanwhile the browser keeps, sealed, in a cookie: no stranger fills the
// store, and whoever comes back is the browser that was sent (RFC 9700 section 4.7).

import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import type { FetchFor } from '../../egress/fetch.ts'
import type { AdminConfig, Snapshot } from '../../config/snapshot.ts'
import { SignInRefused } from '../../login/people/identity.ts'
import { createSignIn, saidByProvider, type PendingSignIn } from '../../login/people/sign-in.ts'
import type { Log } from '../../observe/log.ts'
import { GatewayError, isObject } from '../../protocol/messages.ts'
import type { Sealer } from '../../store/seal.ts'
import type { Clock } from '../../time/clock.ts'
import { nobodysTenant, type TokenHolder } from '../oidc/token-administrators.ts'
import { AdminProblem } from '../problem.ts'
import { createAddressRates } from '../rates.ts'
import { consoleCookie } from './cookies.ts'

/** The longest time from the first redirect to the last, in seconds. */
const signInSeconds = 15 * 60
/** Then the provider is asked again, which knows whether they still may: mostly without a question to the person. */
const sessionOfProviderMs = 60 * 60 * 1000
/** Sign-ins that are finished, by address: each asks the provider. */
const finished = { perSecond: 1, burst: 60 }
/** Pages of so many addresses of the listener. */
const maxOrigins = 16

const purpose = 'console sign-in'
const cookie = consoleCookie('gatehouse-console-sign-in')

type LoginOfAdmins = NonNullable<NonNullable<AdminConfig['oidc']>['login']>

export type ProviderSignIn = ReturnType<typeof createProviderSignIn>

export function createProviderSignIn({
  snapshot,
  sealer,
  fetchFor,
  clock,
  wall,
  log
}: {
  readonly snapshot: () => Pick<Snapshot, 'admin'>
  readonly sealer: Pick<Sealer, 'seal' | 'open'>
  readonly fetchFor: FetchFor
  /** Measures durations. */
  readonly clock: Clock
  /** The time of day. */
  readonly wall: Pick<Clock, 'now'>
  readonly log: Log
}) {
  const rate = createAddressRates(clock, finished)
  const known = new WeakMap<LoginOfAdmins, LRUCache<string, ReturnType<typeof createSignIn>>>()

  const provider = (): LoginOfAdmins | undefined => snapshot().admin?.oidc?.login

  function signInAt(origin: string) {
    const login = provider()
    if (login === undefined)
      throw new AdminProblem('not_found', 'Nobody signs in by a provider here.', 'Sign in with an admin key.')
    const ofProvider = known.get(login) ?? new LRUCache({ max: maxOrigins })
    known.set(login, ofProvider)
    const uris = { redirectUri: `${origin}/console/`, signedOutUri: `${origin}/console/` }
    const signIn =
      ofProvider.get(origin) ??
      createSignIn({ provider: login, ...uris }, fetchFor(nobodysTenant, [login.issuer]), wall)
    ofProvider.set(origin, signIn)
    return { login, signIn }
  }

  /** @param error as the sign-in throws it */
  function problemOfSignIn(error: unknown, issuer: string): unknown {
    if (error instanceof AdminProblem || error instanceof GatewayError) return error
    const reason = error instanceof SignInRefused ? error.message : saidByProvider(error)
    log.info({ issuer, reason }, 'a sign-in to the console failed')
    return error instanceof SignInRefused
      ? new AdminProblem('forbidden', `The identity provider let nobody in: ${reason}`, 'Sign in again.')
      : new AdminProblem(
          'unavailable',
          `The sign-in at ${issuer} failed.`,
          'Try again. If it fails again, the log of the gateway says why; a key opens the console meanwhile.'
        )
  }

  return {
    /** The issuer at which people sign in; undefined: they use keys and tokens only. */
    get issuer(): string | undefined {
      return provider()?.issuer
    },

    /**
     * @param origin of the page
     * @returns where to send the browser, and the cookie that it keeps until it is back
     * @throws AdminProblem
     */
    async begin(origin: string): Promise<{ readonly url: string; readonly cookie: string }> {
      const { login, signIn } = signInAt(origin)
      try {
        const { pending, url } = await signIn.begin('', undefined)
        const kept = { ...pending, until: wall.now() + signInSeconds * 1000 }
        const sealed = sealer.seal(purpose, [login.issuer, origin], JSON.stringify(kept))
        return { url, cookie: cookie.line(origin, sealed, signInSeconds) }
      } catch (error) {
        throw problemOfSignIn(error, login.issuer)
      }
    },

    /**
     * @param query of the URL to which the provider sent the browser back
     * @returns who signed in, for an hour
     * @throws AdminProblem
     */
    async finish(request: FastifyRequest, origin: string, query: string): Promise<TokenHolder> {
      const { login, signIn } = signInAt(origin)
      const sealed = sealer.open(purpose, [login.issuer, origin], cookie.in(request, origin) ?? '')
      const pending = openPending(sealed, wall.now())
      const answer = new URLSearchParams(query)
      // Before anything is counted: whoever shares the address does not pay for what no provider sent here.
      if (answer.get('state') !== pending.state) throw begunElsewhere()
      if (!rate.take(request.ip))
        throw new AdminProblem('rate_limited', 'This address signs in too often.', 'Wait some seconds.', {
          headers: { 'Retry-After': '1' }
        })
      try {
        const { subject, groups, roles } = await signIn.finish(answer, pending)
        return { issuer: login.issuer, subject, groups, roles, expiresAt: wall.now() + sessionOfProviderMs }
      } catch (error) {
        throw problemOfSignIn(error, login.issuer)
      }
    },

    gone: cookie.gone
  }
}

/** @throws AdminProblem where it was begun elsewhere, or too long ago */
function openPending(text: string | undefined, now: number): PendingSignIn {
  const kept: unknown = text === undefined ? undefined : JSON.parse(text)
  if (isObject(kept) && Number(kept['until']) > now) return kept as unknown as PendingSignIn
  throw begunElsewhere()
}

const begunElsewhere = (): AdminProblem =>
  new AdminProblem(
    'forbidden',
    'The sign-in has expired, or was begun in another browser.',
    'Sign in again, in this browser.'
  )
