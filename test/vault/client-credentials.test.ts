// `auth: clientCredentials`: one token for all callers, from the authorization server that the upstream names.

import { moveClock } from '../kit/moving-clock.ts'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { decodeJwt, exportJWK, exportPKCS8, generateKeyPair } from 'jose'
import t from 'tap'
import { authorizationServer, robot } from '../kit/authorization-server.ts'
import { legacyClient } from '../kit/client.ts'
import { gateway, key, type TestGateway } from '../kit/gateway.ts'
import { listen, type Teardown } from '../kit/listen.ts'
import { protectedUpstream, repeatingLate } from '../kit/protected-upstream.ts'
import { until } from '../kit/until.ts'

const loopback = { egress: { allow: ['127.0.0.0/8'] } }
const auth = { type: 'clientCredentials', clientId: 'robot', clientSecret: robot.client_secret }

async function setup(t: Teardown, { top = loopback, own = {} }: { top?: object; own?: object } = {}) {
  const server = await authorizationServer(t)
  const upstream = await protectedUpstream(t, server)
  const made = await gateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url, auth: { ...auth, ...own } } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } },
    top: { ...top }
  })
  return { server, upstream, made }
}

const reasons = (made: TestGateway): string =>
  made.log
    .filter(({ msg }) => msg === 'no token can be had for an upstream')
    .map(({ err }) => JSON.stringify(err))
    .join(' ')

const said = JSON.stringify({ text: 'hello' })
const echo = { name: 'echo', arguments: { text: 'hello' } }

t.test('the upstream gets a token that was made for it, once for all calls, and never that of a caller', async (t) => {
  const { server, upstream, made } = await setup(t)
  const client = await legacyClient(made.url(), key)
  const answers = await Promise.all(Array.from({ length: 20 }, () => client.request('tools/call', echo)))
  t.ok(answers.every(({ json }) => json.result?.content?.[0]?.text === said))
  t.equal(upstream.server.calls('echo'), 20)
  t.equal(server.tokenRequests.length, 1)
  t.equal(server.tokenRequests[0]?.get('resource'), upstream.url)
  t.equal(server.tokenRequests[0]?.get('scope'), 'read')
  t.ok(upstream.admitted.every(({ aud, client_id: id }) => aud === upstream.url && id === 'robot'))
  t.notOk(upstream.presented.some((text) => text.includes(key)))
})

t.test('an answer that repeats the token of before does not show it', async (t) => {
  const { upstream, made } = await setup(t, { own: { scopes: ['read'] } })
  const client = await legacyClient(made.url(), key)
  const answer = repeatingLate(upstream)
  const held = client.request('tools/call', echo)
  const shown = await answer.held()
  upstream.scopes = ['write']
  t.ok((await client.request('tools/call', echo)).json.result)
  t.not(upstream.presented.at(-1), shown, 'there is another one meanwhile')
  answer.release()
  const { json, text } = await held
  t.equal(json.result?.content[0].text, 'I was shown Bearer ***', text)
})

t.test('a token that the upstream refuses is replaced once, and the call is executed once', async (t) => {
  const { server, upstream, made } = await setup(t, { own: { scopes: ['read'] } })
  const client = await legacyClient(made.url(), key)
  t.ok((await client.request('tools/call', echo)).json.result)
  upstream.scopes = ['write']
  t.equal((await client.request('tools/call', echo)).json.result.content[0].text, said)
  t.equal(upstream.server.calls('echo'), 2)
  const calls = made.log.filter(({ msg, tool }) => msg === 'call' && tool === 'echo')
  t.match(calls, [{ attempts: undefined }, { outcome: 'ok', attempts: 2, again: 'credential' }])
  t.same(
    server.tokenRequests.map((request) => request.get('scope')),
    ['read', 'read write'],
    'with what it has, and what the upstream wants besides'
  )
  for (let n = 0; n < 5; n++) {
    upstream.scopes = [`more-${n}`]
    const { json } = await client.request('tools/call', echo)
    t.match(json.error.message, /upstream up/i, 'what cannot be had is not asked for without end')
  }
  t.equal(server.tokenRequests.length, 2, 'nor more than once in ten seconds')
  t.teardown(() => moveClock(0))
  moveClock(11_000)
  server.down = true
  t.match((await client.request('tools/call', echo)).json.error.message, /has no token/)
  server.down = false
  moveClock(22_000)
  upstream.scopes = ['write']
  upstream.withdrawn.add(upstream.presented.at(-1)?.replace('Bearer ', '') ?? '')
  t.ok((await client.request('tools/call', echo)).json.result, 'and what was refused is not asked for again')
  t.equal(server.tokenRequests.at(-1)?.get('scope'), 'read write')
  moveClock(33_000)
  upstream.scopes = Array.from({ length: 60 }, (_, n) => `more-${n}`)
  t.match(
    (await client.request('tools/call', echo)).json.error.message,
    /refused our credentials .*check clientId, scopes/
  )
  t.match(server.tokenRequests.at(-1)?.get('scope'), /^read write more-0 .*more-30$/, 'nor more than 32 of them')
})

t.test(
  'an authorization server that is away is named, nothing is executed, and it is not asked by every call',
  async (t) => {
    const { server, upstream, made } = await setup(t, { own: { issuer: undefined } })
    const client = await legacyClient(made.url(), key)
    t.ok((await client.request('tools/call', echo)).json.result)
    server.down = true
    upstream.withdrawn.add(upstream.presented.at(-1)?.replace('Bearer ', '') ?? '')
    for (let n = 0; n < 3; n++) {
      const { json } = await client.request('tools/call', echo)
      t.match(json.error?.message ?? '', /refused our credentials|has no token/)
    }
    t.equal(upstream.server.calls('echo'), 1)
  }
)

t.test('a scope that cannot be had spoils no later token, also where nobody waits for its refusal', async (t) => {
  const server = await authorizationServer(t)
  const upstream = await protectedUpstream(t, server)
  const asked: string[] = []
  let refuse: () => void = () => {}
  const refused = new Promise<void>((resolve) => {
    refuse = resolve
  })
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request)
    const scope = new URLSearchParams(body).get('scope') ?? ''
    asked.push(scope)
    const isRare = scope.includes('rare')
    if (isRare) await refused
    const headers = {
      authorization: request.headers.authorization ?? '',
      'content-type': 'application/x-www-form-urlencoded'
    }
    const given = isRare ? undefined : await fetch(`${server.url}/token`, { method: 'POST', headers, body })
    response.writeHead(given?.status ?? 400, { 'content-type': 'application/json' })
    response.end((await given?.text()) ?? JSON.stringify({ error: 'invalid_scope' }))
  }
  const tokenUrl = await listen(
    t,
    createServer((request, response) => void answer(request, response))
  )
  const made = await gateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url, auth: { ...auth, scopes: ['read'], tokenUrl } } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } }
  })
  const client = await legacyClient(made.url(), key)
  t.ok((await client.request('tools/call', echo)).json.result)
  upstream.scopes = ['rare']
  const cancelled = client.request('tools/call', echo, { id: 'rare' })
  await until('the scope is asked for', () => asked.at(-1) === 'read rare')
  await client.notify('notifications/cancelled', { requestId: 'rare' })
  await cancelled
  refuse()
  await until('its refusal is known', () => reasons(made).includes('invalid_scope'))
  upstream.scopes = []
  t.teardown(() => moveClock(0))
  moveClock(11_000)
  upstream.withdrawn.add(upstream.presented.at(-1)?.replace('Bearer ', '') ?? '')
  t.ok((await client.request('tools/call', echo)).json.result)
  t.same(asked, ['read', 'read rare', 'read'])
})

t.test(
  'what the key of a client signs is for the issuer, and for the token endpoint where no issuer is known',
  async (t) => {
    const pair = await generateKeyPair('ES256', { extractable: true })
    const jwks = { keys: [{ ...(await exportJWK(pair.publicKey)), kid: '1', alg: 'ES256', use: 'sig' as const }] }
    const { client_secret: _, ...rest } = robot
    const server = await authorizationServer(t, {
      clients: [{ ...rest, token_endpoint_auth_method: 'private_key_jwt', jwks }]
    })
    const upstream = await protectedUpstream(t, server)
    const own = { type: 'clientCredentials', clientId: 'robot', privateKey: await exportPKCS8(pair.privateKey) }
    const tokenUrl = `${server.url}/token`
    for (const [named, audience] of [
      [{ issuer: server.url }, server.url],
      [{ issuer: server.url, tokenUrl }, server.url],
      [{ tokenUrl }, tokenUrl]
    ] as const) {
      const made = await gateway(t, {
        upstreams: { up: { type: 'http', url: upstream.url, auth: { ...own, scopes: ['read'], ...named } } },
        endpoints: { default: { upstreams: ['up'], prefix: '' } }
      })
      const { json } = await (await legacyClient(made.url(), key)).request('tools/call', echo)
      t.equal(json.result?.content?.[0]?.text, said, JSON.stringify(named))
      t.equal(decodeJwt(server.tokenRequests.at(-1)?.get('client_assertion') ?? '').aud, audience)
      await made.close()
    }
  }
)

t.test('a wrong secret is said with what the server calls it', async (t) => {
  const { upstream, made } = await setup(t, { own: { clientSecret: 'another one' } })
  const client = await legacyClient(made.url(), key)
  const { json } = await client.request('tools/call', echo)
  t.match(json.error?.message, /Upstream up is away/)
  t.match(reasons(made), /invalid_client/)
  t.notMatch(reasons(made), /another one/)
  t.equal(upstream.admitted.length, 0)
})

t.test('what an upstream names is gone to only where it is public, or listed', async (t) => {
  const { server, upstream, made } = await setup(t, { top: {} })
  const client = await legacyClient(made.url(), key)
  const { json } = await client.request('tools/call', echo)
  t.match(json.error?.message, /Upstream up is away/)
  t.notMatch(json.error?.message, /127\.0\.0\.1/, 'callers are told no address')
  t.equal(server.tokenRequests.length, 0)
  t.equal(upstream.admitted.length, 0)
  t.match(reasons(made), /is no public address/)
})

t.test('metadata of another origin, of another resource and with too many servers is refused', async (t) => {
  for (const [what, change] of [
    [
      'resource metadata at http://127.0.0.1:9',
      { metadataUrl: 'http://127.0.0.1:9/.well-known/oauth-protected-resource' }
    ],
    [
      'another resource',
      { metadata: { resource: 'https://other.example/mcp', authorization_servers: ['https://a.example'] } }
    ],
    ['no usable list', { metadata: { authorization_servers: [] } }],
    [
      'no usable list',
      { metadata: { authorization_servers: Array.from({ length: 100 }, (_, n) => `https://${n}.example`) } }
    ]
  ] as const) {
    const { server, upstream, made } = await setup(t)
    const { metadata } = change as { metadata?: object }
    Object.assign(upstream, change, metadata && { metadata: { resource: upstream.url, ...metadata } })
    const client = await legacyClient(made.url(), key)
    const { json } = await client.request('tools/call', echo)
    t.match(json.error?.message, /Upstream up is away/)
    t.match(reasons(made), what)
    t.equal(server.tokenRequests.length, 0, what)
  }
})
