// What goes on, as it happens: calls and audit records as server-sent events, of the tenants of the reader only, from
// every process; readers that do not read, or whose key is taken away, are let go of.

import { hash } from 'node:crypto'
import { createServer } from 'node:http'
import t from 'tap'
import type { Administrator } from '../../src/admin/access.ts'
import { createEventStreams } from '../../src/admin/live/event-streams.ts'
import { AdminStream } from '../../src/admin/route.ts'
import { compileConfig } from '../../src/config/load.ts'
import { steadyClock } from '../../src/time/clock.ts'
import { adminCall, adminGateway, adminKeys, adminSection, globexKey, type AdminAnswer } from '../kit/admin.ts'
import { adminEvents } from '../kit/admin-events.ts'
import { legacyClient } from '../kit/client.ts'
import { configOf, key as apiKey } from '../kit/gateway.ts'
import { listen } from '../kit/listen.ts'
import { replicas } from '../kit/replicas.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const other = { globex: { auth: { keys: [{ name: 'gus', key: globexKey }] }, upstreams: {} } }
const canary = 'CANARYq7Xw2Zr9Lk4Vb8'

async function start(t: Parameters<typeof adminGateway>[0], more: { readonly top?: object } = {}) {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const up = { type: 'http', url: upstream.url }
  const made = await adminGateway(t, {
    upstreams: { up },
    tenants: { globex: { auth: { keys: [{ name: 'gus', key: globexKey }] }, upstreams: { up } } },
    top: { admin: adminSection, audit: {}, ...more.top }
  })
  const [ada, gus] = await Promise.all([
    legacyClient(made.url(), apiKey),
    legacyClient(made.url('default', 'globex'), globexKey)
  ])
  const echo = (client: typeof ada) => client.request('tools/call', { name: 'up__echo', arguments: { text: canary } })
  return { ...made, ada, gus, echo }
}

const isCall = ({ event, data }: { event: string; data: Record<string, unknown> }): boolean =>
  event === 'call' && data['method'] === 'tools/call'

/** An administrator with a key. */
function anyone(): Administrator {
  const config = configOf({ upstreams: {}, tenants: other, top: { admin: adminSection } })
  const [by] = compileConfig(JSON.stringify(config), { path: 'x', env: {} }).admin?.keys ?? []
  if (by === undefined) throw new Error('there is a key')
  return { name: 'ops', role: 'viewer', tenants: undefined, by, charge() {}, chargeBody() {} }
}

t.test('calls are told as they end, without arguments, to whoever the tenant is for', async (t) => {
  const { adminUrl, ada, gus, echo } = await start(t)
  const open = (path: string, key?: string) => adminEvents(t, adminUrl, path, key)
  const [all, acme, globex] = await Promise.all([
    open('/v1/calls'),
    open('/v1/tenants/acme/calls', adminKeys.acme),
    open('/v1/calls', adminKeys.globex)
  ])
  t.equal(all.status, 200)
  t.match(all.headers, { 'content-type': /^text\/event-stream/, 'cache-control': 'no-store' })
  await echo(ada)
  await echo(gus)
  const told = await acme.next('the call of ada', isCall)
  t.match(told.data, {
    tenant: 'acme',
    apiKey: 'test',
    upstream: 'up',
    tool: 'echo',
    outcome: 'ok',
    requestId: String,
    time: /^20/
  })
  t.match((await globex.next('the call of gus', isCall)).data, { tenant: 'globex', apiKey: 'gus' })
  await until('both are told to the platform-admin', () => all.events.filter(isCall).length === 2)
  t.ok(acme.events.every(({ data }) => data['tenant'] === 'acme'))
  t.ok(globex.events.every(({ data }) => data['tenant'] === 'globex'))
  t.notMatch(all.text, canary)
  await ada.request('tools/call', { name: 'up__none', arguments: {} })
  const failed = await acme.next('a call that is refused', ({ data }) => data['outcome'] === 'invalid_params')
  t.match(failed.data, { error: /.+/ })
})

t.test('of each call the rules that allow it are told, by its arguments where those decide', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const policy = {
    default: 'deny',
    rules: [
      { name: 'no-crash', effect: 'deny', what: { names: ['crash'] } },
      { name: 'echoes', effect: 'allow', who: { keys: ['test'] }, what: { names: ['echo'] } },
      { name: 'few', effect: 'allow', what: { kinds: ['tool'], names: ['progress'] }, when: 'args.steps < 3' },
      { name: 'some', effect: 'allow', what: { kinds: ['tool'], names: ['progress'] }, when: 'args.steps < 9' }
    ]
  }
  const { url, adminUrl } = await adminGateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], policy: { default: 'allow', rules: [] } } },
    policy
  })
  const events = await adminEvents(t, adminUrl, '/v1/calls')
  const client = await legacyClient(url(), apiKey)
  const told = async (name: string, args: object) => {
    const before = events.events.filter(isCall).length
    await client.request('tools/call', { name: `up__${name}`, arguments: args })
    await until('it is told', () => events.events.filter(isCall).length > before)
    const { allowedBy, rule } = events.events.filter(isCall)[before]?.data ?? {}
    return { allowedBy, rule }
  }
  t.same(await told('echo', {}), { allowedBy: ['echoes', 'default'], rule: undefined })
  t.same(await told('progress', { steps: 1 }), { allowedBy: ['few', 'default'], rule: undefined })
  t.same(await told('progress', { steps: 5 }), { allowedBy: ['some', 'default'], rule: undefined })
  t.same(await told('progress', { steps: 10 }), { allowedBy: undefined, rule: 'default' })
  t.same(await told('crash', {}), { allowedBy: undefined, rule: 'no-crash' })
})

t.test('a stream has to be asked for, and another tenant is as unknown as ever', async (t) => {
  const { adminUrl } = await start(t)
  const plain = await adminCall(adminUrl, 'GET', '/v1/calls')
  t.match(plain.json, { status: 406, remedy: /Accept: text\/event-stream/ })
  const other = await adminEvents(t, adminUrl, '/v1/tenants/acme/calls', adminKeys.globex)
  const none = await adminEvents(t, adminUrl, '/v1/tenants/none/calls', adminKeys.globex)
  t.same([other.status, none.status], [404, 404])
  const viewer = await adminEvents(t, adminUrl, '/v1/tenants/acme/audit', adminKeys.viewer)
  t.equal(viewer.status, 403)
  const streams = [1, 2, 3, 4].map(() => adminEvents(t, adminUrl, '/v1/calls', adminKeys.viewer))
  t.same(
    (await Promise.all(streams)).map(({ status }) => status),
    [200, 200, 200, 200]
  )
  const fifth = await adminEvents(t, adminUrl, '/v1/calls', adminKeys.viewer)
  t.equal(fifth.status, 429)
  t.equal((await adminEvents(t, adminUrl, '/v1/calls', adminKeys.auditor)).status, 200, 'another key has its own')
  const [first] = await Promise.all(streams)
  first?.close()
  await until('its place is free', async () => {
    const again = await adminEvents(t, adminUrl, '/v1/calls', adminKeys.viewer)
    return again.status === 200
  })
})

t.test('calls that run are told with what they wait for, to whoever asks for them, until they end', async (t) => {
  const { adminUrl, ada, gus } = await start(t)
  const path = '/v1/tenants/acme/calls?running=true'
  const [both, ended] = await Promise.all([adminEvents(t, adminUrl, path), adminEvents(t, adminUrl, '/v1/calls')])
  const waiting = [ada, gus].map((client) => client.request('tools/call', { name: 'up__slow', arguments: {} }))
  const running = await both.next(
    'the slow call',
    ({ event, data }) => event === 'running' && data['tenant'] === 'acme'
  )
  t.match(running.data, {
    process: /./,
    tenant: 'acme',
    leftOut: 0,
    calls: [{ apiKey: 'test', upstream: 'up', tool: 'slow', method: 'tools/call', waitsFor: 'upstream', time: /^20/ }]
  })
  const { calls } = running.data as unknown as { calls: Array<Record<string, unknown>> }
  t.equal(calls.length, 1, 'none of another tenant')
  t.ok(Number(calls[0]?.['ms']) >= 250)
  t.notOk('outcome' in (calls[0] ?? {}), 'it has none yet')
  await adminCall(adminUrl, 'PUT', '/v1/tenants/acme/kills/tools/up/slow')
  const over = await both.next('its end', isCall)
  t.equal(over.data['requestId'], calls[0]?.['requestId'])
  await both.next('that nothing runs', ({ event, data }) => event === 'running' && String(data['calls']) === '')
  await adminCall(adminUrl, 'PUT', '/v1/tenants/globex/kills/tools/up/slow')
  await Promise.all(waiting)
  t.notOk(
    ended.events.some(({ event }) => event === 'running'),
    'only where it was asked for'
  )
})

t.test('audit records are told as they are made, and read page by page as they are kept', async (t) => {
  const { adminUrl, ada, gus, echo, call } = await start(t)
  const stream = await adminEvents(t, adminUrl, '/v1/tenants/acme/audit', adminKeys.auditor)
  t.equal(stream.status, 200)
  for (let at = 0; at < 5; at++) await echo(ada)
  await echo(gus)
  await until('five are told', () => stream.events.filter(({ data }) => data['kind'] === 'call').length === 5)
  t.notMatch(stream.text, /gus/)
  const page = (query: string, key: string = adminKeys.auditor) =>
    call('GET', `/v1/tenants/acme/audit?${query}`, { key })
  const itemsOf = ({ json }: AdminAnswer) => (json as { items: Array<Record<string, unknown>> }).items
  await until('they are kept', async () => itemsOf(await page('kind=call')).length === 5)
  for (const wanted of ['chnage', 'calls', ''])
    t.match(
      await page(`kind=${wanted}`),
      { status: 400, json: { errors: [{ path: 'kind' }] } },
      'no record has this kind'
    )
  const read: Array<Record<string, unknown>> = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const answer: AdminAnswer = await page(`limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`)
    t.equal(answer.status, 200, answer.text)
    read.push(...itemsOf(answer))
    cursor = (answer.json as { nextCursor: string | null }).nextCursor
  }
  const numbers = read.map(({ seq }) => Number(seq))
  t.same(
    numbers,
    numbers.toSorted((a, b) => b - a),
    'the newest first, each once'
  )
  t.equal(numbers.at(-1), 1)
  t.match(read[0], { kind: 'call', by: { name: 'test' }, outcome: 'ok' })
  t.equal((await page('cursor=e30')).status, 400)
  t.equal((await page('', adminKeys.globex)).status, 404)
  const foreign = Buffer.from(JSON.stringify(['["globex/x",1]', null])).toString('base64url')
  t.match((await page(`cursor=${foreign}`)).json, { items: [], nextCursor: null })

  const all = itemsOf(await page('limit=200'))
  const middle = String(all[Math.floor(all.length / 2)]?.['time'])
  const numbersOf = (records: typeof all) => records.map(({ seq }) => seq)
  const timed = async (query: string) => numbersOf(itemsOf(await page(`limit=200&${query}`)))
  const isSince = ({ time }: (typeof all)[number]): boolean => String(time) >= middle
  t.same(await timed(`since=${middle}`), numbersOf(all.filter(isSince)))
  t.same(await timed(`until=${middle}`), numbersOf(all.filter((each) => !isSince(each))))
  t.same(await timed('since=2000-01-01T00:00:00Z'), numbersOf(all))
  t.same(await timed('since=2100-01-01T00:00:00Z'), [])
  t.same(await timed('until=2000-01-01T00:00:00Z'), [])
  t.match((await page('since=yesterday')).json, { status: 400, detail: /since/ })

  const exported = (query: string, key = adminKeys.auditor) =>
    call('GET', `/v1/tenants/acme/audit/export${query}`, { key })
  const linesOf = (text: string) =>
    text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as unknown]))
  const { headers, text } = await exported('')
  t.match(headers, {
    'content-type': /^application\/jsonl/,
    'content-disposition': /filename\*=UTF-8''audit-acme.jsonl$/
  })
  t.same(linesOf(text), all.toReversed(), 'all of it, the oldest first')
  t.same(linesOf((await exported(`?since=${middle}`)).text), all.filter(isSince).toReversed())
  t.equal((await exported('?until=2000-01-01T00:00:00Z')).text, '')
  t.equal((await exported('?until=never')).status, 400)
  for (const key of [adminKeys.viewer, adminKeys.globex]) t.match((await exported('', key)).status, /^40[34]$/)

  const verified = await call('GET', '/v1/tenants/acme/audit/verification', { key: adminKeys.auditor })
  t.match(verified.json, { isWhole: true, chains: 1, keys: [{ isOwn: true }], problems: [] })
  t.equal((await call('GET', '/v1/tenants/acme/audit/verification', { key: adminKeys.viewer })).status, 403)
  const whole = await adminEvents(t, adminUrl, '/v1/tenants/acme/audit/verification', adminKeys.auditor)
  t.match(await whole.next('a report', ({ event }) => event === 'report'), { data: { isWhole: true, problems: [] } })
  t.match(whole.events[0], { event: 'read', data: { segments: 0, of: /^[1-9]/ } })
  await until('it ends by itself', () => whole.ended)
})

t.test('a reader that does not read is let go of, hears why once it reads, and others go on', async (t) => {
  const streams = createEventStreams({ clock: steadyClock, isLetIn: () => true })
  const senders = new Set<(event: string, data: string) => void>()
  const server = createServer((_request, response) => {
    const stream = new AdminStream((send) => {
      senders.add(send)
      return () => void senders.delete(send)
    })
    streams.serve(response, {}, anyone(), stream)
  })
  const origin = await listen(t, server)
  const [slow, good] = await Promise.all([adminEvents(t, origin, '/'), adminEvents(t, origin, '/')])
  await until('both are open', () => senders.size === 2)
  slow.pause()
  const text = JSON.stringify('x'.repeat(100_000))
  for (let sent = 0; senders.size === 2 && sent < 1_000; sent++) {
    for (const send of senders) send('call', text)
    const seen = sent + 1
    await until('the other one reads all', () => good.events.length === seen)
  }
  t.equal(senders.size, 1, 'nothing is made for it any more')
  slow.resume()
  t.match(await slow.next('it hears why', ({ event }) => event === 'end'), { data: { reason: 'slow' } })
  await until('it is closed', () => slow.ended)
  t.notOk(good.ended)
  streams.close()
  t.match(await good.next('it ends', ({ event }) => event === 'end'), { data: { reason: 'closing' } })
})

t.test('a stream that begins with more than its reader can take ends, and hears why', async (t) => {
  const streams = createEventStreams({ clock: steadyClock, isLetIn: () => true })
  let stopped = 0
  const origin = await listen(
    t,
    createServer((_request, response) => {
      const all = new AdminStream((send) => {
        send('call', JSON.stringify('first'))
        send('call', JSON.stringify('x'.repeat(1_100_000)))
        return () => void stopped++
      })
      streams.serve(response, {}, anyone(), all)
    })
  )
  const reader = await adminEvents(t, origin, '/')
  t.match(await reader.next('the beginning', ({ event }) => event === 'call'), { data: 'first' })
  t.match(await reader.next('it hears why', ({ event }) => event === 'end'), { data: { reason: 'slow' } })
  await until('it is closed', () => reader.ended)
  t.equal(stopped, 1)
})

t.test('the administrators of one tenant leave event streams to others', async (t) => {
  const names = ['one', 'two', 'three']
  const keyOf = (name: string): string => `gha_${hash('sha256', name, 'base64url')}`
  const own = names.map((name) => ({ name, role: 'viewer', tenants: ['acme'], sha256: hash('sha256', keyOf(name)) }))
  const { adminUrl } = await start(t, { top: { admin: { ...adminSection, keys: [...adminSection.keys, ...own] } } })
  const statuses: number[] = []
  for (const name of names)
    for (let n = 0; n < 4; n++) statuses.push((await adminEvents(t, adminUrl, '/v1/calls', keyOf(name))).status)
  t.same(statuses, [...Array<number>(8).fill(200), ...Array<number>(4).fill(429)])
  for (const key of [adminKeys.platform, adminKeys.globex])
    t.equal((await adminEvents(t, adminUrl, '/v1/calls', key)).status, 200)
})

t.test('with its key a stream ends', async (t) => {
  const made = await start(t)
  const stream = await adminEvents(t, made.adminUrl, '/v1/calls', adminKeys.auditor)
  const control = await adminEvents(t, made.adminUrl, '/v1/calls', adminKeys.viewer)
  const keys = adminSection.keys.filter(({ name }) => name !== 'auditor')
  made.reload(
    configOf({
      upstreams: {},
      tenants: other,
      top: { admin: { ...adminSection, keys }, audit: {} }
    })
  )
  t.match(await stream.next('it ends', ({ event }) => event === 'end'), { data: { reason: 'access' } })
  await until('it is closed', () => stream.ended)
  t.notOk(control.ended)
})

t.test('what is called at one process is told at another, and what each uses is summed', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const { nodes } = await replicas(
    t,
    { upstreams: { up: { type: 'http', url: upstream.url } }, top: { admin: adminSection } },
    [{}, {}]
  )
  const [one, two] = await Promise.all(
    nodes.map(async (node) => {
      const { adminUrl } = await node.logged('listening', ({ msg }) => msg === 'listening')
      return { node, adminUrl: String(adminUrl) }
    })
  )
  if (one === undefined || two === undefined) throw new Error('there are two')
  const stream = await adminEvents(t, one.adminUrl, '/v1/tenants/acme/calls')
  const foreign = await adminEvents(t, one.adminUrl, '/v1/calls', adminKeys.globex)
  const clients = await Promise.all(nodes.map(({ url }) => legacyClient(`${url}/t/acme/mcp`, apiKey)))
  await until('calls of both are told', async () => {
    for (const client of clients) await client.request('tools/call', { name: 'up__echo', arguments: {} })
    return new Set(stream.events.filter(isCall).map(({ data }) => data['session'])).size === 2
  })
  t.same(foreign.events, [])
  const used = await until('both are counted', async () => {
    const { json } = await adminCall(two.adminUrl, 'GET', '/v1/tenants/acme/usage?days=2')
    const { tools } = json as { tools: Array<{ calls: number }> }
    return (tools[0]?.calls ?? 0) >= stream.events.filter(isCall).length ? json : undefined
  })
  const { text: metrics } = await adminCall(one.adminUrl, 'GET', '/metrics')
  t.match(metrics, /^db_client_operation_duration_seconds_count\{[^}]*db_system_name="redis"[^}]*\} [1-9]/m)
  t.match(used, {
    sessions: 2,
    days: [{ day: /^20/, errors: 0 }, { requests: 0 }],
    tools: [{ upstream: 'up', tool: 'echo' }]
  })
})
