// The authorization server of one tenant: the certified library oidc-provider, set up for MCP hosts (MCP
// basic/authorization; OAuth 2.1; RFC 7591, 7636, 8414, 8707, 9068, 9207). Nothing that it can do is done here.

import type { Configuration, KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { Fetch } from '../egress/fetch.ts'
import type { LoginConfig } from '../config/auth/login-config.ts'
import type { Tenant } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import type { Clock } from '../time/clock.ts'
import { createLoginAdapter } from './adapter.ts'
import type { createIdentities } from './people/identities.ts'
import { toldOf } from './people/identity.ts'
import type { LoginKeys } from './keys.ts'
import { interactionSeconds } from './sign-in-pages.ts'
import { logFailures, noteRefusals, type LoginEvents } from './login-events.ts'
import { guardRedirects } from './redirect-guard.ts'
import { providerPages } from './pages.ts'
import type { LoginRecords } from './records.ts'
import { createRefreshRate } from './refresh-rate.ts'
import { registeredId, withCheckedRedirects } from './strangers/registration.ts'
import { resourceIndicatorsOf, revocationPolicy } from './token-rules.ts'
import { saidByProvider } from './people/sign-in.ts'
import { giveBackUnbegun, type StrangerLimits } from './strangers/stranger-limits.ts'

interface ProviderOptions {
  readonly tenant: Tenant
  readonly config: LoginConfig
  readonly keys: LoginKeys
  readonly records: LoginRecords
  readonly identities: ReturnType<typeof createIdentities>
  /** The time of day. */
  readonly clock: Pick<Clock, 'now'>
  readonly note: LoginEvents
  readonly log: Log
}

const codeSeconds = 60
/** The life of a consent, however often it is used, in seconds. */
const grantSeconds = 365 * 24 * 60 * 60
/** How long a registered client is kept after its last code or token, at the least, in seconds. */
const clientSeconds = 90 * 24 * 60 * 60

/**
 * @param fetch for what strangers name: public addresses only
 * @param strangers how much they may begin
 * @returns the library's object, and what answers a request
 */
export async function createProvider(
  options: ProviderOptions,
  { fetch, strangers }: { readonly fetch: Fetch; readonly strangers: StrangerLimits }
): Promise<{ readonly provider: Provider; readonly answer: ReturnType<Provider['callback']> }> {
  const { tenant, config, keys, records, identities, clock, note, log } = options
  // Who has no login front does without it.
  const { Provider, errors, interactionPolicy } = await import('oidc-provider')
  const refreshSeconds = config.refreshDays * 24 * 60 * 60
  const clientMs = Math.max(clientSeconds, refreshSeconds) * 1_000
  function alreadyUsed(endedGrant?: string): Error {
    // As the library says it where it notices by itself.
    if (endedGrant !== undefined) provider.emit('grant.revoked', Provider.ctx, endedGrant)
    return new errors.InvalidGrant('it was used already')
  }
  const tooLong = (most: number): Error =>
    new errors.InvalidRequest(`it takes up more than ${most} characters; send less`)
  const away = (): Error => new errors.TemporarilyUnavailable('the store of the gateway cannot be reached; try again')
  const { renderError, logoutSource, postLogoutSuccessSource } = providerPages(config, identities)

  const countRefresh = createRefreshRate({ records, config, clock, errors })

  async function findAccount(
    ctx: KoaContextWithOIDC,
    subject: string,
    token?: { readonly kind?: string; readonly consumed?: unknown }
  ) {
    // One that is spent ends its grant, however often that is tried.
    if (token?.kind === 'RefreshToken' && token.consumed === undefined) await countRefresh(ctx, subject)
    // Before a token is issued the provider is asked again.
    const isIssued = token?.kind === 'RefreshToken' || token?.kind === 'AuthorizationCode'
    const identity = isIssued ? await asked(subject) : await identities.get(subject)
    if (identity === undefined) return undefined
    return { accountId: subject, claims: () => ({ sub: subject, name: identity.name }) }
  }

  /** The host keeps its refresh token and comes back: nothing of it is used up yet. */
  async function asked(subject: string) {
    try {
      return await identities.current(subject)
    } catch (error) {
      log.warn({ tenant: tenant.id, reason: saidByProvider(error) }, "the tenant's identity provider cannot be asked")
      throw new errors.TemporarilyUnavailable('the identity provider cannot be reached; try again')
    }
  }

  // A person whom the provider no longer knew may come back: a session of the browser from before does not count.
  const policy = interactionPolicy.base()
  const isGone = async ({ oidc: { session } }: KoaContextWithOIDC): Promise<boolean> =>
    session?.accountId !== undefined && (await identities.get(session.accountId)) === undefined
  policy.get('login')?.checks.add(new interactionPolicy.Check('gone', 'the person has to sign in again', isGone))
  // An address that is not of a web server may be another app's of the same machine.
  const isApp = ({ oidc: { params, result } }: KoaContextWithOIDC): boolean =>
    !String(params?.['redirect_uri']).startsWith('https:') && result?.consent === undefined
  policy.get('consent')?.checks.add(new interactionPolicy.Check('app', 'apps are asked about each time', isApp))

  const configuration: Configuration = {
    adapter: (kind: string) => createLoginAdapter(kind, { clientMs, records, clock, alreadyUsed, tooLong, away }),
    jwks: { keys: [...keys.keys] as NonNullable<Configuration['jwks']>['keys'] },
    cookies: {
      keys: [keys.cookieKey],
      long: { httpOnly: true, sameSite: 'lax', path: config.path },
      short: { httpOnly: true, sameSite: 'lax' },
      names: { interaction: 'gatehouse_interaction', resume: 'gatehouse_resume', session: 'gatehouse_session' }
    },
    scopes: ['openid', 'offline_access', ...config.scopes],
    claims: { openid: ['sub'], profile: ['name'] },
    responseTypes: ['code'],
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
    // Apps on a person's machine are most of the hosts; the rules for their redirect URIs also fit those on the web.
    clientDefaults: {
      application_type: 'native',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      id_token_signed_response_alg: 'ES256',
      // A token that is not bound would be refused at the endpoints.
      ...(tenant.auth.dpop === 'required' && { dpop_bound_access_tokens: true })
    },
    extraClientMetadata: withCheckedRedirects(errors),
    enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
    pkce: { required: () => true },
    // RFC 9700 section 4.14: each refresh token is good once, and a second use ends all of the grant.
    rotateRefreshToken: true,
    issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed('refresh_token'),
    // Apps work on for days while nobody is at the browser. Hosts do not say so (prompt=consent with offline_access).
    expiresWithSession: async () => false,
    ttl: {
      AccessToken: config.tokenSeconds,
      AuthorizationCode: codeSeconds,
      IdToken: config.tokenSeconds,
      Interaction: interactionSeconds,
      // Of a browser that has begun and not signed in nothing is kept for longer than that.
      Session: (_ctx, { accountId }) => (accountId === undefined ? interactionSeconds : config.sessionHours * 60 * 60),
      Grant: grantSeconds,
      RefreshToken: refreshSeconds
    },
    features: {
      // Its proofs are told apart by the same rules as those of the endpoints (auth/dpop.ts).
      ...(tenant.auth.dpopNonces === true && {
        dPoP: { enabled: true, nonceSecret: keys.nonceSecret, requireNonce: () => true }
      }),
      devInteractions: { enabled: false },
      userinfo: { enabled: false },
      introspection: { enabled: false },
      revocation: { enabled: true, allowedPolicy: revocationPolicy(errors) },
      // Nothing but the metadata would name its endpoint.
      pushedAuthorizationRequests: { enabled: false },
      registration: { enabled: true, initialAccessToken: false, idFactory: registeredId },
      rpInitiatedLogout: { enabled: true, logoutSource, postLogoutSuccessSource },
      clientIdMetadataDocument: {
        enabled: config.clientDocuments,
        ack: 'draft-02',
        // Strangers name a URL in requests for tokens too, which have no other limit.
        allowFetch: async ({ req }) => (await strangers.take('clientDocuments', req)) === undefined
      },
      resourceIndicators: resourceIndicatorsOf(config, errors)
    },
    fetch: asLibrary(fetch),
    findAccount,
    extraTokenClaims: async (_ctx, token) => {
      const subject = 'accountId' in token ? token.accountId : undefined
      const identity = subject === undefined ? undefined : await identities.get(subject)
      return identity && toldOf(identity)
    },
    // The Origin of every request was compared with those of the tenant before it came here.
    clientBasedCORS: () => true,
    interactions: { policy, url: (_ctx, { uid }) => `${config.path}/interaction/${uid}` },
    renderError
  }

  const provider = new Provider(config.issuer, configuration)
  // It takes host and protocol from forwarded headers, which login.ts sets to those of the public URL.
  provider.proxy = true
  noteRefusals(provider, note)
  giveBackUnbegun(provider, strangers)
  guardRedirects(provider, config, records)
  signOutThere(provider, options)
  logFailures(provider, tenant.id, log)
  return { provider, answer: provider.callback() }
}

/** Signs a person out at the tenant's provider, too (OpenID Connect RP-Initiated Logout 1.0). */
function signOutThere(
  provider: Provider,
  { config, identities, note }: Pick<ProviderOptions, 'config' | 'identities' | 'note'>
): void {
  const signedOut = `${config.issuer}/session/end/success`
  provider.use(async (ctx: KoaContextWithOIDC, next: () => Promise<void>) => {
    await next()
    const { session } = ctx.oidc?.route === 'end_session_confirm' ? ctx.oidc : {}
    // Not where a browser changes from one person to another.
    if (session?.accountId === undefined || ctx.response.get('location') !== signedOut || !isDestroyed(session)) return
    note(ctx.req, { action: 'sign-out', subject: session.accountId })
    const url = await identities.signOutUrl(session.accountId)
    if (url !== undefined) ctx.redirect(url)
  })
}

const isDestroyed = (session: object): boolean => 'destroyed' in session && session.destroyed === true

/** Its own looks at an address when it has connected already. */
const asLibrary =
  (fetch: Fetch): NonNullable<Configuration['fetch']> =>
  (url, { headers, signal } = {}) =>
    fetch(url instanceof Request ? url.url : url.toString(), {
      headers: Object.fromEntries(new Headers(headers)),
      signal: signal ?? undefined
    })
