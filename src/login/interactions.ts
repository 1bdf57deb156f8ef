// Where a person takes part in an authorization: they are sent to the tenant's provider to sign in, come back, and say
// whether the client may act for them.

import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { InteractionResults, Provider } from 'oidc-provider'
import type { LoginConfig } from '../config/auth/login-config.ts'
import type { Tenant } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/messages.ts'
import type { createIdentities } from './identities.ts'
import { SignInRefused } from './identity.ts'
import type { LoginEvents } from './login-events.ts'
import { consentBody, errorPage, sendPage, startAgain } from './pages.ts'
import type { LoginRecords } from './records.ts'
import { type createSignIn, type PendingSignIn, saidByProvider } from './sign-in.ts'

interface InteractionsOptions {
  readonly tenant: Tenant
  readonly config: LoginConfig
  readonly records: LoginRecords
  readonly signIn: ReturnType<typeof createSignIn>
  readonly identities: ReturnType<typeof createIdentities>
  readonly note: LoginEvents
  readonly log: Log
}

/** Time for an authorization, from the first redirect to the last; in seconds. */
export const interactionSeconds = 15 * 60
const interactionMs = interactionSeconds * 1_000
/** One for each sign-in, since a browser may have several open. */
const browserCookieOf = (state: string): string => `gatehouse_sign_in_${digestOf(state).slice(0, 16)}`

const providerAway = "The tenant's identity provider cannot be reached at the moment. Try again in a minute."

type Context = ReturnType<Provider['createContext']>
type Details = Awaited<ReturnType<Provider['interactionDetails']>>

export function createInteractions({ tenant, config, records, signIn, identities, note, log }: InteractionsOptions) {
  const callbackPath = `${config.path}/callback`
  const cookieOptions = {
    path: callbackPath,
    httpOnly: true,
    sameSite: 'lax',
    secure: config.issuer.startsWith('https:')
  } as const

  const fail = (response: ServerResponse, text: string, status = 400): void =>
    sendPage(response, status, errorPage(config.name, text))

  function redirect(response: ServerResponse, location: string): void {
    response.writeHead(303, { location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }).end()
  }

  async function sendToProvider({ uid, params }: Details, { cookies, res }: Context): Promise<void> {
    // What the client asks for the provider to do; consent is asked for here.
    const asked = textOf(params['prompt']).split(' ')
    const prompt = ['login', 'select_account'].find((each) => asked.includes(each))
    // Each time that the page is asked for, which a stranger who has begun once may do without end.
    if ((await records.count('signIns', 60_000)) > config.authorizationsPerMinute)
      return fail(res, `Too many people sign in at the moment. ${startAgain}`, 429)
    const { pending, url } = await signIn.begin(uid, prompt)
    // Whoever comes back has to be the browser that was sent (OAuth 2.0 Security BCP, RFC 9700 section 4.7).
    const browser = randomBytes(32).toString('base64url')
    await records.write('SignIn', pending.state, { ...pending, browser: digestOf(browser) }, interactionMs)
    cookies.set(browserCookieOf(pending.state), browser, { ...cookieOptions, maxAge: interactionMs })
    redirect(res, url)
  }

  async function callback(url: URL, { cookies, req, res }: Context): Promise<void> {
    const state = url.searchParams.get('state') ?? ''
    const pending = (await records.take('SignIn', state)) as (PendingSignIn & { browser: string }) | undefined
    const browserCookie = browserCookieOf(state)
    const browser = cookies.get(browserCookie)
    if (pending === undefined || browser === undefined || !isEqual(digestOf(browser), pending.browser)) {
      note(req, { action: 'sign-in', refused: 'expired, used already, or begun in another browser' })
      return fail(res, `It has expired, was used already, or began in another browser. ${startAgain}`)
    }
    const result = await signedIn(url, pending, req)
    await records.write('SignedIn', pending.uid, result, interactionMs)
    cookies.set(browserCookie, '', { ...cookieOptions, maxAge: 0 })
    redirect(res, `${config.path}/interaction/${pending.uid}`)
  }

  /** @returns what the authorization server is told of it */
  async function signedIn(url: URL, pending: PendingSignIn, request: IncomingMessage): Promise<InteractionResults> {
    try {
      const identity = await signIn.finish(url.searchParams, pending)
      await identities.keep(identity)
      log.info({ tenant: tenant.id, subject: identity.subject }, 'signed in')
      note(request, { action: 'sign-in', subject: identity.subject })
      return { login: { accountId: identity.subject } }
    } catch (error) {
      const reason = saidByProvider(error)
      log.warn({ tenant: tenant.id, reason }, "signing in at the tenant's identity provider failed")
      note(request, { action: 'sign-in', refused: reason })
      if (error instanceof SignInRefused && error.error === 'access_denied')
        return { error: 'access_denied', error_description: 'the identity provider did not let the person in' }
      return { error: 'server_error', error_description: 'the identity provider answered in a way that cannot be used' }
    }
  }

  async function show(
    provider: Provider,
    details: Details,
    request: IncomingMessage,
    response: ServerResponse
  ): Promise<void> {
    const back = (await records.take('SignedIn', details.uid)) as InteractionResults | undefined
    if (back !== undefined) return await provider.interactionFinished(request, response, back)
    if (details.prompt.name === 'login') return await sendToProvider(details, provider.createContext(request, response))
    const client = await provider.Client.find(String(details.params['client_id']))
    if (client === undefined) return fail(response, `The app is not known here any more. ${startAgain}`)
    const identity = await identities.get(details.session?.accountId ?? '')
    const name = (client.clientName ?? client.clientId).slice(0, 100)
    const account = identity?.name ?? details.session?.accountId ?? ''
    askConsent(config, details, { client: name, account }, response)
  }

  async function interaction(
    provider: Provider,
    path: string,
    request: IncomingMessage,
    response: ServerResponse
  ): Promise<void> {
    const [uid = '', answer] = path.split('/')
    let details: Details
    try {
      details = await provider.interactionDetails(request, response)
    } catch {
      return fail(response, `It has expired, or began in another browser. ${startAgain}`)
    }
    if (details.uid !== uid) return fail(response, `It is not the one that this browser began. ${startAgain}`)
    if (request.method === 'GET' && answer === undefined) return await show(provider, details, request, response)
    const isConsent = request.method === 'POST' && details.prompt.name === 'consent'
    if (!isConsent || (answer !== 'allow' && answer !== 'deny')) return fail(response, startAgain, 404)
    // A page of another origin that the tenant lists may be of the same site, whose forms browsers send cookies with.
    if (request.headers.origin !== new URL(config.issuer).origin)
      return fail(response, `It was answered from another page than this one. ${startAgain}`, 403)
    // The body of the form is empty.
    request.resume()
    note(request, {
      ...consentOf(config, details),
      ...(answer === 'deny' && { refused: 'the person did not allow it' })
    })
    const result =
      answer === 'allow'
        ? { consent: { grantId: await saveGrant(provider, details) } }
        : { error: 'access_denied', error_description: 'the person did not allow it' }
    const [subject, client] = [details.session?.accountId, details.params['client_id']]
    if (answer === 'allow') log.info({ tenant: tenant.id, subject, client }, 'a client was allowed to act for a person')
    await provider.interactionFinished(request, response, result)
  }

  /**
   * @param url of the request, below the path of the login front
   * @returns false where it is none of these pages: nothing was answered
   */
  return async (provider: Provider, url: URL, request: IncomingMessage, response: ServerResponse): Promise<boolean> => {
    const isPage = url.pathname.startsWith('/interaction/')
    if (!isPage && !(url.pathname === '/callback' && request.method === 'GET')) return false
    try {
      if (isPage) await interaction(provider, url.pathname.slice('/interaction/'.length), request, response)
      else await callback(url, provider.createContext(request, response))
    } catch (error) {
      log.error({ tenant: tenant.id, err: error }, 'a page of the login front failed')
      if (response.headersSent) response.destroy()
      else fail(response, error instanceof GatewayError ? error.message : providerAway, 503)
    }
    return true
  }
}

/** What the client may do is added to what it was allowed before. @returns its id */
async function saveGrant(provider: Provider, { prompt, params, session, grantId }: Details): Promise<string> {
  const known = grantId === undefined ? undefined : await provider.Grant.find(grantId)
  const grant =
    known ?? new provider.Grant({ accountId: session?.accountId ?? '', clientId: String(params['client_id']) })
  const { missingOIDCScope, missingResourceScopes } = prompt.details as {
    readonly missingOIDCScope?: string[]
    readonly missingResourceScopes?: Record<string, string[]>
  }
  if (missingOIDCScope !== undefined) grant.addOIDCScope(missingOIDCScope.join(' '))
  for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {}))
    grant.addResourceScope(resource, scopes.join(' '))
  return await grant.save()
}

function askConsent(
  config: LoginConfig,
  details: Details,
  who: { readonly client: string; readonly account: string },
  response: ServerResponse
): void {
  const { uid, params } = details
  const redirectUri = new URL(String(params['redirect_uri']))
  const isWeb = redirectUri.protocol === 'https:' || redirectUri.protocol === 'http:'
  const { resource, scopes } = consentOf(config, details)
  const body = consentBody({
    ...who,
    target: isWeb ? redirectUri.host : `an app on this device (${redirectUri.protocol}//)`,
    resource,
    scopes,
    path: `${config.path}/interaction/${uid}`
  })
  const page = { name: config.name, title: `Allow ${who.client}?`, body }
  sendPage(response, 200, page, [isWeb ? redirectUri.origin : redirectUri.protocol])
}

/** What the person is asked for. */
function consentOf(
  { scopes }: LoginConfig,
  { params, prompt, session }: Pick<Details, 'params' | 'prompt' | 'session'>
) {
  const missing = Object.values((prompt.details['missingResourceScopes'] ?? {}) as Record<string, string[]>).flat()
  return {
    action: 'consent',
    subject: session?.accountId,
    client: String(params['client_id']),
    redirectUri: String(params['redirect_uri']),
    resource: [params['resource']].flat().join(', '),
    scopes: missing.length > 0 ? missing : scopes
  } as const
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

const digestOf = (text: string): string => hash('sha256', text, 'base64url')

const isEqual = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
