// The login front: an authorization server for tenants whose own identity provider cannot do what MCP hosts need
// (registration, resource indicators). It signs people in at that provider, and issues short tokens for one endpoint.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { decodeJwt } from 'jose'
import { createEgressGuard, type EgressGuard, type EgressLimits } from '../egress/guard.ts'
import { createFetch, createFetchFor } from '../egress/fetch.ts'
import type { LoginConfig } from '../config/auth/login-config.ts'
import type { Snapshot, Tenant } from '../config/snapshot.ts'
import { createSemaphore } from '../limits/limits.ts'
import type { Log } from '../observe/log.ts'
import type { LoginOrigin } from '../observe/login-event.ts'
import { shownName } from '../observe/pseudonyms.ts'
import { GatewayError, type TenantId } from '../protocol/messages.ts'
import type { Store } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'
import type { Clock } from '../time/clock.ts'
import { createConnectionsSignIn } from './connections-sign-in.ts'
import { createConsents } from './consents.ts'
import { createIdentities } from './people/identities.ts'
import { createInteractions } from './interactions.ts'
import { createLoginKeys, withOwnKeys } from './keys.ts'
import { createLoginEvents, type LoginAuditor } from './login-events.ts'
import { createProvider } from './provider.ts'
import { createLoginRecords } from './records.ts'
import { frontUrlOf } from './strangers/own-paths.ts'
import { errorPage, sendPage, tooOften } from './pages.ts'
import { createSignIn } from './people/sign-in.ts'
import { createStrangerLimits } from './strangers/stranger-limits.ts'

interface LoginOptions {
  readonly snapshot: () => Snapshot
  readonly store: Store
  /** Returns the epoch of a tenant: what was kept in another one counts as absent (session/session-epochs.ts). */
  readonly epochOf: (tenant: TenantId) => Promise<number>
  readonly sealer: Sealer
  /** `clock` measures durations, `wall` tells the time of day. */
  readonly clock: Clock
  readonly wall: Pick<Clock, 'now'>
  readonly audit: LoginAuditor | undefined
  readonly log: Log
}

export type Login = Awaited<ReturnType<typeof createLogin>>

/** Requests of one front to its provider; the others wait. Each takes a descriptor, and a provider may hang. */
const maxAtOnce = 8

/** An ID token that ends so soon is not shown to anybody: a request may be on its way for as long. */
const idTokenMarginMs = 30_000

export async function createLogin(
  { snapshot, store, epochOf, sealer, clock, wall, audit, log }: LoginOptions,
  egress: EgressLimits
) {
  // Its modules take a fifth of a second, for which a first request would hold up everybody else's.
  if ([...snapshot().tenants.values()].some(({ auth }) => auth.login !== undefined)) await import('oidc-provider')
  // A guard of its own for each purpose, since a guard limits how many names it looks up at once.
  const guard = (): EgressGuard => createEgressGuard(egress)
  const ofStrangers = createEgressGuard(egress)
  const fetchFor = createFetchFor({ timeoutMs: 10_000, guard: guard() })
  // What belongs to one compiled tenant.
  const fronts = new WeakMap<Tenant, ReturnType<typeof frontOf>>()
  const origins = new WeakMap<IncomingMessage, LoginOrigin>()

  function frontOf(tenant: Tenant, config: LoginConfig) {
    const records = createLoginRecords(tenant.id, config.provider.issuer, { store, sealer, epochOf })
    const keysOf = createLoginKeys(records, wall)
    const limited = createSemaphore(maxAtOnce)
    const uris = { redirectUri: `${config.issuer}/callback`, signedOutUri: `${config.issuer}/session/end/success` }
    const fetch = fetchFor(tenant.id, [config.provider.issuer], config.provider.publicHosts)
    const asked: typeof fetch = (url, init) => limited(() => fetch(url, init))
    const signIn = createSignIn({ provider: config.provider, ...uris }, asked, wall)
    const nameOf = (id: string, subject: string): string => shownName(snapshot(), id, subject)
    const onOut = (subject: string, reason: string): void =>
      log.info(
        { tenant: tenant.id, subject: nameOf(tenant.id, subject), reason },
        "the tenant's identity provider lets somebody in no more until they sign in again"
      )
    const identities = createIdentities({ records, signIn, config, clock, wall, onOut })
    const note = createLoginEvents(tenant, config, { audit, log, nameOf }, origins)
    const guarded = createFetch({ guard: ofStrangers, owner: tenant.id })
    const consents = createConsents({ config, records, identities, note })
    const connectionsSignIn = createConnectionsSignIn({ tenant, config, records, identities })
    const addressOf = (request: IncomingMessage): string | undefined => origins.get(request)?.address
    const strangers = createStrangerLimits({ tenant, config, records, clock: wall, log, addressOf })
    const parts = { tenant, config, records, signIn, identities, consents, connectionsSignIn, strangers, note, log }
    const interactions = createInteractions(parts)
    let made: { readonly kid: string; readonly provider: ReturnType<typeof createProvider> } | undefined

    return {
      keysOf,
      records,
      identities,
      interactions,
      connectionsSignIn,
      strangers,
      async provider(): ReturnType<typeof createProvider> {
        const keys = await keysOf()
        const kid = keys.keys.map((key) => key.kid).join(' ')
        if (made?.kid === kid) return await made.provider
        const about = { tenant, config, keys, records, identities, clock: wall, note, log }
        const provider = createProvider(about, { fetch: guarded, strangers })
        made = { kid, provider }
        return await provider
      }
    }
  }

  function frontFor(tenant: Tenant): { config: LoginConfig; front: ReturnType<typeof frontOf> } | undefined {
    const config = tenant.auth.login
    if (config === undefined) return undefined
    const front = fronts.get(tenant) ?? frontOf(tenant, config)
    fronts.set(tenant, front)
    return { config, front }
  }

  async function serve(
    { config, front }: { readonly config: LoginConfig; readonly front: ReturnType<typeof frontOf> },
    url: URL,
    request: IncomingMessage,
    response: ServerResponse
  ): Promise<unknown> {
    const issuer = new URL(config.issuer)
    const { provider, answer } = await front.provider()
    // The library makes its URLs of these: they are those of the public URL, whatever proxy stands in front.
    request.headers.host = issuer.host
    request.headers['x-forwarded-proto'] = issuer.protocol.slice(0, -1)
    delete request.headers['x-forwarded-host']
    const mounted = request as IncomingMessage & { originalUrl?: string }
    mounted.url = url.pathname + url.search
    if (await front.interactions(provider, url, request, response)) return
    const retrySeconds = await front.strangers.begin(url.pathname, request)
    if (retrySeconds !== undefined) {
      const [status, text] = [429, tooOften(retrySeconds)] as const
      return sendAway({ config, request, response }, { status, text, retrySeconds })
    }
    mounted.url = adjusted(url, config)
    // The library finds out by comparison under which path it stands.
    mounted.originalUrl = config.path + mounted.url
    await answer(request, response)
  }

  return {
    /**
     * Answers a request whose path begins with the path of the tenant's login front, or asks for its metadata.
     * @param path what follows the path of the front, with its query
     * @returns false where the tenant has none: nothing was answered
     */
    async handle(
      tenant: Tenant,
      path: string,
      request: IncomingMessage,
      response: ServerResponse,
      origin: LoginOrigin
    ): Promise<boolean> {
      origins.set(request, origin)
      const found = frontFor(tenant)
      if (found === undefined) return false
      const url = frontUrlOf(path, found.config.issuer)
      try {
        await serve(found, url, request, response)
      } catch (error) {
        if (!(error instanceof GatewayError) || response.headersSent) throw error
        sendAway({ config: found.config, request, response }, { status: 503, text: error.message, retrySeconds: 1 })
      }
      return true
    },

    /**
     * The ID token that the provider gave somebody last, one that holds for a while.
     * @returns undefined where there is none: they have to sign in again
     * @throws Error where the provider cannot be asked
     */
    async idTokenOf(tenant: Tenant, subject: string): Promise<string | undefined> {
      const { identities } = frontFor(tenant)?.front ?? {}
      const known = await identities?.get(subject)
      if (holds(known?.idToken, wall.now())) return known?.idToken
      const current = await identities?.current(subject)
      return holds(current?.idToken, wall.now()) ? current?.idToken : undefined
    },

    /**
     * Takes the ticket of a person who signed in for their account page.
     * @returns undefined where it was used, or is too old
     */
    takeTicket: async (tenant: Tenant, id: string) => frontFor(tenant)?.front.connectionsSignIn.takeTicket(id),

    /** Does the provider still know a person of this issuer? Of others it is not asked. */
    async knows(tenant: Tenant, { issuer, subject }: { readonly issuer: string; readonly subject: string }) {
      const { config, front } = frontFor(tenant) ?? {}
      return front === undefined || config?.issuer !== issuer || (await front.connectionsSignIn.knows(subject))
    },

    /** Requests to the provider of a tenant. */
    fetchFor,
    /** Returns the fetch for keys of issuers: those of the login fronts are answered without a request. */
    fetchForKeys: withOwnKeys(createFetchFor({ guard: guard() }), snapshot, (tenant) => frontFor(tenant)?.front)
  }
}

/**
 * Hosts that ask for no scope of the tenant mean all that there is (MCP basic/authorization, "Scope Selection
 * Strategy"). The library asks a person for scopes that are missing, so that a token for an endpoint without any would
 * be had without asking.
 *
 * Answers go into the query of the redirect. The library knows other modes: of a form with a script of its own, and of
 * the fragment, which scripts of a page read.
 *
 * Signing out ends on a page of ours: anybody may register a client, and with it any address to send browsers to.
 */
function adjusted(url: URL, { scopes }: LoginConfig): string {
  const { pathname, searchParams } = url
  if (pathname === '/session/end') for (const name of ['post_logout_redirect_uri', 'state']) searchParams.delete(name)
  if (searchParams.getAll('response_mode').some((mode) => mode !== 'query'))
    searchParams.set('response_mode', 'of-another-server')
  const asked = (searchParams.get('scope') ?? '').split(' ').filter((scope) => scope !== '')
  if (pathname === '/auth' && searchParams.has('client_id') && !asked.some((scope) => scopes.includes(scope)))
    searchParams.set('scope', [...new Set([...asked, ...scopes, 'offline_access'])].join(' '))
  return pathname + url.search
}

/**
 * RFC 6749 section 5.2: hosts keep what they have and come back. With an answer of another form they sign in anew.
 * People in a browser are told by a page.
 */
function sendAway(
  { config, request, response }: { config: LoginConfig; request: IncomingMessage; response: ServerResponse },
  { status, text, retrySeconds }: { status: 429 | 503; text: string; retrySeconds: number }
): void {
  request.resume()
  response.setHeader('retry-after', retrySeconds).setHeader('connection', 'close')
  if (request.headers.accept?.includes('text/html') === true) return sendPage(response, status, errorPage(config, text))
  response
    .writeHead(status, { 'content-type': 'application/json' })
    .end(JSON.stringify({ error: 'temporarily_unavailable', error_description: text }))
}

/** Whether an ID token still holds. Its signature was verified when it came. */
const holds = (idToken: string | undefined, now: number): boolean =>
  idToken !== undefined && (decodeJwt(idToken).exp ?? 0) * 1000 - idTokenMarginMs > now
