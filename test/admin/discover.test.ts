// A server at a URL is looked at before it is added: each hop is told as it is done, up to its lists or to the login that
// it wants; nothing is added, nobody is registered, and a tenant-admin reaches no address that is not public.

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { adminEvents } from '../kit/admin-events.ts'
import { adminGateway, adminKeys, adminSection } from '../kit/admin.ts'
import { authorizationServer } from '../kit/authorization-server.ts'
import { freePort } from '../kit/free-port.ts'
import { listen } from '../kit/listen.ts'
import { protectedUpstream } from '../kit/protected-upstream.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const path = '/v1/tenants/initech/upstreams/up/discover'
const keys = adminSection.keys.map((each) => (each.name === 'globex' ? { ...each, tenants: ['initech'] } : each))

interface Answer {
  readonly hops: ReadonlyArray<{ readonly hop: string; readonly text: string }>
  readonly fault: { readonly code: string; readonly hop: string } | null
}

/**
 * @param hosts that a tenant-admin may name
 * @param egress `allow`: ranges that whatever the servers name may lead to; `ports` of hosts below a wildcard
 */
async function start(
  t: Test,
  hosts: readonly string[] = [],
  egress: { readonly allow?: readonly string[]; readonly ports?: readonly number[] } = {}
) {
  const made = await adminGateway(t, {
    upstreams: {},
    top: {
      vault: { keys: [{ id: '1', key: Buffer.alloc(32, 7).toString('base64') }] },
      audit: {},
      egress,
      admin: { ...adminSection, keys, allowedHosts: hosts }
    }
  })
  const { status, text } = await made.call('PUT', '/v1/tenants/initech', { body: { auth: {}, upstreams: {} } })
  if (status !== 201) throw new Error(text)
  return {
    made,
    async looked(body: object, key?: string): Promise<Answer> {
      const answer = await made.call('POST', path, { body, ...(key !== undefined && { key }) })
      if (answer.status !== 200) throw new Error(answer.text)
      return answer.json as Answer
    }
  }
}

const hopsOf = ({ hops }: Answer): string[] => hops.map(({ hop }) => hop)

t.test('an open server is looked at up to its lists, hop by hop, and is not added', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const { made } = await start(t)
  const stream = await adminEvents(t, made.adminUrl, path, adminKeys.platform, { url: upstream.url })
  await until('it ends', () => stream.ended)
  const hops = stream.events.filter(({ event }) => event === 'hop').map(({ data }) => data['hop'])
  t.same(hops, ['DNS', 'connection and TLS', 'the 401', 'initialize', 'list'])
  t.match(stream.events.at(-1), { event: 'answer', data: { fault: null, asksPeople: false, hops: { length: 5 } } })
  t.ok(JSON.stringify(stream.events.at(-1)?.data['tools']).includes('"echo"'))
  t.match(stream.events.at(-2)?.data['text'], /^\d+ tools, \d+ prompts/)
  await until('its session is ended', () => upstream.seen.some(({ method }) => method === 'DELETE'))
  t.equal((await made.call('GET', '/v1/tenants/initech/upstreams/up')).status, 404)
  t.match((await made.call('GET', '/v1/tenants/initech/audit?kind=change')).text, /"upstream\.discover"/)
})

t.test('a server that wants a login says where people sign in, and nobody is registered', async (t) => {
  const server = await authorizationServer(t, { registration: true })
  const upstream = await protectedUpstream(t, server)
  const { looked } = await start(t, [], { allow: ['127.0.0.0/8'] })
  const found = await looked({ url: upstream.url })
  t.same(hopsOf(found), [
    'DNS',
    'connection and TLS',
    'the 401',
    'resource metadata',
    'discovery of the login',
    'registration'
  ])
  t.match(found, { fault: null, asksPeople: true, tools: null })
  t.match(found.hops.at(-1)?.text, /registers itself/)
  t.equal(server.registrations, 0)
  const auth = { type: 'clientCredentials', clientId: 'robot', clientSecret: 'the-secret_of.robot~at:its/server' }
  t.match(await looked({ url: upstream.url, auth }), {
    fault: { code: 'issuer_not_named', remedy: /issuer, or tokenUrl/ }
  })
  t.same(server.clientIds, [], 'the secret of the client is shown to nobody whom only the server names')
  const shown = await looked({ url: upstream.url, auth: { ...auth, issuer: server.url } })
  t.match(shown, { fault: null, asksPeople: false })
  t.ok(hopsOf(shown).includes('list'), 'with credentials of the gateway it is looked at to its lists')
  const closed = await protectedUpstream(t, await authorizationServer(t))
  t.match(await looked({ url: closed.url }), {
    asksPeople: true,
    fault: { code: 'no_registration', hop: 'registration', remedy: /redirect URI http.*auth\.clientId/ }
  })
  upstream.metadataUrl = 'https://elsewhere.example/metadata'
  t.match(await looked({ url: upstream.url }), { fault: { code: 'metadata_unusable', hop: 'resource metadata' } })
})

t.test('what a tenant-admin names is reached at public addresses only', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const { looked, made } = await start(t, ['localhost', '*.0.0.1'], { ports: [Number(new URL(upstream.url).port)] })
  const at = (host: string): string => upstream.url.replace('127.0.0.1', host)
  const refused = await looked({ url: at('127.0.0.1') }, adminKeys.globex)
  t.match(refused, { hops: [], fault: { code: 'not_public', hop: 'DNS' } })
  t.same(upstream.seen, [])
  t.match(
    await looked({ url: at('localhost') }, adminKeys.globex),
    { fault: null },
    'a host that the operator named is'
  )
  t.ok(upstream.seen.length > 0)
  const foreign = await made.call('POST', path, { key: adminKeys.globex, body: { url: 'https://internal.corp/mcp' } })
  t.match(foreign.json, { status: 403, errors: [{ path: 'upstreams.up.url' }] }, foreign.text)
  t.equal((await made.call('POST', path, { key: adminKeys.viewer, body: { url: at('localhost') } })).status, 403)
})

t.test('an authorization server inside, which the server names, is not asked', async (t) => {
  const asked: string[] = []
  const url = await listen(
    t,
    createServer(({ url: path = '' }, response) => {
      asked.push(path)
      response.writeHead(404).end()
    })
  )
  const upstream = await protectedUpstream(t, { url, jwksUri: `${url}/jwks` })
  const refused = await (await start(t)).looked({ url: upstream.url })
  t.match(refused, { asksPeople: false, fault: { code: 'not_public', hop: 'discovery of the login' } })
  t.ok(hopsOf(refused).includes('resource metadata'), 'the server itself, which an administrator named, is')
  t.same(asked, [])
  const open = await (await start(t, [], { allow: ['127.0.0.0/8'] })).looked({ url: upstream.url })
  t.match(open, { fault: { code: 'metadata_unusable', hop: 'discovery of the login' } })
  t.ok(asked.length > 0, 'where the operator allows it, it is asked')

  asked.length = 0
  upstream.metadataUrl = `${url}/metadata`
  t.match(await (await start(t)).looked({ url: upstream.url }), { fault: { code: 'metadata_unusable' } })
  t.same(asked, [], 'nor is what it names as its own metadata')
})

t.test('what the authorization server of a server names inside is not asked', async (t) => {
  const asked: string[] = []
  const inner = createServer(({ url: path = '' }, response) => {
    asked.push(path)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ access_token: 'a-token', token_type: 'Bearer' }))
  })
  inner.listen(0, '127.0.0.2')
  await once(inner, 'listening')
  t.teardown(() => inner.close())
  const inside = `http://127.0.0.2:${(inner.address() as AddressInfo).port}`
  const server: string = await listen(
    t,
    createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(
        JSON.stringify({
          issuer: server,
          authorization_endpoint: `${server}/authorize`,
          token_endpoint: `${inside}/token`,
          response_types_supported: ['code'],
          code_challenge_methods_supported: ['S256']
        })
      )
    })
  )
  const upstream = await protectedUpstream(t, { url: server, jwksUri: `${server}/jwks` })
  const auth = { type: 'clientCredentials', clientId: 'robot', clientSecret: 'a-secret-of-robot', issuer: server }
  const look = async (allow: string[]) => await (await start(t, [], { allow })).looked({ url: upstream.url, auth })
  t.ok((await look([])).fault, 'the issuer, which an administrator wrote, is, and names another')
  t.same(asked, [])
  t.ok((await look(['127.0.0.0/8'])).fault, 'the upstream does not take that token')
  t.same(asked, ['/token'], 'where the operator allows it, it is asked')
})

t.test('the first hop that fails is named, with what to do', async (t) => {
  const { looked, made } = await start(t)
  const port = await freePort()
  t.match(await looked({ url: `http://127.0.0.1:${port}/mcp` }), {
    fault: { code: 'connection_refused', hop: 'connection and TLS', remedy: /Is the server running/ }
  })
  t.match(await looked({ url: 'https://no-such-host.invalid/mcp' }), { fault: { code: 'dns_unknown', hop: 'DNS' } })
  const page = await listen(
    t,
    createServer((_request, response) => response.writeHead(404).end('nothing here'))
  )
  t.match(await looked({ url: `${page}/mcp` }), { fault: { hop: 'initialize', remedy: /URL of an MCP server/ } })
  const people = { type: 'user' }
  t.match(await looked({ url: `${page}/mcp`, auth: people }), { fault: { hop: 'initialize' } }, 'a page is no server')
  const serverInfo = { name: 'x', version: '1' }
  const listless = await listen(
    t,
    createServer((request, response) => {
      void text(request).then((body) => {
        const { id, method } = JSON.parse(body === '' ? '{}' : body) as { id?: number; method?: string }
        const initialized = { result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo } }
        const answer = method === 'initialize' ? initialized : { error: { code: -32603, message: 'no lists today' } }
        response.writeHead(id === undefined ? 202 : 200, { 'Content-Type': 'application/json' })
        response.end(id === undefined ? '' : JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
      })
    })
  )
  t.match(await looked({ url: `${listless}/mcp` }), {
    fault: { code: 'rpc_error', hop: 'list', problem: /no lists today/ }
  })
  const keyed = await listen(
    t,
    createServer((request, response) => response.writeHead(request.method === 'POST' ? 401 : 404).end())
  )
  t.match(await looked({ url: `${keyed}/mcp` }), { fault: { code: 'key_needed', remedy: /API key/ } })
  t.equal((await made.call('POST', path, { body: { command: process.execPath } })).status, 422)
  t.equal((await made.call('POST', '/v1/tenants/acme/upstreams/up/discover', { body: { url: page } })).status, 409)
})
