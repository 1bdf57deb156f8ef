// Tokens of the login front that are bound to a key of the host (RFC 9449): got and used by a library as hosts have
// one; and the attacks on proofs there, at two processes.

import t from 'tap'
import * as oauth from 'oauth4webapi'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { initializeBody } from '../kit/acme-gateway.ts'
import { browser } from '../kit/browser.ts'
import { jsonHeaders, send } from '../kit/client.ts'
import { keyHolder } from '../kit/dpop.ts'
import { quiet } from '../store/kit.ts'
import { begin, loginGateway, pkce, redirectUri, register, use } from './kit.ts'

type Front = Pick<Awaited<ReturnType<typeof loginGateway>>, 'issuer' | 'url'>

/** What a person allowed, up to the code. */
async function codeFor(front: Front, clientId: string) {
  const { verifier, challenge } = pkce()
  const person = browser()
  const page = await person.go(begin(front, clientId, { code_challenge: challenge }), redirectUri)
  const { url } = await person.press(page, '/allow', redirectUri)
  return { verifier, url, code: url.searchParams.get('code') ?? '' }
}

t.test('a host whose library knows DPoP gets a bound token and uses it, with nonces at both places', async (t) => {
  const front = await loginGateway(t, { auth: { dpop: 'required', dpopNonces: true } })
  const insecure = { [oauth.allowInsecureRequests]: true }
  const issuer = new URL(front.issuer)
  const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, insecure))
  t.match(as.dpop_signing_alg_values_supported, ['ES256'])
  const { clientId } = await register(front)
  const client = { client_id: clientId }
  const { verifier, url } = await codeFor(front, clientId)
  const parameters = oauth.validateAuthResponse(as, client, url, 's')
  const DPoP = oauth.DPoP({}, await oauth.generateKeyPair('ES256'))
  let challenges = 0
  async function withNonce<T>(act: () => Promise<T>): Promise<T> {
    try {
      return await act()
    } catch (error) {
      if (!oauth.isDPoPNonceError(error)) throw error
      challenges += 1
      return await act()
    }
  }
  const got = await withNonce(async () =>
    oauth.processAuthorizationCodeResponse(
      as,
      client,
      await oauth.authorizationCodeGrantRequest(as, client, oauth.None(), parameters, redirectUri, verifier, {
        ...insecure,
        DPoP
      })
    )
  )
  t.equal(got.token_type, 'dpop')
  t.equal(challenges, 1, 'the token endpoint asked for a nonce')
  const call = async () => {
    const request = oauth.protectedResourceRequest(
      got.access_token,
      'POST',
      new URL(front.url()),
      new Headers(jsonHeaders),
      initializeBody(),
      { ...insecure, DPoP }
    )
    const response = await request
    await response.body?.cancel()
    return response.status
  }
  t.equal(await withNonce(call), 200)
  t.equal(challenges, 2, 'and so did the endpoint')
  t.equal(await call(), 200)
  t.equal(await use(front.url(), got.access_token), 401, 'nobody can use it without the key')
})

t.test(
  'where no other tokens are taken, none is issued without a proof, and hosts are told at their registration',
  async (t) => {
    const front = await loginGateway(t, { auth: { dpop: 'required' } })
    const { clientId, body: registered } = await register(front)
    t.equal(registered['dpop_bound_access_tokens'], true)
    const { code, verifier } = await codeFor(front, clientId)
    const body = new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: clientId,
      redirect_uri: redirectUri,
      code,
      code_verifier: verifier
    })
    const ask = async (headers: Record<string, string>) => {
      const response = await fetch(`${front.issuer}/token`, { method: 'POST', body, headers })
      return { status: response.status, body: await response.json() }
    }
    t.match(await ask({}), { status: 400, body: { error: 'invalid_grant' } })
    const metadata = await (await fetch(`${front.issuer}/.well-known/openid-configuration`)).json()
    const { dpop_signing_alg_values_supported: algs } = metadata as { readonly dpop_signing_alg_values_supported: [] }
    t.ok(algs.includes('Ed25519' as never))
    const holder = await keyHolder('Ed25519')
    const dpop = await holder.proof({ url: `${front.issuer}/token` })
    const got = await ask({ dpop })
    t.match(got, { status: 200, body: { token_type: 'DPoP' } }, 'with one it gets it')
    // RFC 9864: the name that says which curve it is.
    const { access_token: token } = got.body as { readonly access_token: string }
    const proof = await holder.proof({ url: front.url(), token })
    const headers = { ...jsonHeaders, authorization: `DPoP ${token}`, dpop: proof }
    t.equal((await send(front.url(), { headers, body: initializeBody() })).status, 200, 'whatever it was signed with')
  }
)

t.test('a proof for the token endpoint is good once, at all processes together', async (t) => {
  const store = await createSqliteStore({ path: ':memory:', clock: Date, log: quiet })
  t.teardown(() => store.close())
  const overrides = { store: { ...store, close: async () => {} } }
  const front = await loginGateway(t, { overrides })
  const other = await loginGateway(t, { overrides, provider: front.provider, top: { publicUrl: front.origin } })
  const { host } = new URL(front.origin)
  const places = [front, other].map(({ port }) => `http://127.0.0.1:${port}/login/acme/token`)
  const holder = await keyHolder()
  const url = `${front.issuer}/token`
  const { clientId } = await register(front)
  const ask = async (at: string | undefined, dpop: string, parameters: Record<string, string>) => {
    const headers = { host, dpop, 'content-type': 'application/x-www-form-urlencoded' }
    return await send(at ?? '', {
      headers,
      body: new URLSearchParams({ client_id: clientId, ...parameters }).toString()
    })
  }
  const logIn = async () => {
    const { code, verifier } = await codeFor(front, clientId)
    const grant = { grant_type: 'authorization_code', redirect_uri: redirectUri, code, code_verifier: verifier }
    const { json } = await ask(places[0], await holder.proof({ url }), grant)
    return { grant_type: 'refresh_token', refresh_token: String(json.refresh_token) }
  }
  const [first, second] = [await logIn(), await logIn()]
  const raced = await holder.proof({ url })
  const answers = await Promise.all([ask(places[0], raced, first), ask(places[1], raced, second)])
  t.same(
    answers.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 400]
  )
  t.match(answers.find(({ status }) => status === 400)?.json, { error: 'invalid_grant' })
  const third = await logIn()
  for (const at of places) t.equal((await ask(at, raced, third)).status, 400, 'nor later')
  t.equal((await ask(places[1], await holder.proof({ url }), third)).status, 200, 'a new one is good at the other')
  const thief = await keyHolder()
  const fourth = await logIn()
  t.equal((await ask(places[0], await thief.proof({ url }), fourth)).status, 400, 'a refresh token is bound, too')
})
