// What a person has allowed at a login front: listed, and taken back by themselves, on a page that works without
// JavaScript, or as JSON. Whoever has the session of the browser is the person.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Provider } from 'oidc-provider'
import type { LoginConfig } from '../config/auth/login-config.ts'
import type { createIdentities } from './people/identities.ts'
import type { LoginEvents } from './login-events.ts'
import { consentsBody, errorPage, sendPage, startAgain } from './pages.ts'
import { shownClient } from './strangers/registration.ts'
import type { LoginRecords } from './records.ts'

/**
 * The key of a sign-in for a page of the gateway, before the path. Sign-ins for clients have the id of an interaction.
 */
export const ownPages = 'own pages '

/** A client that a person has allowed to act for them. */
export interface Consent {
  readonly id: string
  readonly client: string
  /** The name that the client gives itself. */
  readonly name: string
  /** Scopes by endpoint. */
  readonly resources: Readonly<Record<string, string>>
  /** RFC 3339. */
  readonly since: string
}

interface ConsentsOptions {
  readonly config: LoginConfig
  readonly records: LoginRecords
  readonly identities: ReturnType<typeof createIdentities>
  readonly note: LoginEvents
}

type Context = ReturnType<Provider['createContext']>

export function createConsents({ config, records, identities, note }: ConsentsOptions) {
  async function consentOf(subject: string, id: string): Promise<Consent | undefined> {
    const grant = (await records.read('Grant', id)) as
      | { accountId?: string; clientId?: string; resources?: Record<string, string>; iat?: number }
      | undefined
    if (grant?.clientId === undefined || grant.accountId !== subject) return undefined
    const client = (await records.read('Client', grant.clientId)) as { client_name?: unknown } | undefined
    const shownName = shownClient(client?.client_name, grant.clientId)
    const since = new Date((grant.iat ?? 0) * 1_000).toISOString()
    const allowed = Object.entries(grant.resources ?? {})
    // Of the two transports of an endpoint, and of one that is no more, each once.
    const resources = Object.fromEntries(allowed.map(([url, scopes]) => [config.resources[url] ?? url, scopes]))
    return { id, client: grant.clientId, name: shownName, resources, since }
  }

  async function list(subject: string): Promise<Consent[]> {
    const all = await Promise.all((await records.grantsOf(subject)).map((id) => consentOf(subject, id)))
    return all.filter((each) => each !== undefined).toReversed()
  }

  /** @returns false where it is none of theirs */
  async function revoke(subject: string, id: string, request: IncomingMessage): Promise<boolean> {
    const consent = await consentOf(subject, id)
    if (consent === undefined) return false
    await records.endGrant(id)
    const { client, resources } = consent
    note(request, { action: 'consent-revoked', subject, client, resource: Object.keys(resources).join(', ') })
    return true
  }

  function answerJson(response: ServerResponse, status: number, body: object): void {
    response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
    response.end(JSON.stringify(body))
  }

  /**
   * @param path below the one of the consents
   * @returns false where nobody is signed in, and a browser has to be sent to the provider: nothing was answered
   */
  return async (
    provider: Provider,
    path: string,
    request: IncomingMessage,
    response: ServerResponse
  ): Promise<boolean> => {
    const isJson = request.headers.accept?.includes('application/json') === true
    const { accountId } = await provider.Session.get(provider.createContext(request, response))
    const identity = accountId === undefined ? undefined : await identities.get(accountId)
    request.resume()
    if (identity === undefined && !isJson && request.method === 'GET' && path === '') return false
    if (identity === undefined)
      return (
        answerJson(response, 401, {
          error: 'login_required',
          error_description: `Sign in at ${config.issuer}/consents.`
        }),
        true
      )
    const [, id = '', action] = path.split('/')
    if (request.method === 'GET' && path === '') {
      const consents = await list(identity.subject)
      if (isJson) answerJson(response, 200, { account: identity.name, consents })
      else {
        const body = consentsBody(`${config.path}/consents`, identity.name, consents, config.tokenSeconds)
        sendPage(response, 200, { ...config, title: 'What you allowed', body })
      }
    } else if (request.method !== 'POST' || action !== 'revoke') sendPage(response, 404, errorPage(config, startAgain))
    // A page of another origin that the tenant lists may be of the same site, whose forms browsers send cookies with.
    else if (request.headers.origin !== new URL(config.issuer).origin)
      if (isJson)
        answerJson(response, 403, {
          error: 'invalid_request',
          error_description: `Send the header "Origin: ${new URL(config.issuer).origin}".`
        })
      else sendPage(response, 403, errorPage(config, `It was answered from another page than this one. ${startAgain}`))
    else if (!(await revoke(identity.subject, id, request)))
      if (isJson)
        answerJson(response, 404, { error: 'not_found', error_description: 'You have allowed no such thing.' })
      else sendPage(response, 404, errorPage(config, 'It was taken back already.'))
    else if (isJson) response.writeHead(204, { 'cache-control': 'no-store' }).end()
    else response.writeHead(303, { location: `${config.path}/consents`, 'cache-control': 'no-store' }).end()
    return true
  }
}

/** The session of the library, for somebody who did not come for a client. One of somebody else in the browser ends. */
export async function beginSession(
  provider: Provider,
  { issuer, path, sessionHours }: LoginConfig,
  accountId: string,
  context: Context
): Promise<void> {
  const before = await provider.Session.get(context)
  if (before.accountId !== undefined) await before.destroy()
  const session = new provider.Session()
  session.loginAccount({ accountId })
  await session.save(sessionHours * 3_600)
  const secure = issuer.startsWith('https:')
  context.cookies.set('gatehouse_session', session.jti, { httpOnly: true, sameSite: 'lax', path, secure })
}
