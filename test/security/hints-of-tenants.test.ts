// A tenant-admin gives its tools hints before anybody looks at them, and a rule that a platform-admin reserves looks at
// hints: those of the tenant-admin allow nothing, and take nothing from what denies or requires, whatever is stored.

import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { documentPrefix } from '../../src/control/compiled-documents.ts'
import { createJournal } from '../../src/control/journal.ts'
import { createSealer } from '../../src/store/seal.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { steadyClock, wallClock } from '../../src/time/clock.ts'
import { adminGateway, adminKeys, adminSection, type AdminGateway } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import type { Json } from '../kit/mcp-server.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { startUpstream } from '../kit/upstream.ts'
import { quiet } from '../store/kit.ts'

const path = '/v1/tenants/initech'
const anyVersion = { 'If-Match': '*' }
const apiKey = 'gh_key_of_initech_0123456789'
const policy = { default: 'deny', rules: [{ name: 'plain', effect: 'allow', what: { tags: ['readOnly'] } }] }
const hinted = (tools: Readonly<Record<string, boolean>>) => ({
  upstreams: ['up'],
  tools: Object.fromEntries(
    Object.entries(tools).map(([tool, readOnlyHint]) => [`up/${tool}`, { annotations: { readOnlyHint } }])
  )
})

async function start(t: Test, store = 'memory:') {
  const keys = adminSection.keys.map((each) => (each.name === 'globex' ? { ...each, tenants: ['initech'] } : each))
  const admin = { ...adminSection, keys, allowedHosts: ['127.0.0.1'] }
  const made = await adminGateway(t, { upstreams: {}, store, top: { admin } })
  const { call } = made
  const change = (body: object, key: string = adminKeys.platform) =>
    call('PATCH', path, { key, body, headers: anyVersion })
  const request = (method: string, params: Json = {}) =>
    modernRequest(made.url('default', 'initech'), method, params, { token: apiKey })
  const listed = async (): Promise<string[]> =>
    (((await request('tools/list')).json.result?.tools ?? []) as Array<{ name: string }>).map(({ name }) => name)
  const explained = async (name: string) =>
    (await call('POST', `${path}/endpoints/default/explain`, { body: { name, caller: { key: 'ci' } } })).json
  return { ...made, change, request, listed, explained }
}

const documentWith = (url: string, more: object) => ({
  auth: { keys: [{ name: 'ci', key: apiKey }] },
  upstreams: { up: { url } },
  ...more
})

async function makeTenant(t: Test, { call }: Pick<AdminGateway, 'call'>, more: object) {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const made = await call('PUT', path, { body: documentWith(upstream.url, more) })
  if (made.status !== 201) throw new Error(made.text)
}

t.test('hints that a tenant-admin gave before a rule was reserved do not satisfy it', async (t) => {
  const made = await start(t)
  await makeTenant(t, made, { endpoints: { default: hinted({ pid: true, slow: true }) } })
  const own = { endpoints: { default: hinted({ echo: true, slow: false }) } }
  t.equal((await made.change(own, adminKeys.globex)).status, 200)
  t.equal((await made.change({ policy })).status, 200)
  t.same(await made.listed(), ['up__echo', 'up__pid'], 'the control: the rule of the tenant looks at all hints')
  t.equal((await made.change({ reserved: ['policy'] })).status, 200)
  t.same(await made.listed(), ['up__pid'], 'reserved, it looks at those of the platform-admin')
  t.match((await made.request('tools/call', { name: 'up__pid', arguments: {} })).json, { result: {} })
  const refused = await made.request('tools/call', { name: 'up__echo', arguments: {} })
  t.match(refused.json, { error: { message: 'Unknown tool: up__echo' } })
  const because = 'what.tags does not match: a reserved rule allows nothing by a hint that a tenant-admin gave'
  t.match(await made.explained('up/echo'), { outcome: 'denied', rules: [{ applies: false, because }] })
  t.match(await made.explained('up/pid'), { outcome: 'allowed' })
  t.match(await made.explained('up/slow'), { outcome: 'denied', rules: [{ because: 'what.tags does not match' }] })
  const rules = await made.call('GET', `${path}/endpoints/default/rules`)
  t.match(rules.json, { items: [{ name: 'plain', tools: { names: ['up__pid'] } }] }, 'the rule covers what it allows')

  // Whoever leaves a hint as it is has not given it.
  const { configuration } = (await made.call('GET', path)).json as { configuration: object }
  const put = await made.call('PUT', path, {
    headers: anyVersion,
    body: { ...configuration, origins: ['https://a.b'] }
  })
  t.equal(put.status, 200, put.text)
  t.same(await made.listed(), ['up__pid'])
  const { version } = put.json as { version: number }
  t.equal((await made.change({ endpoints: { default: hinted({ echo: false, slow: false }) } })).status, 200)
  t.equal((await made.change({ endpoints: { default: hinted({ echo: true, slow: true }) } })).status, 200)
  t.same((await made.listed()).toSorted(), ['up__echo', 'up__pid', 'up__slow'], 'a platform-admin has given them')
  const rolledBack = await made.call('POST', '/v1/rollback', { body: { version, tenant: 'initech' } })
  t.equal(rolledBack.status, 200, rolledBack.text)
  t.same(await made.listed(), ['up__pid'], 'an earlier version has them from whoever gave them then')
})

t.test(
  'that a part is reserved is planned, and told to sessions, where hints of a tenant-admin make a difference',
  async (t) => {
    const made = await start(t)
    await makeTenant(t, made, { policy, endpoints: { default: hinted({ pid: true }) } })
    t.equal((await made.change({ endpoints: { default: hinted({ echo: true }) } }, adminKeys.globex)).status, 200)
    const client = await legacyClient(made.url('default', 'initech'), apiKey)
    const stream = await client.listen()
    const { configuration } = (await made.call('GET', path)).json as { configuration: object }
    const planned = async (reserved: string[]) => {
      const body = { tenants: { initech: { ...configuration, reserved } } }
      const { json } = await made.call('POST', '/v1/plan', { body })
      return (json as { tenants: ReadonlyArray<{ endpoints: unknown }> }).tenants[0]?.endpoints
    }
    t.same(await planned(['origins']), [], 'the control: another part')
    const loses = { count: 1, names: ['up__echo'] }
    const changes = [{ subject: 'ci', loses }]
    t.match(await planned(['policy']), [
      { endpoint: 'default', rulesChange: true, callers: { differ: 1, changes }, sessions: 1 }
    ])
    t.equal((await made.change({ reserved: ['policy'] })).status, 200)
    await stream.next(({ method }: { method?: string }) => method === 'notifications/tools/list_changed')
    const { json } = await client.request('tools/list')
    t.match(json, { result: { tools: [{ name: 'up__pid' }] } })
  }
)

t.test('nor those that stand in a document of an earlier version, whoever gave them', async (t) => {
  const store = `file:${join(t.testdir(), 'gatehouse.db')}`
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const before = await createSqliteStore({ path: store.slice('file:'.length), clock: wallClock, log: quiet })
  const sealer = await createSealer({ store: before, randomBytes, timer: steadyClock.timer, log: quiet })
  const journal = createJournal({ store: before, sealer, log: quiet })
  await journal.pull()
  const key = { name: 'ci', sha256: createHash('sha256').update(apiKey).digest('hex') }
  const more = { auth: { keys: [key] }, policy, reserved: ['policy'], endpoints: { default: hinted({ echo: true }) } }
  const text = JSON.stringify({ tree: documentWith(upstream.url, more), byPlatform: false })
  const about = { author: { name: 'ops', role: 'platform-admin' }, action: 'tenant.put', at: '2026-07-28T09:00:00Z' }
  await journal.append(about, new Map([[`${documentPrefix}initech`, text]]))
  sealer.close()
  await before.close()
  const made = await start(t, store)
  t.same(await made.listed(), [])
  t.equal((await made.change({ endpoints: { default: hinted({ pid: true }) } })).status, 200)
  t.same(await made.listed(), ['up__pid'], 'what a platform-admin gives now counts')
  t.equal((await made.change({ reserved: [] })).status, 200)
  t.same((await made.listed()).toSorted(), ['up__echo', 'up__pid'], 'and all of it where nothing is reserved')
})

const byTag = (effect: string, tag: string, more: object = {}) => ({
  default: 'allow',
  rules: [{ name: 'guard', effect, what: { tags: [tag] }, ...more }]
})
const toolsWith = (hints: Readonly<Record<string, object>>) => ({
  upstreams: ['up'],
  tools: Object.fromEntries(Object.entries(hints).map(([tool, annotations]) => [`up/${tool}`, { annotations }]))
})

t.test('a reserved rule that denies or requires sees each hint, whoever gave it', async (t) => {
  const made = await start(t)
  await makeTenant(t, made, { endpoints: { default: toolsWith({ pid: { destructiveHint: true } }) } })
  const own = { endpoints: { default: toolsWith({ echo: { destructiveHint: true } }) } }
  t.equal((await made.change(own, adminKeys.globex)).status, 200)
  t.ok((await made.listed()).includes('up__echo'), 'the control: there is no rule')
  t.equal((await made.change({ policy: byTag('deny', 'destructive'), reserved: ['policy'] })).status, 200)
  const listed = await made.listed()
  t.ok(listed.includes('up__slow'), 'the control: a tool without the hint')
  for (const name of ['echo', 'pid']) {
    t.notOk(listed.includes(`up__${name}`), `${name} is not listed`)
    const { json } = await made.request('tools/call', { name: `up__${name}`, arguments: {} })
    t.match(json, { error: { message: `Unknown tool: up__${name}` } })
    t.match(await made.explained(`up/${name}`), { outcome: 'denied', rules: [{ because: 'it matches' }] })
  }
  const rules = await made.call('GET', `${path}/endpoints/default/rules`)
  t.match(rules.json, { items: [{ tools: { count: 2 } }] })

  t.equal((await made.change({ policy: byTag('requires', 'destructive', { scopes: ['danger'] }) })).status, 200)
  const status = async (name: string) => (await made.request('tools/call', { name, arguments: {} })).status
  t.same([await status('up__echo'), await status('up__pid'), await status('up__dated')], [403, 403, 200])
})

t.test('a hint of a tenant-admin takes the word of a trusted server from nothing that is reserved', async (t) => {
  const made = await start(t)
  const tools = ['calm', 'wild', 'plain'].map((name) => ({
    name,
    inputSchema: { type: 'object' },
    annotations: { destructiveHint: name !== 'plain', readOnlyHint: name !== 'plain' }
  }))
  const upstream = await startUpstream({ tools })
  t.teardown(() => upstream.close())
  const upstreams = { up: { url: upstream.url, trustAnnotations: true } }
  const document = documentWith(upstream.url, { upstreams, endpoints: { default: toolsWith({}) } })
  t.equal((await made.call('PUT', path, { body: document })).status, 201)
  const own = { endpoints: { default: toolsWith({ calm: { destructiveHint: false, readOnlyHint: false } }) } }
  t.equal((await made.change(own, adminKeys.globex)).status, 200)
  t.equal((await made.change({ policy: byTag('deny', 'destructive') })).status, 200)
  t.same((await made.listed()).toSorted(), ['up__calm', 'up__plain'], 'the control: the rule of the tenant believes it')
  t.equal((await made.change({ reserved: ['policy'] })).status, 200)
  t.same(await made.listed(), ['up__plain'])
  const because = 'it matches without the hints that a tenant-admin gave'
  t.match(await made.explained('up/calm'), { outcome: 'denied', rules: [{ applies: true, because }] })
  t.match(await made.explained('up/wild'), { outcome: 'denied', rules: [{ applies: true, because: 'it matches' }] })
  // Whose a hint is may not be known: what a platform-admin took away must not be allowed again.
  t.equal((await made.change({ policy })).status, 200)
  t.same(await made.listed(), ['up__wild'], 'what is allowed is so with and without it')
})

t.test('a reserved limit counts by each hint, rules of a reserved endpoint allow by no other', async (t) => {
  const made = await start(t)
  const limits = { costly: { perHour: 5, what: { tags: ['openWorld'] } } }
  const open = { openWorldHint: true }
  await makeTenant(t, made, { limits, endpoints: { default: toolsWith({ pid: open }) } })
  t.equal((await made.change({ endpoints: { default: toolsWith({ echo: open }) } }, adminKeys.globex)).status, 200)
  const isCounted = async (name: string) =>
    'ratelimit' in (await made.request('tools/call', { name, arguments: {} })).headers
  const counted = async () => [await isCounted('up__echo'), await isCounted('up__pid'), await isCounted('up__dated')]
  t.same(await counted(), [true, true, false])
  t.equal((await made.change({ reserved: ['limits/costly'] })).status, 200)
  t.same(await counted(), [true, true, false])

  const own = {
    endpoints: { default: { policy: { ...policy, rules: [{ ...policy.rules[0], what: { tags: ['openWorld'] } }] } } }
  }
  t.equal((await made.change({ ...own, reserved: [] })).status, 200)
  t.same((await made.listed()).toSorted(), ['up__echo', 'up__pid'])
  t.equal((await made.change({ reserved: ['endpoints/default'] })).status, 200)
  t.same(await made.listed(), ['up__pid'])
})
