// Scopes that an endpoint, an upstream or a tool requires: a call without them is a 403 that names all of them, before
// any stream begins, in both eras; nothing reaches the upstream.

import t from 'tap'
import { acmeGateway, initializeBody, keyOf, type AcmeGateway } from '../kit/acme-gateway.ts'
import { jsonHeaders, legacyClient, send } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { startUpstream } from '../kit/upstream.ts'

const start = async (t: Parameters<typeof acmeGateway>[0]) => {
  const other = await startUpstream()
  t.teardown(() => other.close())
  const idp = await acmeGateway(t)
  const acme = await acmeGateway(t, {
    upstreams: {
      up: { type: 'http', url: idp.upstream.url },
      vault: { type: 'http', url: other.url, requires: { scopes: ['vault'] } }
    },
    endpoints: {
      default: {
        upstreams: [{ upstream: 'up', prefix: '' }, 'vault'],
        tools: { 'up/echo': { requires: { scopes: ['write', 'mcp'] } }, 'vault/pid': { requires: { scopes: ['pid'] } } }
      },
      lean: {
        upstreams: [{ upstream: 'up', prefix: '' }, 'vault'],
        tools: { 'up/echo': { requires: { scopes: ['write'] } }, 'vault/pid': { requires: { scopes: ['pid'] } } },
        listsByScopes: true
      },
      support: { upstreams: ['up'], requires: { scopes: ['support'] } }
    },
    auth: {
      issuers: [{ issuer: idp.issuer.issuer, jwksUri: idp.issuer.jwksUri }],
      keys: [{ name: 'ci', key: keyOf.ada, scopes: ['mcp'] }],
      requiredScopes: ['mcp']
    }
  })
  const token = (scope: string, endpoint?: string) =>
    idp.issuer.sign({ aud: acme.url(endpoint), sub: 'ada', client_id: 'app', scope })
  return { acme, other, up: idp.upstream, token }
}

/** The same call in both eras. */
async function calls(acme: AcmeGateway, name: string, token: string) {
  const params = { name, arguments: {} }
  const client = await legacyClient(acme.url(), token)
  const legacy = await client.request('tools/call', params)
  const modern = await modernRequest(acme.url(), 'tools/call', params, { token })
  return { legacy, modern }
}

t.test('a tool, its upstream, and both together', async (t) => {
  const { acme, other, up, token } = await start(t)
  for (const [name, scope, wanted] of [
    ['echo', 'mcp', 'mcp write'],
    ['vault__echo', 'mcp', 'mcp vault'],
    ['vault__pid', 'mcp pid', 'mcp vault pid']
  ] as const) {
    const before = [up, other].map(({ server }) => server.received.length)
    for (const [era, { status, headers, json }] of Object.entries(await calls(acme, name, await token(scope)))) {
      t.equal(status, 403, `${name}, ${era}`)
      const challenge = headers['www-authenticate'] ?? ''
      t.match(challenge, /^Bearer error="insufficient_scope".*resource_metadata=/)
      t.same(/ scope="([^"]*)"/.exec(challenge)?.[1]?.split(' ').toSorted(), wanted.split(' ').toSorted(), name)
      t.match(json, { error: { data: { reason: 'insufficient_scope' } } })
    }
    t.equal(other.server.calls('echo') + other.server.calls('pid') + up.server.calls('echo'), 0, 'no call went out')
    t.ok(before)
  }
  for (const [name, scope] of [
    ['echo', 'mcp write'],
    ['pid', 'mcp'],
    ['vault__echo', 'mcp vault'],
    ['vault__pid', 'mcp vault pid']
  ] as const)
    for (const [era, { status, json }] of Object.entries(await calls(acme, name, await token(scope))))
      t.match({ status, json }, { status: 200, json: { result: {} } }, `${name}, ${era}`)
})

t.test('what needs more scopes is listed, so that a host can ask for them', async (t) => {
  const { acme, token } = await start(t)
  const { json } = await modernRequest(acme.url(), 'tools/list', {}, { token: await token('mcp') })
  const { tools } = (json as { result: { tools: Array<{ name: string }> } }).result
  const names = new Set(tools.map(({ name }) => name))
  for (const name of ['echo', 'vault__pid']) t.ok(names.has(name), name)
})

t.test('an endpoint, at its door, in its challenge and in its metadata', async (t) => {
  const { acme, token } = await start(t)
  const at = acme.url('support')
  const initialize = (authorization?: string) =>
    send(at, { headers: { ...jsonHeaders, ...(authorization && { authorization }) }, body: initializeBody() })
  t.match((await initialize()).headers['www-authenticate'], 'scope="mcp support"')
  const poor = await initialize(`Bearer ${await token('mcp', 'support')}`)
  t.equal(poor.status, 403)
  t.match(poor.headers['www-authenticate'], /error="insufficient_scope".* scope="mcp support"/)
  t.equal((await initialize(`Bearer ${await token('mcp support', 'support')}`)).status, 200)
  const metadata = (url: string) =>
    send(url.replace('/t/', '/.well-known/oauth-protected-resource/t/'), { method: 'GET' })
  t.match((await metadata(at)).json, { scopes_supported: ['mcp', 'support'] })
  t.match((await metadata(acme.url())).json, { scopes_supported: ['mcp'] })
  const modern = await modernRequest(at, 'tools/list', {}, { token: await token('mcp', 'support') })
  t.equal(modern.status, 403)
})

t.test('lists show what a token with more scopes would unlock, or only what those of the caller allow', async (t) => {
  const { acme, other, token } = await start(t)
  async function listed(endpoint: string, scope: string): Promise<string[][]> {
    const credential = await token(scope, endpoint)
    const client = await legacyClient(acme.url(endpoint), credential)
    const legacy = await client.request('tools/list', {})
    const modern = await modernRequest(acme.url(endpoint), 'tools/list', {}, { token: credential })
    return [legacy, modern].map(({ json }) => json.result.tools.map(({ name }: { name: string }) => name))
  }
  for (const [endpoint, scope, shown, hidden] of [
    ['default', 'mcp', ['echo', 'vault__echo', 'vault__pid'], []],
    ['lean', 'mcp', ['pid'], ['echo', 'vault__echo', 'vault__pid']],
    ['lean', 'mcp write', ['pid', 'echo'], ['vault__echo', 'vault__pid']],
    ['lean', 'mcp vault', ['pid', 'vault__echo'], ['echo', 'vault__pid']],
    ['lean', 'mcp vault pid write', ['pid', 'echo', 'vault__echo', 'vault__pid'], []]
  ] as const)
    for (const names of await listed(endpoint, scope)) {
      for (const name of shown) t.ok(names.includes(name), `${endpoint}, ${scope}: ${name}`)
      for (const name of hidden) t.notOk(names.includes(name), `${endpoint}, ${scope}: no ${name}`)
    }
  const poor = await legacyClient(acme.url('lean'), await token('mcp', 'lean'))
  const refused = await poor.request('tools/call', { name: 'vault__echo', arguments: {} })
  t.equal(refused.status, 403, 'who calls by the name is told the scopes all the same')
  t.match(refused.headers['www-authenticate'], /insufficient_scope.*scope="mcp vault"/)
  t.equal(other.server.calls('echo'), 0)
})

t.test('who has an API key is not told to get a token', async (t) => {
  const { acme } = await start(t)
  for (const [name, status] of [
    ['pid', 200],
    ['echo', 403]
  ] as const)
    for (const [era, answer] of Object.entries(await calls(acme, name, keyOf.ada))) {
      t.equal(answer.status, status, `${name}, ${era}`)
      if (status === 200) continue
      t.match(answer.json.error.message, /mcp write\. Ask those who run this gateway to give them to the API key\./)
      t.match(answer.headers['www-authenticate'], /error="insufficient_scope"/)
      t.notMatch(answer.headers['www-authenticate'], 'resource_metadata')
    }
  const headers = { ...jsonHeaders, authorization: `Bearer ${keyOf.ada}` }
  const refused = await send(acme.url('support'), { headers, body: initializeBody() })
  t.equal(refused.status, 403)
  t.match(
    refused.json.error.message,
    /The API key needs all of these scopes: mcp support\. Ask those who run this gateway/
  )
  t.notMatch(refused.headers['www-authenticate'], 'resource_metadata')
})
