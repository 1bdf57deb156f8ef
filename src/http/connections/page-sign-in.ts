// Signing in on the page of one's connections: at the login front of the tenant, or at its provider by code and PKCE
// (OpenID Connect Core 1.0 section 3.1). What has to be kept meanwhile the browser keeps, sealed, in a cookie: no
// stranger fills the store, and whoever comes back is the browser that was sent (RFC 9700 section 4.7).

import { randomBytes } from 'node:crypto'
import { createFetch } from '../../auth/fetch.ts'
import type { LoginConfig } from '../../config/auth/login-config.ts'
import { connectionsPath } from '../../config/auth/upstream-auth.ts'
import type { Tenant } from '../../config/snapshot.ts'
import type { Login } from '../../login/login.ts'
import { createSignIn, saidByProvider, type PendingSignIn } from '../../login/sign-in.ts'
import { GatewayError } from '../../protocol/messages.ts'
import { ConnectRefused } from '../../vault/oauth/account-client.ts'
import type { Vault } from '../../vault/vault.ts'
import type { SignedIn } from './connection-session.ts'
import { pageCookie } from './page-cookie.ts'

/** From the first redirect to the last. */
const signInSeconds = 15 * 60
/** In characters: of what the browser is shown afterwards. A cookie has at most 4 KiB. */
const maxQuery = 1_500
const purpose = 'connections-sign-in'
const cookie = pageCookie('sign-in')

interface Pending extends Omit<PendingSignIn, 'uid'> {
  /** The query of the page where it began. */
  readonly query: string
  readonly until: number
}

interface PageSignInOptions {
  readonly vault: Pick<Vault, 'sealer' | 'wall' | 'log'>
  readonly login: Pick<Login, 'takeTicket'>
  readonly publicUrl: () => string
  readonly isSecure: () => boolean
}

export function createPageSignIn({ vault, login, publicUrl, isSecure }: PageSignInOptions) {
  const { sealer, wall, log } = vault
  const fetch = createFetch({ timeoutMs: 10_000 })
  const known = new WeakMap<LoginConfig['provider'], ReturnType<typeof createSignIn>>()

  function signInAt(tenant: Tenant, provider: LoginConfig['provider']) {
    const uris = { redirectUri: `${publicUrl()}${connectionsPath(tenant.id)}/signed-in`, signedOutUri: '' }
    const signIn = known.get(provider) ?? createSignIn({ provider, ...uris }, fetch, wall)
    known.set(provider, signIn)
    return signIn
  }

  /** @throws ConnectRefused where the provider says no, or cannot be asked */
  async function asked<T>(tenant: Tenant, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof GatewayError || error instanceof ConnectRefused) throw error
      log.warn({ tenant: tenant.id, reason: saidByProvider(error) }, 'a sign-in to the page of connections failed')
      throw new ConnectRefused('Your identity provider did not let you in, or does not answer. Sign in again.')
    }
  }

  /** @throws ConnectRefused */
  async function signedInAtFront(tenant: Tenant, issuer: string, query: URLSearchParams, state: string) {
    const ticket = await login.takeTicket(tenant, query.get('ticket') ?? '')
    if (ticket === undefined || ticket.state !== state) throw begunElsewhere()
    return { issuer, subject: ticket.subject, name: ticket.name }
  }

  return {
    /** Where the people of a tenant sign in, as they know it; undefined: they show a key or a token. */
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
      const kept: Pending = { state: own, nonce, verifier, query: shown, until }
      const sealed = sealer.seal(purpose, [tenant.id], JSON.stringify(kept))
      return { url, cookie: cookie.line(tenant.id, sealed, signInSeconds, isSecure()) }
    },

    /**
     * @param query with which the browser was sent back
     * @param cookies the header
     * @returns who it is, where they began, and what takes the cookie away
     * @throws ConnectRefused
     */
    async finish(tenant: Tenant, query: URLSearchParams, cookies: string | undefined) {
      const { login: front, signIn: provider } = tenant.auth
      const text = sealer.open(purpose, [tenant.id], cookie.in(tenant.id, cookies, isSecure()) ?? '')
      const pending = text === undefined ? undefined : (JSON.parse(text) as Pending)
      if (pending === undefined || wall.now() > pending.until) throw begunElsewhere()
      const who: Omit<SignedIn, 'tenant'> =
        front !== undefined || provider === undefined
          ? await signedInAtFront(tenant, front?.issuer ?? '', query, pending.state)
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
  new ConnectRefused('The sign-in has expired, or was begun in another browser. Sign in again.')
