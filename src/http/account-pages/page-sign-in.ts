// Signing in on the page of one's connections: at the login front of the tenant, or at its provider by code and PKCE
// (OpenID Connect Core 1.0 section 3.1). What has to be kept meanwhile the browser keeps, sealed, in a cookie: no
// stranger fills the store, and whoever comes back is the browser that was sent (RFC 9700 section 4.7).

import { randomBytes } from 'node:crypto'
import type { Fetch } from '../../egress/fetch.ts'
import type { LoginConfig } from '../../config/auth/login-config.ts'
import { connectionsPath } from '../../config/auth/upstream-auth.ts'
import type { Tenant } from '../../config/snapshot.ts'
import { createSemaphore } from '../../limits/limits.ts'
import type { Login } from '../../login/login.ts'
import { SignInRefused } from '../../login/people/identity.ts'
import { createSignIn, saidByProvider, type PendingSignIn } from '../../login/people/sign-in.ts'
import { GatewayError } from '../../protocol/messages.ts'
import { deadline } from '../../time/clock.ts'
import { ConnectRefused } from '../../vault/oauth/account-client.ts'
import type { Vault } from '../../vault/vault.ts'
import type { SignedIn } from './connection-session.ts'
import { pageCookie } from './page-cookie.ts'
import { createSignInRate } from './sign-in-rate.ts'

/** The longest time from the first redirect to the last. */
const signInSeconds = 15 * 60
/** The longest query of the page that is shown afterwards, in characters. A cookie has at most 4 KiB. */
const maxQuery = 1_500
/** The most used states that are remembered; beyond, those used first are forgotten. */
const maxUsed = 20_000
const purpose = 'connections-sign-in'
const cookie = pageCookie('sign-in')

interface Pending extends Omit<PendingSignIn, 'uid'> {
  /** The issuer at which the sign-in began: an answer of another one is refused (mix-up, RFC 9700 section 4.4). */
  readonly issuer: string
  /** The query of the page where it began. */
  readonly query: string
  readonly until: number
}

interface PageSignInOptions {
  readonly vault: Pick<Vault, 'sealer' | 'clock' | 'wall' | 'log'>
  readonly login: Pick<Login, 'takeTicket' | 'fetchFor'>
  readonly publicUrl: () => string
  readonly isSecure: () => boolean
}

/** The request with which a browser comes back. */
interface WayBack {
  readonly query: URLSearchParams
  /** The header. */
  readonly cookies: string | undefined
  /** The address of the browser, if that is known. */
  readonly address: string | undefined
}

/** Requests to one provider; the others wait. Each takes a descriptor, and a provider may hang. */
const maxAtOnce = 8
/** The longest time that a request waits for a place. */
const timeoutMs = 10_000

export function createPageSignIn({ vault, login, publicUrl, isSecure }: PageSignInOptions) {
  const { sealer, clock, wall, log } = vault
  const attempts = createSignInRate(clock)
  const known = new WeakMap<LoginConfig['provider'], ReturnType<typeof createSignIn>>()
  /** States that have come back: each has the provider asked once, whatever codes are made up for it. */
  const used = new Set<string>()
  const told = new WeakSet<object>()

  function signInAt(tenant: Tenant, provider: LoginConfig['provider']) {
    const uris = { redirectUri: `${publicUrl()}${connectionsPath(tenant.id)}/signed-in`, signedOutUri: '' }
    const signIn =
      known.get(provider) ??
      createSignIn(
        { provider, ...uris },
        limited(login.fetchFor(tenant.id, [provider.issuer], provider.publicHosts)),
        wall
      )
    known.set(provider, signIn)
    return signIn
  }

  /** Limits how many requests run at once. None waits longer for its place than for an answer. */
  function limited(fetch: Fetch): Fetch {
    const semaphore = createSemaphore(maxAtOnce)
    return async (url, init) => {
      const limit = deadline(clock, timeoutMs, init?.signal)
      try {
        return await semaphore(() => fetch(url, init), limit.signal)
      } catch (error) {
        if (!limit.passed() || !(error instanceof GatewayError)) throw error
        throw new Error(`${url} was not asked: others wait for answers for ${timeoutMs / 1000} s`, { cause: error })
      } finally {
        limit.close()
      }
    }
  }

  function isTold(error: unknown): boolean {
    if (typeof error !== 'object' || error === null) return false
    const isKnown = told.has(error)
    told.add(error)
    return isKnown
  }

  function noteUse(state: string): void {
    used.add(state)
    const [oldest] = used.size > maxUsed ? used : []
    if (oldest !== undefined) used.delete(oldest)
  }

  const issuerOf = ({ login: front, signIn: provider }: Tenant['auth']): string | undefined =>
    front?.issuer ?? provider?.issuer

  /** @throws ConnectRefused where the provider says no, or cannot be asked */
  async function asked<T>(tenant: Tenant, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof GatewayError || error instanceof ConnectRefused) throw error
      // Once for all sign-ins that one failure to ask the provider ends: strangers begin them.
      if (!isTold(error))
        log.warn({ tenant: tenant.id, reason: saidByProvider(error) }, 'a sign-in to the page of connections failed')
      if (error instanceof SignInRefused && error.error === 'access_denied')
        throw new ConnectRefused(
          'You were not let in: your identity provider said no, or not all of its people may come in here. Ask those ' +
            'who run this gateway.'
        )
      throw new ConnectRefused('Your identity provider did not let you in, or does not answer. Sign in again.')
    }
  }

  /** @throws ConnectRefused */
  async function signedInAtFront(tenant: Tenant, query: URLSearchParams, { issuer, state }: Pending) {
    const ticket = await login.takeTicket(tenant, query.get('ticket') ?? '')
    if (ticket === undefined || ticket.state !== state) throw begunElsewhere()
    return { issuer, subject: ticket.subject, name: ticket.name }
  }

  return {
    /** Returns the name of the place where people of a tenant sign in; undefined: they show a key or a token. */
    placeOf: ({ auth }: Tenant): string | undefined =>
      auth.login?.name ?? (auth.signIn && new URL(auth.signIn.issuer).host),

    /**
     * @param query of the page, which is shown afterwards
     * @returns where to send the browser, and the cookie that it keeps until it is back
     * @throws ConnectRefused
     */
    async begin(tenant: Tenant, query: string): Promise<{ readonly url: string; readonly cookie: string }> {
      const { login: front, signIn: provider } = tenant.auth
      const state = randomBytes(32).toString('base64url')
      const ofFront = {
        url: `${front?.issuer}/connections?state=${state}`,
        pending: { state, nonce: '', verifier: '' }
      }
      if (front === undefined && provider === undefined) throw new ConnectRefused('People sign in with a key here.')
      const { url, pending } =
        provider === undefined ? ofFront : await asked(tenant, () => signInAt(tenant, provider).begin('', undefined))
      const { state: own, nonce, verifier } = pending
      const shown = query.length > maxQuery ? '' : query
      const until = wall.now() + signInSeconds * 1000
      const kept: Pending = { issuer: issuerOf(tenant.auth) ?? '', state: own, nonce, verifier, query: shown, until }
      const sealed = sealer.seal(purpose, [tenant.id], JSON.stringify(kept))
      return { url, cookie: cookie.line(tenant.id, sealed, signInSeconds, isSecure()) }
    },

    /**
     * @returns who it is, where they began, and what takes the cookie away
     * @throws ConnectRefused; GatewayError rate_limited
     */
    async finish(tenant: Tenant, { query, cookies, address }: WayBack) {
      const { login: front, signIn: provider } = tenant.auth
      const text = sealer.open(purpose, [tenant.id], cookie.in(tenant.id, cookies, isSecure()) ?? '')
      const pending = text === undefined ? undefined : (JSON.parse(text) as Pending)
      if (pending === undefined || wall.now() > pending.until || pending.issuer !== issuerOf(tenant.auth))
        throw begunElsewhere()
      // Before anything is counted, or asked: whoever comes back is the browser that was sent.
      if (query.get('state') !== pending.state || used.has(pending.state)) throw begunElsewhere()
      attempts.count(tenant.id, address)
      noteUse(pending.state)
      const who: Omit<SignedIn, 'tenant'> =
        front !== undefined || provider === undefined
          ? await signedInAtFront(tenant, query, pending)
          : await asked(tenant, async () => {
              const { subject, name } = await signInAt(tenant, provider).finish(query, { uid: '', ...pending })
              return { issuer: provider.issuer, subject, name }
            })
      const person: SignedIn = { tenant: tenant.id, ...who }
      return { person, query: pending.query, cookie: cookie.line(tenant.id, '', 0, isSecure()) }
    }
  }
}

const begunElsewhere = (): ConnectRefused =>
  new ConnectRefused('The sign-in has expired, was used already, or was begun in another browser. Sign in again.')
