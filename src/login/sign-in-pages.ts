// The way of a browser to the tenant's provider and back: whoever comes back has to be the browser that was sent.

import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { InteractionResults, Provider } from 'oidc-provider'
import type { LoginConfig } from '../config/auth/login-config.ts'
import type { Tenant } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { beginSession, ownPages } from './consents.ts'
import type { createIdentities } from './people/identities.ts'
import { SignInRefused } from './people/identity.ts'
import type { LoginEvents } from './login-events.ts'
import { errorPage, sendPage, startAgain, tooOften } from './pages.ts'
import type { LoginRecords } from './records.ts'
import { type createSignIn, type PendingSignIn, saidByProvider } from './people/sign-in.ts'
import type { StrangerLimits } from './strangers/stranger-limits.ts'

export interface SignInPagesOptions {
  readonly tenant: Tenant
  readonly config: LoginConfig
  readonly records: LoginRecords
  readonly signIn: ReturnType<typeof createSignIn>
  readonly identities: ReturnType<typeof createIdentities>
  readonly strangers: StrangerLimits
  readonly note: LoginEvents
  readonly log: Log
}

/** Time for an authorization, from the first redirect to the last; in seconds. */
export const interactionSeconds = 15 * 60
const interactionMs = interactionSeconds * 1_000
/** Returns the name of the cookie of a sign-in: a browser may have several open. */
const browserCookieOf = (state: string): string => `gatehouse_sign_in_${digestOf(state).slice(0, 16)}`

type Context = ReturnType<Provider['createContext']>

export function createSignInPages(options: SignInPagesOptions) {
  const { tenant, config, records, signIn, identities, strangers, note, log } = options
  const callbackPath = `${config.path}/callback`
  const cookieOptions = {
    path: callbackPath,
    httpOnly: true,
    sameSite: 'lax',
    secure: config.issuer.startsWith('https:')
  } as const

  const fail = (response: ServerResponse, text: string, status = 400): void =>
    sendPage(response, status, errorPage(config, text))

  function redirect(response: ServerResponse, location: string): void {
    response.writeHead(303, { location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }).end()
  }

  /** @param asked what the client asks for the provider to do; consent is asked for here */
  async function sendToProvider(uid: string, asked: readonly string[], { cookies, req, res }: Context): Promise<void> {
    const prompt = ['login', 'select_account'].find((each) => asked.includes(each))
    // Each time that the page is asked for, which a stranger who has begun once may do without end.
    const retrySeconds = await strangers.take('signIns', req)
    if (retrySeconds !== undefined) {
      res.setHeader('retry-after', retrySeconds)
      return fail(res, tooOften(retrySeconds), 429)
    }
    const { pending, url } = await signIn.begin(uid, prompt)
    // Whoever comes back has to be the browser that was sent (OAuth 2.0 Security BCP, RFC 9700 section 4.7).
    const browser = randomBytes(32).toString('base64url')
    await records.write('SignIn', pending.state, { ...pending, browser: digestOf(browser) }, interactionMs)
    cookies.set(browserCookieOf(pending.state), browser, { ...cookieOptions, maxAge: interactionMs })
    redirect(res, url)
  }

  async function callback(provider: Provider, url: URL, context: Context): Promise<void> {
    const { cookies, req, res } = context
    const state = url.searchParams.get('state') ?? ''
    const pending = (await records.take('SignIn', state)) as (PendingSignIn & { browser: string }) | undefined
    const browserCookie = browserCookieOf(state)
    const browser = cookies.get(browserCookie)
    if (pending === undefined || browser === undefined || !isEqual(digestOf(browser), pending.browser)) {
      note(req, { action: 'sign-in', refused: 'expired, used already, or begun in another browser' })
      return fail(res, `It has expired, was used already, or began in another browser. ${startAgain}`)
    }
    const result = await signedIn(url, pending, req)
    cookies.set(browserCookie, '', { ...cookieOptions, maxAge: 0 })
    if (pending.uid.startsWith(ownPages)) {
      const { accountId } = result.login ?? {}
      if (accountId === undefined) return fail(res, `The identity provider did not let you in. ${startAgain}`)
      await beginSession(provider, config, accountId, context)
      return redirect(res, config.path + pending.uid.slice(ownPages.length))
    }
    await records.write('SignedIn', pending.uid, result, interactionMs)
    redirect(res, `${config.path}/interaction/${pending.uid}`)
  }

  /** @returns what the authorization server is told of it */
  async function signedIn(url: URL, pending: PendingSignIn, request: IncomingMessage): Promise<InteractionResults> {
    try {
      const identity = await signIn.finish(url.searchParams, pending)
      await identities.keep(identity)
      note(request, { action: 'sign-in', subject: identity.subject })
      return { login: { accountId: identity.subject } }
    } catch (error) {
      const reason = saidByProvider(error)
      log.warn({ tenant: tenant.id, reason }, "signing in at the tenant's identity provider failed")
      note(request, { action: 'sign-in', refused: reason })
      if (error instanceof SignInRefused && error.error === 'access_denied')
        return { error: 'access_denied', error_description: 'the person is not let in' }
      const own = error instanceof SignInRefused && error.error === 'server_error' ? `: ${described(error)}` : ''
      const text = `the identity provider answered in a way that cannot be used${own}`
      return { error: 'server_error', error_description: text }
    }
  }

  return { sendToProvider, callback }
}

/** RFC 6749 section 4.1.2.1: no quotation marks, no backslash, ASCII. */
const described = ({ message }: Error): string => message.replaceAll(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, '?')

const digestOf = (text: string): string => hash('sha256', text, 'base64url')

const isEqual = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
