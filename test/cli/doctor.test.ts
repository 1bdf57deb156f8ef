// Every misconfiguration of the catalogue, made for real, is diagnosed as what it is. Its table is the catalogue's.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { newApiKey } from '../../src/auth/keyring.ts'
import { catalogue, Diagnosis, type FaultCode } from '../../src/hosts/doctor/catalogue.ts'
import { examine, type DoctorOptions } from '../../src/hosts/doctor/examine.ts'
import { sender } from '../../src/hosts/doctor/exchange.ts'
import { adminCall, adminGateway } from '../kit/admin.ts'
import { browser } from '../kit/browser.ts'
import { forgedKey, forgingIssuer } from '../kit/forging-issuer.ts'
import { gateway, key, type TestGatewayOptions } from '../kit/gateway.ts'
import { identityProvider, providerClient } from '../kit/identity-provider.ts'
import { issuer as idp } from '../kit/issuer.ts'
import { listen } from '../kit/listen.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { cli } from './kit.ts'
import {
  allowDevice,
  authority,
  fullQueue,
  loginProvider,
  notYetValid,
  socketServer,
  testProxy,
  wantsClientCertificate,
  type LoginProvider,
  type Misbehaviour
} from './doctor-kit.ts'

type Made = Partial<DoctorOptions> & { readonly url: string; readonly waitMs?: number }

const upstream = await startUpstream()
t.teardown(() => upstream.close())
const upstreams = { up: { url: upstream.url } }
const keyed = { keys: [{ name: 'ada', key }] }

/** What the doctor says, and the hops before it. */
async function diagnosed({ waitMs = 20_000, ...options }: Made): Promise<{ fault?: Diagnosis; hops: string[] }> {
  const hops: string[] = []
  const person = browser()
  try {
    await examine(
      { timeoutMs: 20_000, version: '1', ...options },
      {
        passed: (hop) => hops.push(hop),
        // What is sent to the callback has to arrive there.
        browse: (page, userCode) =>
          void (userCode === undefined ? person.go(page, 'http://127.0.0.1:1/') : allowDevice(page)).then(
            () => {},
            () => {}
          ),
        waitMs
      }
    )
    return { hops }
  } catch (error) {
    if (!(error instanceof Diagnosis)) throw error
    return { fault: error, hops }
  }
}

/** A gateway behind a proxy, which it names as its URL. */
async function behind(
  t: Test,
  misbehaviour: Misbehaviour = {},
  options: Partial<TestGatewayOptions> = {},
  tls?: string
): Promise<{ url: string }> {
  const proxy = await testProxy(t, misbehaviour, tls)
  const made = await gateway(t, { upstreams, auth: keyed, ...options, top: { publicUrl: proxy.url, ...options.top } })
  proxy.target = made.listening
  return { url: `${proxy.url}/t/acme/mcp` }
}

/** A gateway whose tenant signs people in at this provider. */
async function withLogin(t: Test, provider: Pick<LoginProvider, 'url'>, auth: object = {}): Promise<string> {
  const made = await gateway(t, { upstreams, auth: { issuers: [{ issuer: provider.url }], ...auth } })
  return made.url()
}

/** Tokens of an issuer that this tenant takes. */
async function withTokens(t: Test, claims: Record<string, unknown>, auth: object = {}, other = false) {
  const issuer = await forgingIssuer(t, { resource: 'urn:none', now: Date.now() })
  const made = await gateway(t, {
    upstreams,
    auth: { issuers: [{ issuer: issuer.issuer, jwksUri: issuer.jwksUri }], ...auth }
  })
  const stranger = other ? await forgedKey('ES256', issuer.key.kid) : undefined
  const token = await issuer.sign({ aud: made.url(), sub: 'ada', client_id: 'app', ...claims }, {}, stranger)
  return { url: made.url(), token }
}

const says = (status: number, text: string, headers: Record<string, string> = {}) => ({
  answers(_incoming: unknown, response: ServerResponse) {
    response.writeHead(status, { 'Content-Type': 'text/html', ...headers }).end(text)
    return true
  }
})
const only = (fits: RegExp, methods: readonly string[], answer: ReturnType<typeof says>): Misbehaviour => ({
  answers: ({ url, method }, response) =>
    fits.test(url ?? '') && methods.includes(method ?? '') && answer.answers(undefined, response)
})
/** Set by many a proxy: `add_header X-Request-ID $request_id always` of nginx. */
const marked = { 'X-Request-Id': '5d0c0c0e4a3b4c229a371df0a6f3b1c2' }
const now = (): number => Math.floor(Date.now() / 1_000)
const page = '<title>Sign in to Example</title><form><input type="password"></form>'
const loopbackClient = (more: object) => ({
  clients: [
    { client_id: 'host', redirect_uris: ['http://127.0.0.1/callback'], application_type: 'native' as const, ...more }
  ]
})

const cuts = (socket: Socket): void => void socket.once('data', () => socket.destroy())
const greets = (socket: Socket): void => void socket.write('SSH-2.0-OpenSSH_9.6\r\n')

const made: Readonly<Record<FaultCode, (t: Test) => Promise<Made> | Made>> = {
  url_invalid: () => ({ url: 'mcp.example.com' }),
  url_without_endpoint: async (t) => ({ url: (await gateway(t, { upstreams })).publicUrl }),
  dns_unknown: () => ({ url: 'http://nobody.invalid/t/acme/mcp' }),
  connection_refused: () => ({ url: 'http://127.0.0.1:1/t/acme/mcp' }),
  no_answer: async (t) => ({ url: `http://${await socketServer(t, () => {})}/t/acme/mcp`, timeoutMs: 2_000 }),
  not_reachable: async (t) => ({ url: `http://${await fullQueue(t)}/t/acme/mcp`, timeoutMs: 200 }),
  connection_cut: async (t) => ({ url: `http://${await socketServer(t, cuts)}/t/acme/mcp` }),
  not_http: async (t) => ({ url: `http://${await socketServer(t, greets)}/t/acme/mcp` }),
  tls_not_yet_valid: async (t) => ({ ...(await behind(t, {}, {}, 'not-yet')), ca: notYetValid }),
  tls_refused: async (t) => ({ url: `https://${await socketServer(t, cuts)}/t/acme/mcp` }),
  client_certificate_wanted: async (t) => ({ url: await wantsClientCertificate(t), ca: authority }),
  tls_expired: async (t) => ({ ...(await behind(t, {}, {}, 'expired')), ca: authority }),
  tls_wrong_name: async (t) => ({ ...(await behind(t, {}, {}, 'other-name')), ca: authority }),
  tls_unknown_ca: async (t) => await behind(t, {}, {}, 'localhost'),
  tls_incomplete_chain: async (t) => ({ ...(await behind(t, {}, {}, 'below-intermediate')), ca: authority }),
  tls_at_plain_port: async (t) => ({ url: (await behind(t)).url.replace('http:', 'https:') }),
  plain_at_tls_port: async (t) => ({ url: (await behind(t, {}, {}, 'good')).url.replace('https:', 'http:') }),
  redirects: async (t) => await behind(t, says(308, '', { Location: 'https://mcp.example.com/t/acme/mcp' })),
  login_page: async (t) => await behind(t, says(200, page)),
  own_authentication: async (t) => await behind(t, says(401, '', { 'WWW-Authenticate': 'Basic realm="staging"' })),
  bad_gateway: async (t) => ({ url: `${(await testProxy(t)).url}/t/acme/mcp` }),
  refused_on_the_way: async (t) => await behind(t, says(429, 'slow down', { 'Retry-After': '30' })),
  path_not_passed: async (t) => await behind(t, only(/^\/t\//, ['POST'], says(404, '<h1>404 Not Found</h1>'))),
  not_mcp: async (t) => ({ url: (await behind(t, says(200, '<h1>It works!</h1>'))).url }),
  host_refused: async (t) => await behind(t, { requestHeaders: { host: 'gateway.internal:8080' } }),
  origin_refused: async (t) => ({ ...(await behind(t)), origin: 'https://claude.ai' }),
  endpoint_unknown: async (t) => ({ url: (await behind(t)).url.replace('acme', 'acne') }),
  tenant_stopped: async (t) => {
    const made = await adminGateway(t, { upstreams })
    await adminCall(made.adminUrl, 'PUT', '/v1/tenants/acme/kills/tenant')
    return { url: made.url(), token: key }
  },
  gateway_busy: async (t) => {
    const made = await gateway(t, { upstreams, limits: { requestsPerSecondPerPrincipal: 1 } })
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
    for (let status = 0; status !== 429;)
      ({ status } = await fetch(made.url(), {
        method: 'POST',
        headers,
        body: '{"jsonrpc":"2.0","id":1,"method":"ping"}'
      }))
    return { url: made.url(), token: key }
  },
  challenge_missing: async (t) => await behind(t, { responseHeaders: { 'www-authenticate': undefined } }),
  challenge_changed: async (t) => {
    const challenge = 'Bearer resource_metadata="/.well-known/oauth-protected-resource/t/acme/mcp"'
    const auth = { issuers: [{ issuer: (await loginProvider(t)).url }] }
    return await behind(t, { responseHeaders: { 'www-authenticate': challenge } }, { auth })
  },
  key_needed: async (t) => await behind(t),
  public_url_differs: async (t) => {
    const provider = await loginProvider(t)
    const made = await gateway(t, { upstreams, auth: { issuers: [{ issuer: provider.url }] } })
    const proxy = await testProxy(t, { requestHeaders: { host: new URL(made.listening).host } })
    proxy.target = made.listening
    return { url: `${proxy.url}/t/acme/mcp` }
  },
  metadata_not_passed: async (t) => {
    const auth = { issuers: [{ issuer: (await loginProvider(t)).url }] }
    return await behind(t, only(/^\/\.well-known/, ['GET'], says(404, 'nothing here')), { auth })
  },
  metadata_changed: async (t) => {
    const auth = { issuers: [{ issuer: (await loginProvider(t)).url }] }
    const alters = (text: string): string =>
      text.replace(/"authorization_servers":\[[^\]]*\]/, '"authorization_servers":[]')
    return await behind(t, { alters }, { auth })
  },
  resource_differs: async (t) => ({ url: `${await withLogin(t, await loginProvider(t))}?from=mail` }),
  issuer_unreachable: async (t) => ({ url: await withLogin(t, { url: 'http://127.0.0.1:1' }) }),
  issuer_without_metadata: async (t) => {
    const url = await listen(
      t,
      createServer((_request, response) => response.writeHead(404).end())
    )
    return { url: await withLogin(t, { url }) }
  },
  issuer_differs: async (t) => ({ url: await withLogin(t, { url: `${(await loginProvider(t)).url}/` }) }),
  issuer_incomplete: async (t) => {
    const alters = (text: string): string => text.replace('"authorization_endpoint"', '"elsewhere"')
    return { url: await withLogin(t, await loginProvider(t, {}, { alters })) }
  },
  issuer_url_unsafe: async (t) => {
    const alters = (text: string): string => text.replace(/http(:[^"]*\/device\/auth)/, 'ftp$1')
    const provider = await loginProvider(t, { features: { deviceFlow: { enabled: true } } }, { alters })
    return { url: await withLogin(t, provider), login: 'device' }
  },
  issuer_without_pkce: async (t) => {
    const alters = (text: string): string => text.replace('"code_challenge_methods_supported"', '"elsewhere"')
    return { url: await withLogin(t, await loginProvider(t, {}, { alters })) }
  },
  no_registration: async (t) => ({ url: await withLogin(t, await identityProvider(t, 'http://127.0.0.1/callback')) }),
  registration_refused: async (t) => {
    const provider = await loginProvider(t, { features: { registration: { enabled: true, initialAccessToken: true } } })
    return { url: await withLogin(t, provider), login: 'browser' }
  },
  client_unknown: async (t) => ({
    url: await withLogin(t, await loginProvider(t)),
    login: 'browser',
    clientId: 'nobody'
  }),
  resource_refused: async (t) => ({ url: await withLogin(t, await loginProvider(t)), login: 'browser' }),
  scope_refused: async (t) => {
    const client = loopbackClient({ token_endpoint_auth_method: 'none', scope: 'openid' })
    const provider = await loginProvider(t, { ...client, scopes: ['openid', 'mcp'] })
    const url = await withLogin(t, provider, { requiredScopes: ['mcp'] })
    provider.resources.add(url)
    return { url, login: 'browser', clientId: 'host' }
  },
  device_not_offered: async (t) => {
    const provider = await loginProvider(t)
    return { url: await withLogin(t, provider), login: 'device' }
  },
  device_refused: async (t) => {
    const provider = await loginProvider(t, {
      ...loopbackClient({ token_endpoint_auth_method: 'none' }),
      features: { deviceFlow: { enabled: true } }
    })
    return { url: await withLogin(t, provider), login: 'device', clientId: 'host' }
  },
  login_refused: async (t) => {
    const provider = await loginProvider(t)
    provider.person = undefined
    const url = await withLogin(t, provider)
    provider.resources.add(url)
    return { url, login: 'browser' }
  },
  login_not_finished: async (t) => {
    const provider = await loginProvider(t, {}, only(/^\/in\//, ['GET'], says(200, 'a person reads on')))
    const url = await withLogin(t, provider)
    provider.resources.add(url)
    return { url, login: 'browser', waitMs: 100 }
  },
  token_refused: async (t) => {
    const provider = await loginProvider(
      t,
      loopbackClient({ client_secret: 'a secret of the host, at least 32 bytes' })
    )
    const url = await withLogin(t, provider, { requiredScopes: ['mcp'] })
    provider.resources.add(url)
    return { url, login: 'browser', clientId: 'host' }
  },
  // As "gatehouse key new" makes them, where tokens are taken, too.
  key_unknown: async (t) => ({ ...(await withTokens(t, {}, keyed)), token: newApiKey() }),
  key_not_usable: async (t) => ({
    ...(await withTokens(
      t,
      {},
      { keys: [{ name: 'ada', key: 'key-of-this-tenant-for-ada', expires: '2020-01-01T00:00:00Z' }] }
    )),
    token: 'key-of-this-tenant-for-ada'
  }),
  key_without_scope: async (t) => ({
    ...(await behind(t, {}, { auth: { keys: [{ name: 'ada', key, scopes: ['other'] }], requiredScopes: ['mcp'] } })),
    token: key
  }),
  admin_key: async (t) => ({ ...(await behind(t)), token: 'gha_an_admin_key_of_somebody' }),
  authorization_not_passed: async (t) => ({
    ...(await behind(t, { requestHeaders: { authorization: undefined } })),
    token: key
  }),
  token_opaque: async (t) => ({ ...(await withTokens(t, {})), token: 'Zm9vYmFyLWFuLW9wYXF1ZS10b2tlbg' }),
  token_not_active: async (t) => {
    const { url: issuer, introspection, token, revoke } = await idp(t)
    const made = await gateway(t, { upstreams, auth: { issuers: [{ issuer, introspection }] } })
    const opaque = await token({ resource: made.url(), opaque: true })
    t.equal((await diagnosed({ url: made.url(), token: opaque })).fault, undefined, 'it was good')
    await revoke(opaque)
    const other = await gateway(t, { upstreams, auth: { issuers: [{ issuer, introspection }] } })
    return { url: other.url(), token: opaque }
  },
  proof_missing: async (t) => await withTokens(t, {}, { dpop: 'required' }),
  token_expired: async (t) => await withTokens(t, { iat: now() - 7_200, exp: now() - 3_600 }),
  token_not_yet_valid: async (t) => await withTokens(t, { nbf: now() + 3_600, exp: now() + 7_200 }),
  token_for_another: async (t) => await withTokens(t, { aud: 'https://api.example.com' }),
  token_of_other_issuer: async (t) => await withTokens(t, { iss: 'https://old-idp.example.com' }),
  token_not_accepted: async (t) => await withTokens(t, {}, {}, true),
  scope_missing: async (t) => await withTokens(t, { scope: 'openid' }, { requiredScopes: ['mcp'] }),
  answer_changed: async (t) => {
    const alters = (text: string): string => (text.includes('serverInfo') ? `<!-- scanned -->${text}` : text)
    return { ...(await behind(t, { alters })), token: key }
  },
  session_not_passed: async (t) => ({
    ...(await behind(t, { responseHeaders: { 'mcp-session-id': undefined } })),
    token: key
  }),
  headers_changed: async (t) => ({
    ...(await behind(t, { requestHeaders: { 'content-type': 'text/plain' } })),
    token: key
  }),
  initialize_refused: async (t) => ({
    ...(await behind(t, { requestHeaders: { 'mcp-protocol-version': '1999-01-01' } })),
    token: key
  }),
  headers_not_passed: async (t) => ({
    ...(await behind(t, { requestHeaders: { 'mcp-method': undefined } })),
    token: key
  }),
  discover_not_passed: async (t) => ({
    ...(await behind(t, {
      answers: ({ headers }, response) =>
        headers['mcp-method'] !== undefined && says(403, 'blocked by rule 941').answers(undefined, response)
    })),
    token: key
  }),
  session_not_sent_on: async (t) => ({
    ...(await behind(t, { requestHeaders: { 'mcp-session-id': undefined } })),
    token: key
  }),
  request_not_passed: async (t) => ({
    ...(await behind(t, {
      answers: ({ headers }, response) =>
        headers['mcp-session-id'] !== undefined && says(403, 'blocked', marked).answers(undefined, response)
    })),
    token: key
  }),
  request_refused: async (t) => ({
    ...(await behind(t, { requestHeaders: { 'mcp-session-id': 'of-another' } })),
    token: key
  }),
  no_tools: async (t) => ({ ...(await behind(t, {}, { upstreams: {} })), token: key }),
  stream_held_back: async (t) => ({ ...(await behind(t, { buffers: true })), token: key, timeoutMs: 5_000 }),
  method_refused: async (t) => ({
    ...(await behind(t, only(/^\/t\//, ['DELETE'], says(405, 'Method Not Allowed')))),
    token: key
  }),
  body_too_large_for_proxy: async (t) => ({
    ...(await behind(t, {
      answers: ({ headers }, response) =>
        Number(headers['content-length']) > 1_048_576 && says(413, 'too large').answers(undefined, response)
    })),
    token: key
  })
}

t.test('the catalogue has forty misconfigurations and more, and each is made', async (t) => {
  t.ok(Object.keys(catalogue).length >= 40)
  t.same(Object.keys(made).toSorted(), Object.keys(catalogue).toSorted())
})

for (const [code, make] of Object.entries(made) as Array<[FaultCode, (typeof made)[FaultCode]]>) {
  t.test(`${code} is diagnosed`, async (t) => {
    const { fault, hops } = await diagnosed(await make(t))
    t.equal(fault?.code, code, `after ${hops.join(', ')}: ${fault?.message}`)
    t.notMatch(`${fault?.message} ${fault?.remedy}`, /\{\w+\}/, 'nothing is left to fill in')
  })
}

/** What is easily taken for something else. */
const alike: ReadonlyArray<readonly [what: string, code: FaultCode, (t: Test) => Promise<Made>]> = [
  [
    'SSH where TLS is expected',
    'not_http',
    async (t) => ({ url: `https://${await socketServer(t, greets)}/t/acme/mcp` })
  ],
  [
    'an answer that is cut short',
    'connection_cut',
    async (t) => {
      const half = 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{'
      const halves = (socket: Socket): void => void socket.once('data', () => socket.end(half))
      return { url: `http://${await socketServer(t, halves)}/t/acme/mcp` }
    }
  ],
  [
    'a redirect of a tenant whose name holds the word of a login',
    'redirects',
    async (t) => {
      const { url } = await behind(t, says(301, '', { Location: 'https://mcp.example.com/t/authors/mcp' }))
      return { url: url.replace('acme', 'authors') }
    }
  ],
  ['a redirect to a login', 'login_page', async (t) => await behind(t, says(302, '', { Location: '/oauth2/sign_in' }))],
  [
    'a login by Bearer',
    'own_authentication',
    async (t) => await behind(t, says(401, '', { 'WWW-Authenticate': 'Bearer' }))
  ],
  [
    'a proxy with request ids of its own that does not reach an open endpoint',
    'bad_gateway',
    async (t) => await behind(t, says(502, '<h1>502 Bad Gateway</h1>', marked), { auth: 'none' })
  ],
  [
    'a proxy with request ids of its own that refuses DELETE',
    'method_refused',
    async (t) => ({ ...(await behind(t, only(/^\/t\//, ['DELETE'], says(405, 'no', marked)))), token: key })
  ],
  [
    'a proxy with request ids of its own that refuses the stream',
    'method_refused',
    async (t) => ({ ...(await behind(t, only(/^\/t\//, ['GET'], says(404, 'no', marked)))), token: key })
  ],
  [
    'a proxy with request ids of its own that refuses large bodies',
    'body_too_large_for_proxy',
    async (t) => ({
      ...(await behind(t, {
        answers: ({ headers }, response) =>
          Number(headers['content-length']) > 1_048_576 && says(413, 'no', marked).answers(undefined, response)
      })),
      token: key
    })
  ],
  [
    'a type of bodies that is changed, at an endpoint that lets everybody in',
    'headers_changed',
    async (t) => await behind(t, { requestHeaders: { 'content-type': 'text/plain' } }, { auth: 'none' })
  ],
  [
    'a key of another endpoint',
    'key_not_usable',
    async (t) => ({
      ...(await behind(
        t,
        {},
        {
          auth: { keys: [{ name: 'ada', key, endpoints: ['other'] }] },
          endpoints: { default: { upstreams: ['up'] }, other: { upstreams: ['up'] } }
        }
      )),
      token: key
    })
  ],
  [
    'a signature that does not hold, where proofs are required',
    'token_not_accepted',
    async (t) => await withTokens(t, {}, { dpop: 'required' }, true)
  ],
  ['a filter', 'refused_on_the_way', async (t) => await behind(t, says(403, '<h1>Blocked</h1>'))],
  ['an error of the proxy', 'refused_on_the_way', async (t) => await behind(t, says(500, 'internal'))]
]
for (const [what, code, make] of alike)
  t.test(`${what} is ${code}`, async (t) => {
    const { fault } = await diagnosed(await make(t))
    t.equal(fault?.code, code, fault?.message ?? 'nothing')
  })

t.test('what is told of a credential that is refused begins with what the gateway says', async (t) => {
  const keys = [{ name: 'ada', key: 'key-of-this-tenant-for-ada', expires: '2020-01-01T00:00:00Z' }]
  const { url } = await behind(t, {}, { auth: { keys } })
  t.match((await diagnosed({ url, token: 'key-of-this-tenant-for-ada' })).fault?.message, /The API key has expired/)
  t.match((await diagnosed({ url, token: newApiKey() })).fault?.message, /This is not an API key of the tenant/)
})

t.test('a proxy that sets request ids of its own is no fault, nor is a limit of the gateway', async (t) => {
  const told: string[] = []
  const passed = (_hop: string, text: string): void => void told.push(text)
  const { url } = await behind(t, { responseHeaders: { 'x-request-id': marked['X-Request-Id'] } })
  t.equal((await diagnosed({ url, token: key })).fault, undefined)
  const limited = await gateway(t, { upstreams, limits: { bodyBytes: 1_000_000 } })
  const options = { url: limited.url(), token: key, timeoutMs: 20_000, version: '1' }
  await examine(options, { passed, browse() {}, waitMs: 0 })
  t.match(told.at(-1), /one message of 1\.2 MB is more than limits\.bodyBytes allows/)
})

t.test('a provider that takes metadata documents is no fault, though this command has none', async (t) => {
  const alters = (text: string): string =>
    text.replace('"registration_endpoint"', '"client_id_metadata_document_supported":true,"elsewhere"')
  const provider = await loginProvider(t, {}, { alters })
  const url = await withLogin(t, provider)
  const { code, out } = await cli(['doctor', '--url', url, '--login'])
  t.match({ code, out }, { code: 0, out: /registers nobody: [^]*metadata document[^]*--client-id/ })
})

t.test('every issuer is looked at, and one that hosts do not take fails nothing', async (t) => {
  const provider = await loginProvider(t)
  const issuers = [{ issuer: provider.url }, { issuer: 'http://127.0.0.1:1' }, { issuer: (await loginProvider(t)).url }]
  const made = await gateway(t, { upstreams, auth: { issuers } })
  const { code, out } = await cli(['doctor', '--url', made.url()])
  t.equal(code, 0)
  t.match(out, /nobody could sign in at http:\/\/127\.0\.0\.1:1: The authorization server .* cannot be reached/)
  t.match(out, new RegExp(`${issuers[2]?.issuer} is well, too`))
})

t.test('at the address of HTTP+SSE its endpoint is tried, and its stream', async (t) => {
  const { url } = await behind(t)
  const { hops, fault } = await diagnosed({ url: url.replace(/mcp$/, 'sse'), token: key })
  t.equal(fault?.message, undefined)
  t.same([hops[0], hops.at(-1)], ['url', 'ping'])
  t.equal(hops.filter((hop) => hop === 'ping').length, 2)
})

t.test('without a fault every hop passes: with a key over TLS, and by signing in', async (t) => {
  const overTls = await behind(t, {}, {}, 'good')
  t.same(await diagnosed({ ...overTls, ca: authority, token: key }), {
    hops: ['dns', 'tls', 'host', 'challenge', 'credential', 'initialize', 'discover', 'list', 'ping']
  })
  const provider = await loginProvider(t)
  const url = await withLogin(t, provider, { requiredScopes: ['mcp'] })
  provider.resources.add(url)
  const { hops, fault } = await diagnosed({ url, login: 'browser' })
  t.equal(fault?.message, undefined)
  t.same(hops.slice(3), [
    'challenge',
    'metadata',
    'discovery',
    'registration',
    'authorization',
    'token',
    'credential',
    'initialize',
    'discover',
    'list',
    'ping'
  ])
  t.same((await diagnosed({ url })).hops.at(-1), 'discovery', 'as far as nobody has to sign in')
  const open = await gateway(t, { upstreams, auth: 'none' })
  t.equal((await diagnosed({ url: open.url() })).fault, undefined)
})

t.test('without a browser, a person allows a code at another device, and every hop passes', async (t) => {
  const polled: string[] = []
  // Its own interval is five seconds. Of less than one none is taken.
  const alters = (text: string, { url }: IncomingMessage): string => {
    if (url === '/token') polled.push(String((JSON.parse(text) as { error?: unknown }).error))
    return url === '/device/auth' ? text.replace(/\}$/, ',"interval":0.02}') : text
  }
  const provider = await loginProvider(t, { features: { deviceFlow: { enabled: true } } }, { alters })
  const url = await withLogin(t, provider, { requiredScopes: ['mcp'] })
  t.equal((await diagnosed({ url, login: 'device' })).fault?.code, 'resource_refused', 'it knows no such resource')
  provider.resources.add(url)
  const args = ['doctor', '--url', url, '--device']
  const { code, out } = await cli(args, {}, '', (text) => {
    const page = /^ +(http\S+)$/m.exec(text)?.[1]
    const asked = (): boolean => polled.includes('authorization_pending')
    if (page !== undefined) void until('the host asks before', asked).then(() => allowDevice(page))
  })
  t.match({ code, out }, { code: 0, out: /registration +as[^]*authorization +signed in[^]*All hops are well/ })
  t.same(new Set(polled), new Set(['authorization_pending', 'undefined']))
  provider.person = undefined
  t.equal((await diagnosed({ url, login: 'device' })).fault?.code, 'login_refused')
  t.equal((await diagnosed({ url, login: 'device', waitMs: 0 })).fault?.code, 'login_not_finished')
  t.match(await cli([...args, '--login']), { code: 2, err: /--login and --device: one of them/ })
})

t.test('a secret client of a company cannot be used by hosts, which is not the fault of the gateway', async (t) => {
  const provider = await identityProvider(t, 'http://127.0.0.1/callback')
  const url = await withLogin(t, provider)
  t.equal((await diagnosed({ url, login: 'browser', clientId: providerClient.clientId })).fault?.code, 'client_unknown')
})

t.test('the command tells each hop, and at the first that fails the side that has to act', async (t) => {
  const { url } = await behind(t, { requestHeaders: { authorization: undefined } })
  const { code, out } = await cli(['doctor', '--url', url, '--token', key])
  t.equal(code, 1)
  t.match(
    out,
    /^ok +DNS .*\nok +connection and TLS[^]*ok +the 401[^]*\nFAILS credential +The gateway did not get the Auth/
  )
  t.match(out, /What to do, at the side of the proxy:\n +Let the proxy pass it on[^]*authorization_not_passed/)
  const asData = await cli(['doctor', '--url', url, '--token', key, '--json'])
  t.match(JSON.parse(asData.out), { fault: { code: 'authorization_not_passed', side: 'proxy', hop: 'credential' } })
  const well = new URL((await behind(t)).url)
  const good = await cli(['doctor', '--url', well.href], { GATEHOUSE_KEY: key })
  t.match(good, { code: 0, out: /All hops are well\.\n$/ })
  // As the other commands take it.
  const named = await cli(['doctor', well.pathname], { GATEHOUSE_KEY: key, GATEHOUSE_URL: well.origin })
  t.match(named, { code: 0, out: /All hops are well\.\n$/ })
  t.match(await cli(['doctor']), { code: 2, err: /doctor needs --url/ })
  t.match(await cli(['doctor', '--url', url, '--ca', '/nowhere']), { code: 2, err: /^\/nowhere cannot be read/ })
})

t.test(
  'the first message of a stream is read also where it comes byte by byte, and the rest is not waited for',
  async (t) => {
    const server = createServer((_request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      for (const byte of ': hello\r\n\r\nevent: message\r\ndata: {"a":\r\ndata: 1}\r\n\r\n') response.write(byte)
      t.teardown(() => response.destroy())
    })
    const send = sender({ ca: undefined, timeoutMs: 20_000 })
    t.match(await send(new URL(await listen(t, server))), { status: 200, json: { a: 1 } })
  }
)
