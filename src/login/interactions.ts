// Where a person takes part in an authorization: they are sent to the tenant's provider to sign in, come back, and say
// whether the client may act for them.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { InteractionResults, Provider } from 'oidc-provider'
import type { LoginConfig } from '../config/auth/login-config.ts'
import { GatewayError } from '../protocol/messages.ts'
import { firstOf } from '../protocol/own-text.ts'
import type { ConnectionsSignIn } from './connections-sign-in.ts'
import { type createConsents, ownPages } from './consents.ts'
import { formTargets } from './redirect-guard.ts'
import { consentBody, errorPage, escaped, sendPage, startAgain } from './pages.ts'
import { shownClient } from './strangers/registration.ts'
import { createSignInPages, type SignInPagesOptions } from './sign-in-pages.ts'

type InteractionsOptions = SignInPagesOptions & {
  readonly consents: ReturnType<typeof createConsents>
  readonly connectionsSignIn: ConnectionsSignIn
}

/** The longest address of an app on the page, in characters. */
const maxAddressChars = 200

const providerAway = "The tenant's identity provider cannot be reached at the moment. Try again in a minute."

type Details = Awaited<ReturnType<Provider['interactionDetails']>>

export function createInteractions(options: InteractionsOptions) {
  const { tenant, config, records, identities, consents, connectionsSignIn, note, log } = options
  const { sendToProvider, callback } = createSignInPages(options)

  const fail = (response: ServerResponse, text: string, status = 400): void =>
    sendPage(response, status, errorPage(config, text))

  async function show(
    provider: Provider,
    details: Details,
    request: IncomingMessage,
    response: ServerResponse
  ): Promise<void> {
    const back = (await records.take('SignedIn', details.uid)) as InteractionResults | undefined
    if (back !== undefined) return await provider.interactionFinished(request, response, back)
    if (details.prompt.name === 'login') {
      const asked = textOf(details.params['prompt']).split(' ')
      return await sendToProvider(details.uid, asked, provider.createContext(request, response))
    }
    const client = await provider.Client.find(String(details.params['client_id']))
    if (client === undefined) return fail(response, `The app is not known here any more. ${startAgain}`)
    const identity = await identities.get(details.session?.accountId ?? '')
    const name = shownClient(client.clientName, client.clientId)
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
    const { added: _added, ...asked } = consentOf(config, details)
    note(request, {
      ...asked,
      ...(answer === 'deny' && { refused: 'the person did not allow it' })
    })
    const result =
      answer === 'allow'
        ? { consent: { grantId: await saveGrant(provider, config, details) } }
        : { error: 'access_denied', error_description: 'the person did not allow it', answered: true }
    await provider.interactionFinished(request, response, result)
  }

  /**
   * @param url of the request, below the path of the login front
   * @returns false where it is none of these pages: nothing was answered
   */
  return async (provider: Provider, url: URL, request: IncomingMessage, response: ServerResponse): Promise<boolean> => {
    const isPage = url.pathname.startsWith('/interaction/')
    const isConsents = url.pathname.startsWith('/consents')
    const isDoor = url.pathname === '/connections' && request.method === 'GET'
    if (!isPage && !isConsents && !isDoor && !(url.pathname === '/callback' && request.method === 'GET')) return false
    try {
      if (isConsents) {
        if (!(await consents(provider, url.pathname.slice('/consents'.length), request, response)))
          await sendToProvider(`${ownPages}/consents`, [], provider.createContext(request, response))
      } else if (isDoor) {
        // Of the query nothing else is kept, or shown again: a stranger writes it.
        const state = url.searchParams.get('state') ?? ''
        const page = `${ownPages}/connections?state=${state}`
        if (!(await connectionsSignIn.answer(provider, state, request, response)))
          await sendToProvider(page, [], provider.createContext(request, response))
      } else if (isPage) await interaction(provider, url.pathname.slice('/interaction/'.length), request, response)
      else await callback(provider, url, provider.createContext(request, response))
    } catch (error) {
      log.error({ tenant: tenant.id, err: error }, 'a page of the login front failed')
      if (response.headersSent) response.destroy()
      else fail(response, error instanceof GatewayError ? error.message : providerAway, 503)
    }
    return true
  }
}

/** Adds the scopes to those that the client was allowed before. @returns the id of the grant */
async function saveGrant(
  provider: Provider,
  { resources }: LoginConfig,
  { prompt, params, session, grantId }: Details
): Promise<string> {
  const known = grantId === undefined ? undefined : await provider.Grant.find(grantId)
  const grant =
    known ?? new provider.Grant({ accountId: session?.accountId ?? '', clientId: String(params['client_id']) })
  const { missingOIDCScope, missingResourceScopes } = prompt.details as {
    readonly missingOIDCScope?: string[]
    readonly missingResourceScopes?: Record<string, string[]>
  }
  if (missingOIDCScope !== undefined) grant.addOIDCScope(missingOIDCScope.join(' '))
  // Whoever allows an endpoint does so for both of its transports.
  for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {}))
    for (const [url, endpoint] of Object.entries(resources))
      if (endpoint === resources[resource]) grant.addResourceScope(url, scopes.join(' '))
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
  const { client, resource, scopes, added } = consentOf(config, details)
  const body = consentBody({
    ...who,
    site: client.startsWith('https://') ? new URL(client).host : undefined,
    target: isWeb ? redirectUri.host : `an app on this device (${addressOf(redirectUri)})`,
    resource,
    scopes: scopes.map((scope) => (added.includes(scope) ? `${scope} (new)` : scope)),
    path: `${config.path}/interaction/${uid}`
  })
  const heading = `Allow <bdi>${escaped(who.client)}</bdi>?`
  const page = { ...config, title: `Allow ${who.client}?`, heading, body }
  sendPage(response, 200, page, formTargets(redirectUri))
}

/** Returns the address of an app, without its query. */
const addressOf = ({ href }: URL): string => firstOf(href.split('?', 1)[0] ?? '', maxAddressChars)

/** Describes the consent that the person is asked for. */
function consentOf(
  { scopes, resources }: LoginConfig,
  { params, prompt, session }: Pick<Details, 'params' | 'prompt' | 'session'>
) {
  const missing = Object.values((prompt.details['missingResourceScopes'] ?? {}) as Record<string, string[]>).flat()
  const asked = textOf(params['scope'])
    .split(' ')
    .filter((scope) => scopes.includes(scope))
  const known = asked.filter((scope) => !missing.includes(scope))
  return {
    action: 'consent',
    subject: session?.accountId,
    client: String(params['client_id']),
    redirectUri: String(params['redirect_uri']),
    resource: [...new Set([params['resource']].flat().map((url) => resources[String(url)] ?? url))].join(', '),
    scopes: asked,
    /** The scopes that are new, where the client was allowed others before. */
    added: known.length > 0 ? missing : []
  } as const
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
