// An upstream is connected anew by hand: one that is away is tried at once, a process ends and another one starts, calls
// that run are let finish unless they must not, at every process, and a change is recorded.

import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { adminCall, adminGateway, adminKeys, adminSection } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { key as apiKey } from '../kit/gateway.ts'
import { listen } from '../kit/listen.ts'
import { replicas } from '../kit/replicas.ts'
import { until } from '../kit/until.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'

const path = (name: string): string => `/v1/tenants/acme/upstreams/${name}/reconnect`

t.test('an upstream that is away is tried at once, and a change is recorded', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  let tries = 0
  const front = await listen(
    t,
    createServer((request) => {
      tries++
      request.socket.destroy()
    })
  )
  const made = await adminGateway(t, {
    upstreams: { up: { url: front }, other: { url: upstream.url } },
    top: { audit: {} }
  })
  const client = await legacyClient(made.url(), apiKey)
  await client.request('tools/list')
  await until('it is away', async () => {
    const { json } = await made.call('GET', '/v1/tenants/acme/upstreams/up')
    return (json as { state: string }).state === 'away'
  })
  const before = tries
  const tried = await made.call('POST', path('up'), { key: adminKeys.acme, body: {} })
  t.match(tried.json, { state: 'away', lastError: String }, tried.text)
  t.ok(tries > before, 'it was tried')
  t.match((await made.call('POST', path('none'), { body: {} })).json, { status: 404 })
  t.match((await made.call('POST', path('up'), { key: adminKeys.viewer, body: {} })).json, { status: 403 })
  await until('it is recorded', async () => {
    const { json } = await made.call('GET', '/v1/tenants/acme/audit?kind=change')
    return (json as { items: Array<{ action: string }> }).items.some(({ action }) => action === 'upstream.reconnect')
  })
})

t.test('calls that run are let finish, or end at once where that is asked for', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const made = await adminGateway(t, { upstreams: { up: { url: upstream.url } } })
  const client = await legacyClient(made.url(), apiKey)
  const run = async () => {
    const call = client.request('tools/call', { name: 'up__slow', arguments: {} })
    await until('it runs', () => upstream.seen.some(({ message }) => message?.method === 'tools/call'))
    upstream.seen.length = 0
    return { call }
  }
  const first = await run()
  t.equal((await made.call('POST', path('up'), { body: {} })).status, 200)
  upstream.server.release()
  t.match((await first.call).json, { result: { content: [{ text: 'slow is done' }] } })
  const second = await run()
  t.equal((await made.call('POST', path('up'), { body: { atOnce: true } })).status, 200)
  t.match((await second.call).json, { error: { message: String } })
  const { json } = await client.request('tools/call', { name: 'up__echo', arguments: {} })
  t.match(json, { result: {} }, 'the next one is served')
})

t.test('a server over HTTP sees a new session, and the end of the one before after its calls', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const made = await adminGateway(t, {
    upstreams: { up: { url: upstream.url } },
    top: { store: `file:${t.testdir()}/store.db` }
  })
  const client = await legacyClient(made.url(), apiKey)
  const call = (name: string) => client.request('tools/call', { name: `up__${name}`, arguments: {} })
  const sessionOf = (name: string) => upstream.seen.findLast(isCall(name))?.headers['mcp-session-id']
  const ends = (): unknown[] =>
    upstream.seen.filter(({ method }) => method === 'DELETE').map(({ headers }) => headers['mcp-session-id'])
  await call('echo')
  const slow = call('slow')
  await until('it runs', () => sessionOf('slow') !== undefined)
  const before = sessionOf('slow')
  t.equal(sessionOf('echo'), before, 'the control: one session for all calls')
  t.equal((await made.call('POST', path('up'), { body: {} })).status, 200)
  t.match((await call('echo')).json, { result: {} })
  const next = sessionOf('echo')
  t.type(next, 'string')
  t.not(next, before)
  t.notOk(ends().includes(before), 'its call runs')
  upstream.server.release()
  t.match((await slow).json, { result: { content: [{ text: 'slow is done' }] } })
  await until('the former session is ended', () => ends().includes(before))
  t.match((await call('echo')).json, { result: {} })
  t.equal(sessionOf('echo'), next)
})

t.test('a process is replaced by another one, at every gateway, and sessions go on', async (t) => {
  const server = [join(import.meta.dirname, '../kit/stdio-server.ts'), '{}']
  const child = { command: process.execPath, args: server, isolation: 'shared' }
  const { nodes } = await replicas(t, { upstreams: { child }, top: { admin: adminSection } }, [{}, {}])
  const urls = await Promise.all(
    nodes.map(async (node) => String((await node.logged('listening', ({ msg }) => msg === 'listening'))['adminUrl']))
  )
  const clients = await Promise.all(nodes.map(({ url }) => legacyClient(`${url}/t/acme/mcp`, apiKey)))
  const pidOf = async (client: (typeof clients)[number]): Promise<string> => {
    const { json } = await client.request('tools/call', { name: 'child__pid', arguments: {} })
    return JSON.stringify(json.result ?? json.error)
  }
  const old = await Promise.all(clients.map(pidOf))
  t.not(old[0], old[1])
  t.notMatch(old[0], /error/)
  await until('what the process takes is told', async () => {
    const { json } = await adminCall(urls[0] ?? '', 'GET', '/v1/tenants/acme/upstreams/child')
    const { processes } = json as { processes: { count: number; bytes: number } }
    return processes.count === 1 && processes.bytes > 1_000_000
  })
  const answer = await adminCall(urls[0] ?? '', 'POST', path('child'), { body: {} })
  t.match(answer, { status: 200, json: { type: 'stdio' } })
  // The answer waits 5 s at the most.
  await until('it is connected', async () => {
    const { json } = await adminCall(urls[0] ?? '', 'GET', '/v1/tenants/acme/upstreams/child')
    return (json as { state: string }).state === 'connected'
  })
  for (const [at, client] of clients.entries())
    await until('another process serves', async () => {
      const now = await pidOf(client)
      return now !== old[at] && !now.includes('code')
    })
})
