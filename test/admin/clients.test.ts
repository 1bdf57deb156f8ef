// What clients get, for whoever runs the gateway: the catalog with its definitions and in what two differ; a tool tried
// as oneself, with progress and elicitation, and with no right that the credential does not have; how hosts are set up;
// the doctor.

import { createServer } from 'node:http'
import t from 'tap'
import { createPlaces } from '../../src/admin/clients/own-way.ts'
import { adminGateway, adminKeys, globexKey, type AdminAnswer } from '../kit/admin.ts'
import { adminEvents } from '../kit/admin-events.ts'
import { key } from '../kit/gateway.ts'
import { listen } from '../kit/listen.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const limitedKey = 'gh_key_of_bob_0123456789'
const path = '/v1/tenants/acme/endpoints/default'

async function start(t: Parameters<typeof adminGateway>[0], more: { readonly when?: string } = {}) {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const when = more.when === undefined ? {} : { when: more.when }
  return await adminGateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url } },
    auth: {
      keys: [
        { name: 'test', key },
        { name: 'bob', key: limitedKey }
      ]
    },
    policy: {
      default: 'allow',
      rules: [
        { name: 'not-bob', effect: 'deny', who: { keys: ['bob'] }, what: { names: ['echo'], kinds: ['tool'] }, ...when }
      ]
    },
    top: { audit: {} }
  })
}

const membersOf = ({ json }: AdminAnswer) => json as Record<string, unknown>

t.test('a catalog has definitions, tokens and revisions, and tells in what two callers differ', async (t) => {
  const { call } = await start(t)
  const post = async (where: string, body: object) => {
    const answer = await call('POST', `${path}/${where}`, { body, key: adminKeys.viewer })
    t.equal(answer.status, 200, where)
    return membersOf(answer)
  }
  const whole = await post('catalog', { definitions: true, limit: 200 })
  const items = whole['items'] as Array<{ name: string; tokens: number; definition: Record<string, unknown> }>
  const echo = items.find(({ name }) => name === 'up__echo')
  t.match(echo, { definition: { name: 'up__echo', inputSchema: { type: 'object' } } })
  t.equal(echo?.tokens, Math.ceil(JSON.stringify(echo?.definition).length / 4))
  t.equal(whole['count'], items.length)
  t.ok(Number(whole['tokens']) >= items.reduce((sum, { tokens }) => sum + tokens - 1, 0))
  t.notOk('definition' in ((await post('catalog', {}))['items'] as object[])[0]!)
  const diff = await post('catalog/diff', { from: { caller: { key: 'test' } }, to: { caller: { key: 'bob' } } })
  t.match(diff, { onlyFrom: ['up__echo'], onlyTo: [], changed: [], same: items.length - 1 })
  const alike = await post('catalog/diff', { from: {}, to: { revision: '2026-07-28' } })
  t.match(alike, { onlyFrom: [], onlyTo: [], unknown: [] })
  t.equal((await call('POST', `${path}/catalog`, { body: { revision: '1999-01-01' } })).status, 400)
})

t.test('what an endpoint has before rules is told to whoever reads rules, and to nobody else', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const { call } = await adminGateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], deny: { tools: ['up/fail'] } } },
    policy: { default: 'deny', rules: [] }
  })
  const ask = (who: string, body: object) =>
    call('POST', `${path}/catalog`, { body: { limit: 200, ...body }, key: who })
  const { platform, acme, auditor, viewer, globex } = adminKeys
  for (const who of [platform, acme, auditor, viewer]) {
    const seen = await ask(who, {})
    t.match([seen.status, seen.json], [200, { items: [], count: 0 }], 'the rules let nobody see anything')
  }
  for (const who of [platform, acme, auditor]) {
    const { json } = await ask(who, { withoutRules: true })
    const names = new Set((json as { items: Array<{ name: string }> }).items.map(({ name }) => name))
    t.ok(names.has('up__echo'))
    t.notOk(names.has('up__fail'), 'what the endpoint leaves out is no matter of rules')
  }
  t.match((await ask(viewer, { withoutRules: true })).json, { status: 403, detail: /viewer/ })
  t.equal((await ask(globex, { withoutRules: true })).status, 404)
})

t.test('a tool is tried with the rights of the credential, and of nobody else', async (t) => {
  const made = await start(t)
  const tried = (body: object, who: string = adminKeys.acme) => made.call('POST', `${path}/try`, { body, key: who })
  const echo = { tool: 'up__echo', arguments: { text: 'hello' } }
  const good = await tried({ ...echo, credential: key })
  t.match(good.json, { status: 200, result: { content: [{ type: 'text', text: /hello/ }] } })
  const { requestId } = membersOf(good)
  t.match(
    made.log.find((line) => line['msg'] === 'call' && line['requestId'] === requestId),
    { apiKey: 'test', tool: 'echo', outcome: 'ok', software: /^gatehouse-console/ },
    'it is a call like any other'
  )
  t.match((await tried({ ...echo, credential: limitedKey })).json, { error: { code: -32602 } }, 'denied by policy')
  t.match((await tried(echo)).json, { status: 401 }, 'being an administrator opens nothing')
  t.match((await tried({ ...echo, credential: adminKeys.acme })).json, { status: 401 })
  t.match((await tried({ ...echo, credential: globexKey })).json, { status: 401 })
  for (const who of [adminKeys.viewer, adminKeys.auditor]) t.equal((await tried(echo, who)).status, 403)
  t.equal((await tried(echo, adminKeys.globex)).status, 404)
  t.equal((await tried({ ...echo, arguments: [] })).status, 400)
  const records = async () =>
    (membersOf(await made.call('GET', '/v1/tenants/acme/audit?kind=change'))['items'] as object[] | undefined) ?? []
  await until('five are recorded', async () => (await records()).length === 5)
  t.match((await records())[0], { by: { name: 'acme' }, action: 'tool.try', target: 'default/up__echo' })
  t.notMatch(JSON.stringify([await records(), made.log]), key)
})

t.test('rules over addresses would see the gateway: then nothing is tried', async (t) => {
  const made = await start(t, { when: 'address.inNetwork("10.0.0.0/8")' })
  const body = { tool: 'up__fail', credential: key }
  t.match((await made.call('POST', `${path}/try`, { body })).json, { status: 409, detail: /address/ })
})

t.test(
  'progress and elicitation are told as they come, and the answer of a person goes on with the call',
  async (t) => {
    const { adminUrl } = await start(t)
    const open = (body: object) => adminEvents(t, adminUrl, `${path}/try`, adminKeys.acme, { credential: key, ...body })
    const progress = await open({ tool: 'up__progress', arguments: {} })
    t.equal(progress.status, 200)
    const last = await progress.next('it answers', ({ event }) => event === 'answer')
    t.match(last.data, { status: 200, result: { content: [{ type: 'text' }] } })
    t.ok(progress.events.some(({ event, data }) => event === 'progress' && typeof data['progress'] === 'number'))
    await until('the stream ends by itself', () => progress.ended)
    const asked = await (await open({ tool: 'up__elicit' })).next('it asks', ({ event }) => event === 'answer')
    const { result } = asked.data as {
      result: { resultType: string; requestState: string; inputRequests: Record<string, { params: unknown }> }
    }
    t.equal(result.resultType, 'input_required')
    const [[name, request] = ['', { params: {} }]] = Object.entries(result.inputRequests)
    t.match(request.params, { message: /who\?/, requestedSchema: { properties: { name: { type: 'string' } } } })
    const inputResponses = { [name]: { action: 'accept', content: { name: 'Ada' } } }
    const { requestState } = result
    const done = await (
      await open({ tool: 'up__elicit', inputResponses, requestState })
    ).next('it goes on', ({ event }) => event === 'answer')
    t.match(JSON.stringify(done.data['result']), /Ada/)
  }
)

t.test('what is refused for want of a stream takes no place from who comes next', async (t) => {
  const { adminUrl, call } = await start(t)
  const streamed = (where: string, body?: object) => adminEvents(t, adminUrl, where, adminKeys.acme, body)
  const live = await Promise.all(Array.from({ length: 4 }, () => streamed('/v1/tenants/acme/calls')))
  t.ok(live.every(({ status }) => status === 200))
  const asked = { try: { tool: 'up__echo', arguments: { text: 'hello' }, credential: key }, doctor: {} }
  for (const [what, body] of Object.entries(asked)) {
    for (let round = 0; round < 5; round++) {
      const refused = await streamed(`${path}/${what}`, body)
      t.equal(refused.status, 429)
    }
    t.equal((await call('POST', `${path}/${what}`, { body, key: adminKeys.acme })).status, 200, what)
  }
  for (const each of live) each.close()
  await until('there is room', async () => (await streamed(`${path}/try`, asked.try)).status === 200)
})

t.test('administrators of one tenant leave places to those of others', async (t) => {
  const places = createPlaces(4, 'Too many.')
  const leave = places.take('acme')
  places.take('acme')
  t.throws(() => places.take('acme'), { code: 'rate_limited' })
  places.take('globex')
  leave()
  places.take('acme')
  t.throws(() => places.take('acme'), { code: 'rate_limited' })
  places.take('globex')
  t.throws(() => places.take('initech'), { code: 'rate_limited' }, 'all are taken')
})

t.test('a credential or an origin that no header can have is said to be that', async (t) => {
  const { call } = await start(t)
  const sent = { tool: 'up__echo', arguments: { text: 'hello' }, credential: `${key}\n` }
  t.match((await call('POST', `${path}/try`, { body: sent })).json, { status: 400, errors: [{ message: /visible/ }] })
  const odd = { credential: key, origin: 'https://page.example\r\nX-Odd: 1' }
  t.match((await call('POST', `${path}/doctor`, { body: odd })).json, { status: 400, errors: [{ message: /origin/ }] })
  const well = { credential: key, origin: 'https://page.example' }
  t.equal((await call('POST', `${path}/doctor`, { body: well })).status, 200)
})

t.test('how hosts are set up is told with the URL that they are given, and never with a key', async (t) => {
  const { call, publicUrl } = await start(t)
  const read = async (query = '') => membersOf(await call('GET', `${path}/hosts${query}`, { key: adminKeys.viewer }))
  const found = await read()
  t.match(found, { url: `${publicUrl}/t/acme/mcp`, with: 'key' })
  const items = found['items'] as Array<Record<string, string | null>>
  t.match(
    items.find(({ host }) => host === 'vscode'),
    { path: /\.vscode\/mcp\.json$/, snippet: /Bearer YOUR_API_KEY/, link: /^vscode:mcp\/install/, format: 'json' }
  )
  t.match(
    items.find(({ host }) => host === 'claude-code'),
    { command: /claude mcp add --transport http acme/ }
  )
  t.notMatch(JSON.stringify(found), key)
  t.notMatch(JSON.stringify(await read('?with=login&name=tools')), 'YOUR_API_KEY')
})

t.test('the doctor is run from the gateway, hop by hop, and asks nobody but the gateway and its issuers', async (t) => {
  const made = await start(t)
  const examined = (body: object, who: string = adminKeys.acme) =>
    made.call('POST', `${path}/doctor`, { body, key: who })
  const well = await examined({ credential: key })
  t.match(well.json, { url: `${made.publicUrl}/t/acme/mcp`, fault: null, untried: '' })
  t.ok((membersOf(well)['hops'] as object[]).length > 6)
  t.match((await examined({})).json, { fault: { code: 'key_needed', side: 'host', hop: 'the 401' } })
  t.match((await examined({ credential: 'gh_wrong' })).json, { fault: { code: 'key_unknown' } })
  t.equal((await examined({}, adminKeys.viewer)).status, 403)
  const stream = await adminEvents(t, made.adminUrl, `${path}/doctor`, adminKeys.acme, { credential: key })
  await until('it ends', () => stream.ended)
  t.ok(stream.events.filter(({ event }) => event === 'hop').length > 6)
  t.match(stream.events.at(-1), { event: 'answer', data: { fault: null } })
})

t.test('a public URL at which somebody else answers leads the doctor to nobody', async (t) => {
  let strangers = 0
  const stranger = await listen(
    t,
    createServer((_request, response) => {
      strangers++
      response.end('{}')
    })
  )
  const front: string = await listen(
    t,
    createServer((request, response) => {
      const own = `http://${request.headers.host}`
      const challenge = `Bearer resource_metadata="${own}/metadata"`
      const error = { code: 401, message: 'no', data: { reason: 'unauthenticated', requestId: '1' } }
      if (request.method === 'POST')
        response.writeHead(401, { 'WWW-Authenticate': challenge, 'X-Request-Id': '1' }).end(JSON.stringify({ error }))
      else response.end(JSON.stringify({ resource: `${own}/t/acme/mcp`, authorization_servers: [stranger] }))
    })
  )
  const made = await adminGateway(t, { upstreams: {}, top: { publicUrl: front } })
  const answer = await made.call('POST', `${path}/doctor`, { body: {} })
  t.match(answer.json, { fault: { code: 'issuer_unreachable', problem: /none of those that the gateway asks/ } })
  t.equal(strangers, 0)
})
