// What one process of several writes is in force at the others, and survives restarts of processes and of Redis.

import t from 'tap'
import { adminCall, adminSection, type AdminCall } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import type { Served } from '../kit/process.ts'
import { replicas } from '../kit/replicas.ts'
import { until, type Teardown } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const apiKey = 'gh_key_of_a_tenant_made_by_api'
const any = { 'If-Match': '*' }

async function start(t: Teardown) {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const made = await replicas(t, { upstreams: {}, top: { admin: adminSection } }, [{}, {}])
  const document = {
    auth: { keys: [{ name: 'ci', key: apiKey }] },
    upstreams: { up: { type: 'http', url: upstream.url } }
  }
  return { ...made, upstream, document }
}

/** The admin API of one process. */
async function adminOf(node: Served) {
  const { adminUrl } = await node.logged('listening', ({ msg }) => msg === 'listening')
  return (method: string, path: string, call?: AdminCall) => adminCall(String(adminUrl), method, path, call)
}

const urlAt = (node: Served): string => `${node.url}/t/initech/mcp`

const servedBy = (node: Served, tool = 'up__echo') =>
  until(`${tool} is listed and called at ${node.url}`, async () => {
    const client = await legacyClient(urlAt(node), apiKey).catch(() => undefined)
    const { json } = (await client?.request('tools/list')) ?? { json: undefined }
    if (json?.result?.tools.some(({ name }: { name: string }) => name === tool) !== true) return undefined
    const called = await client?.request('tools/call', { name: tool, arguments: {} })
    return called?.json.result === undefined ? undefined : client
  })

t.test('a tenant made at one process serves at both, and its end is the end of its sessions at both', async (t) => {
  const { nodes, document } = await start(t)
  const [one, two] = nodes as [Served, Served]
  const [first, second] = await Promise.all([adminOf(one), adminOf(two)])
  t.equal((await first('PUT', '/v1/tenants/initech', { body: document })).status, 201)
  const clients = await Promise.all([servedBy(one), servedBy(two)])
  t.match((await second('GET', '/v1/tenants/initech')).json, { managedBy: 'api', version: 1, problems: [] })
  const rename = { endpoints: { default: { upstreams: ['up'], prefix: 'new' } } }
  t.equal((await second('PATCH', '/v1/tenants/initech', { body: rename, headers: any })).status, 200)
  await Promise.all([servedBy(one, 'new__echo'), servedBy(two, 'new__echo')])
  const said = await until('each knows the other, and that both serve alike', async () => {
    const lists = await Promise.all([first, second].map(async (call) => (await call('GET', '/v1/processes')).json))
    const all = (lists as Array<{ items: Array<Record<string, unknown>> }>).map(({ items }) => items)
    const isAlike = all.flat().every((each) => each['snapshot'] === all[0]?.[0]?.['snapshot'])
    return isAlike && all.every(({ length }) => length === 2) ? all : undefined
  })
  t.match(said[0]?.[0], { version: /^\d/, configuration: 2, snapshot: /^[\da-f]{12}$/, startedAt: /Z$/ })
  t.equal(said[0]?.[0]?.['process'], said[1]?.[1]?.['process'], 'the one that answers comes first')
  t.equal((await second('DELETE', '/v1/tenants/initech', { headers: any })).status, 204)
  for (const client of clients)
    await until('the session has ended', async () => (await client.request('ping')).status === 404)
})

t.test('of two writers who know the same version, one is refused', async (t) => {
  const { nodes, document } = await start(t)
  const [first, second] = (await Promise.all(nodes.map(adminOf))) as [
    Awaited<ReturnType<typeof adminOf>>,
    Awaited<ReturnType<typeof adminOf>>
  ]
  let etag = String((await first('PUT', '/v1/tenants/initech', { body: document })).headers['etag'])
  for (let round = 0; round < 10; round++) {
    const write = (call: typeof first, name: string) =>
      call('PATCH', '/v1/tenants/initech', {
        body: { origins: [`https://${name}${round}.example`] },
        headers: { 'If-Match': etag }
      })
    const answers = await Promise.all([write(first, 'a'), write(second, 'b')])
    t.same(
      answers.map(({ status }) => status).sort((a, b) => a - b),
      [200, 412],
      `round ${round}`
    )
    const won = answers.find(({ status }) => status === 200)
    etag = String(won?.headers['etag'])
    const read = await Promise.all(
      [first, second].map((call) => call('PATCH', '/v1/tenants/initech', { body: {}, headers: any }))
    )
    t.same(
      read.map(({ json }) => (json as { configuration: { origins: string[] } }).configuration.origins),
      [
        [`https://${answers[0]?.status === 200 ? 'a' : 'b'}${round}.example`],
        [`https://${answers[0]?.status === 200 ? 'a' : 'b'}${round}.example`]
      ]
    )
  }
  const others = await Promise.all(
    Array.from({ length: 8 }, (_, at) =>
      (at % 2 === 0 ? first : second)('PUT', `/v1/tenants/t${at}`, { body: document })
    )
  )
  t.same(
    others.map(({ status }) => status),
    Array.from({ length: 8 }, () => 201),
    'of different tenants none is'
  )
})

t.test('a process that starts later has the tenant from its first request on', async (t) => {
  const { nodes, document, start: startMore } = await start(t)
  const [one] = nodes as [Served]
  const admin = await adminOf(one)
  t.equal((await admin('PUT', '/v1/tenants/initech', { body: document })).status, 201)
  const client = await servedBy(one)
  for (const node of nodes) await node.stop()
  const late = await startMore()
  const listed = await fetch(urlAt(late), {
    method: 'POST',
    headers: client.headers as Record<string, string>,
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
  })
  t.equal(listed.status, 200, 'and its session')
  t.match(await listed.json(), { result: {} })
})

t.test('without Redis a change is refused whole; a Redis that comes back empty is told everything', async (t) => {
  const { nodes, store, document, start: startMore } = await start(t)
  const [one, two] = nodes as [Served, Served]
  const [first, second] = await Promise.all([adminOf(one), adminOf(two)])
  await first('PUT', '/v1/tenants/initech', { body: document })
  await servedBy(two)
  await store.stop()
  const refused = await first('PATCH', '/v1/tenants/initech', {
    body: { origins: ['https://lost.example'] },
    headers: any
  })
  t.match(refused.json, { status: 503, type: 'urn:gatehouse:problem:unavailable' })
  t.match((await first('GET', '/v1/tenants/initech')).json, { version: 1, configuration: { upstreams: {} } })
  await store.restart()
  const changed = await until('a change is taken', async () => {
    const body = { origins: ['https://kept.example'] }
    const answer = await second('PATCH', '/v1/tenants/initech', { body, headers: any })
    return answer.status === 200 ? answer : undefined
  })
  t.match(changed.json, { configuration: { origins: ['https://kept.example'] } })
  const late = await startMore()
  await servedBy(late)
  const told = await (await adminOf(late))('GET', '/v1/tenants/initech')
  t.match(told.json, { configuration: { origins: ['https://kept.example'] } })
  await until('the other process has it, too', async () => {
    const { text } = await first('GET', '/v1/tenants/initech')
    return text.includes('kept.example')
  })
})

t.test('a key that was taken away lets nobody in, also where the rest of the document cannot be used', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const { nodes } = await replicas(t, { upstreams: {}, top: { admin: adminSection } }, [
    { env: { ONLY_AT_ONE: 'a secret of one process' } },
    {}
  ])
  const [one, two] = nodes as [Served, Served]
  const first = await adminOf(one)
  const staying = { name: 'stays', key: 'gh_key_that_stays_0123456789' }
  const document = {
    auth: { keys: [{ name: 'ci', key: apiKey }, staying] },
    upstreams: { up: { type: 'http', url: upstream.url } }
  }
  t.equal((await first('PUT', '/v1/tenants/initech', { body: document })).status, 201)
  await servedBy(two)
  const changed = {
    auth: { keys: [staying] },
    upstreams: { up: { type: 'http', url: upstream.url, headers: { 'X-Key': '${ONLY_AT_ONE}' } } }
  }
  t.equal((await first('PUT', '/v1/tenants/initech', { body: changed, headers: any })).status, 200)
  await two.logged('it cannot be used', ({ msg }) => /cannot be used at this process/.test(String(msg)))
  await until('the key is refused', () =>
    legacyClient(urlAt(two), apiKey).then(
      () => false,
      (error: unknown) => /initialize: 401/.test(String(error))
    )
  )
  t.ok(await legacyClient(urlAt(two), staying.key), 'the control: the other key goes on')
})
