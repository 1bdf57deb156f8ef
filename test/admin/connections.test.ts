// What people have connected, for administrators: its state alone, and its end at every process.

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { cli } from '../cli/kit.ts'
import { keyOf } from '../kit/acme-gateway.ts'
import { adminGateway, adminKeys, adminSection, globexKey, type AdminGateway } from '../kit/admin.ts'
import { authorizationServer } from '../kit/authorization-server.ts'
import { connectAccount, signedIn, submit } from '../kit/connect-page.ts'
import { legacyClient, type LegacyClient } from '../kit/client.ts'
import type { Teardown } from '../kit/listen.ts'
import { protectedUpstream } from '../kit/protected-upstream.ts'
import { configOf } from '../kit/gateway.ts'
import { redis } from '../kit/redis.ts'
import { isMethod, startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { Redis } from 'ioredis'
import { grantIndexKey } from '../../src/store/keys.ts'

const top = {
  audit: {},
  vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] },
  egress: { allow: ['127.0.0.0/8'] }
}
const people = ['ada', 'bob'] as const
const keyIssuer = 'urn:gatehouse:key'
const path = '/v1/tenants/acme/connections'

interface Listed {
  readonly items: ReadonlyArray<Record<string, unknown>>
  readonly nextCursor: string | null
}

/** Two processes: an upstream that takes a secret, one that takes an account, and one of the other tenant. */
async function setup(t: Teardown) {
  const [store, upstream, provider] = await Promise.all([
    redis(t),
    startUpstream(),
    authorizationServer(t, { registration: true })
  ])
  t.teardown(() => upstream.close())
  const guarded = await protectedUpstream(t, provider)
  const secret = { type: 'http', url: upstream.url, auth: { type: 'userSecret', header: 'X-Api-Key' } }
  const options = {
    upstreams: { secret, account: { type: 'http', url: guarded.url, auth: { type: 'user' } } },
    auth: { keys: people.map((name) => ({ name, key: keyOf[name] })) },
    tenants: { globex: { auth: { keys: [{ name: 'gus', key: globexKey }] }, upstreams: { secret } } },
    store: store.url,
    top: { ...top, admin: adminSection }
  }
  const [one, other] = await Promise.all([adminGateway(t, options), adminGateway(t, options)])
  return { one, other, provider, guarded, upstream, options, storeUrl: store.url }
}

const pageOf = (made: AdminGateway, tenant = 'acme'): string => `${made.publicUrl}/t/${tenant}/connections`

async function enter(made: AdminGateway, key: string, secret: string, tenant = 'acme'): Promise<void> {
  const { tab, page } = await signedIn(`${pageOf(made, tenant)}?upstream=secret`, key)
  await submit(tab, page, 'secret', { secret })
}

async function allow(made: AdminGateway, key: string): Promise<void> {
  const { tab, page } = await signedIn(`${pageOf(made)}?upstream=account`, key)
  t.match((await connectAccount(tab, page)).html, /account is connected/)
}

const list = async ({ call }: AdminGateway, query = '', key: string = adminKeys.acme): Promise<Listed> =>
  (await call('GET', `${path}${query}`, { key })).json as Listed

const namesOf = ({ items }: Listed): string[] => items.map(({ subject, upstream }) => `${subject} ${upstream}`)

const revoke = ({ call }: AdminGateway, body: object, key: string = adminKeys.acme) =>
  call('POST', `${path}/revoke`, { key, body })

const clientOf = (made: AdminGateway, key: string): Promise<LegacyClient> =>
  legacyClient(made.url(), key, '2025-11-25', { elicitation: { url: {} } })

const isLetThrough = async (client: LegacyClient, upstream: string): Promise<boolean> =>
  (await client.request('tools/call', { name: `${upstream}__echo`, arguments: {} })).json.result !== undefined

t.test('connections are listed without what was given, and end at every process', async (t) => {
  const { one, other, provider, guarded, upstream } = await setup(t)
  t.same(await list(one), { items: [], nextCursor: null })
  for (const name of people) {
    await enter(one, keyOf[name], `the-secret-of-${name}`)
    provider.person = name
    await allow(other, keyOf[name])
  }
  await enter(one, globexKey, 'the-secret-of-gus', 'globex')
  const all = ['ada account', 'ada secret', 'bob account', 'bob secret']
  for (const node of [one, other]) t.same(namesOf(await list(node)), all)
  const [account, secret] = (await list(one, `?issuer=${keyIssuer}&subject=ada`)).items
  t.match(account, { issuer: keyIssuer, kind: 'account', state: 'connected', connectedAt: /^20\d\d-/ })
  t.match(account?.['scopes'], ['read'])
  t.same(Object.keys(secret ?? {}).sort(), ['connectedAt', 'issuer', 'kind', 'state', 'subject', 'upstream'])
  const told = JSON.stringify(await list(one))
  t.notOk(told.includes('the-secret-of'), 'no secret')
  const first = await list(one, '?limit=3')
  t.same(namesOf(first), all.slice(0, 3))
  t.same(namesOf(await list(other, `?limit=3&cursor=${first.nextCursor}`)), all.slice(3))
  t.same(namesOf(await list(one, '?upstream=secret')), ['ada secret', 'bob secret'])

  const clients = await Promise.all(people.map((name) => clientOf(other, keyOf[name])))
  const [ada, bob] = clients as [LegacyClient, LegacyClient]
  for (const client of clients) for (const upstream of ['secret', 'account']) t.ok(await isLetThrough(client, upstream))
  const tokens = guarded.presented.flatMap((each) => each.split('Bearer ').filter((token) => token.length > 20))
  t.ok(tokens.length > 0)
  for (const token of tokens) t.notOk(told.includes(token), 'no token')
  const gus = await legacyClient(one.url('default', 'globex'), globexKey)
  t.ok(await isLetThrough(gus, 'secret'))

  // What people have of an upstream counts for it.
  const ofGlobex = async (path = '') => {
    const method = path === '' ? 'GET' : 'POST'
    const answer = await one.call(method, `/v1/tenants/globex/upstreams/secret${path}`, path === '' ? {} : { body: {} })
    return answer.json as Record<string, unknown>
  }
  const used = await ofGlobex()
  t.match(used, { state: 'connected', transport: 'streamable-http', revisions: [String] })
  t.ok(Number(used['connections']) > 0)
  const begun = () => upstream.seen.filter(isMethod('initialize')).length
  const before = begun()
  await ofGlobex('/reconnect')
  t.ok(await isLetThrough(gus, 'secret'))
  t.ok(begun() > before, 'they are connected anew')

  // Of one person at one upstream.
  t.match(await revoke(one, { issuer: keyIssuer, subject: 'ada', upstream: 'secret' }), {
    status: 200,
    json: { revoked: 1 }
  })
  await until('the other process refuses it', async () => !(await isLetThrough(ada, 'secret')))
  t.ok(await isLetThrough(ada, 'account'))
  t.ok(await isLetThrough(bob, 'secret'))
  t.match((await revoke(one, { issuer: keyIssuer, subject: 'ada', upstream: 'secret' })).json, { revoked: 0 })
  // Of an upstream: accounts are given back to their provider.
  const givenBack = provider.revocations
  t.match((await revoke(other, { upstream: 'account' })).json, { revoked: 2 })
  for (const client of clients) await until('it is refused', async () => !(await isLetThrough(client, 'account')))
  await until('both are given back', () => provider.revocations === givenBack + 2)
  t.same(namesOf(await list(one)), ['bob secret'])
  // Of the tenant, and of no other.
  t.match((await revoke(one, { all: true })).json, { revoked: 1 })
  await until('it is refused', async () => !(await isLetThrough(bob, 'secret')))
  t.same(await list(other), { items: [], nextCursor: null })
  t.ok(await isLetThrough(gus, 'secret'), 'those of another tenant stay')
  // They may come back.
  await enter(other, keyOf.bob, 'the-second-secret-of-bob')
  t.ok(await isLetThrough(bob, 'secret'))
  t.same(namesOf(await list(one)), ['bob secret'])

  const changes = async (): Promise<string[]> => {
    const { json } = await one.call('GET', '/v1/tenants/acme/audit?kind=change')
    return (json as Listed).items.map(({ action, target }) => `${action}: ${target}`).sort()
  }
  await until('three records are written', async () => (await changes()).length === 3)
  t.same(await changes(), [
    'connection.revoke: all',
    `connection.revoke: issuer ${keyIssuer}, subject ada, upstream secret`,
    'connection.revoke: upstream account'
  ])
  // The same from the command line.
  const env = { GATEHOUSE_ADMIN_URL: one.adminUrl, GATEHOUSE_ADMIN_KEY: adminKeys.acme }
  const listed = await cli(['grant', 'list', 'acme', '--issuer', keyIssuer, '--subject', 'bob'], env)
  t.match(listed, { code: 0, out: /^SUBJECT +ISSUER[^]*\nbob +urn:gatehouse:key +secret +secret +connected/ })
  t.equal((await cli(['grant', 'list', 'acme', '--upstream', 'account'], env)).out, 'none\n')
  t.match(await cli(['grant', 'revoke', 'acme'], env), { code: 1, err: /which connections end/ })
  const revoked = await cli(['grant', 'revoke', 'acme', '--all', '--json'], env)
  t.same({ code: revoked.code, answer: JSON.parse(revoked.out) as unknown }, { code: 0, answer: { revoked: 1 } })
  t.same(await list(other), { items: [], nextCursor: null })

  await upstream.close()
  await until('it is told that nobody reaches it', async () => {
    await isLetThrough(gus, 'secret')
    return (await ofGlobex())['state'] === 'away'
  })
  const { items } = (await one.call('GET', '/v1/problems', { key: adminKeys.globex })).json as Listed
  t.match(items, [{ kind: 'upstream', severity: 'fault', sentence: /^secret of globex: down for / }])
})

t.test('a revocation says what it means, and reaches no other tenant', async (t) => {
  const { one, other, provider, options, storeUrl } = await setup(t)
  await enter(one, keyOf.ada, 'the-secret-of-ada')
  for (const body of [{}, { all: true, upstream: 'secret' }, { subject: 'ada' }, { all: false }, { everybody: true }])
    t.equal((await revoke(one, body)).status, 400, JSON.stringify(body))
  t.equal((await one.call('GET', `${path}?subject=ada`)).status, 400)
  t.equal((await revoke(one, { all: true }, adminKeys.globex)).status, 404)
  for (const key of [adminKeys.viewer, adminKeys.auditor]) t.equal((await revoke(one, { all: true }, key)).status, 403)
  t.same(namesOf(await list(one, '', adminKeys.viewer)), ['ada secret'])
  t.equal((await one.call('GET', path, { key: adminKeys.globex })).status, 404)

  // What is listed no more ends as well: of one person by name, and of many at once.
  const direct = new Redis(storeUrl)
  t.teardown(() => direct.disconnect())
  const pushOut = () => direct.del(`gatehouse:${grantIndexKey('acme')}`)
  const [ada, bob] = [await clientOf(other, keyOf.ada), await clientOf(other, keyOf.bob)]
  await enter(one, keyOf.bob, 'the-secret-of-bob')
  for (const client of [ada, bob]) t.ok(await isLetThrough(client, 'secret'))
  t.equal(await pushOut(), 1)
  t.same(namesOf(await list(one)), [])
  t.match((await revoke(one, { issuer: keyIssuer, subject: 'ada' })).json, { revoked: 1 })
  await until('the other process refuses it', async () => !(await isLetThrough(ada, 'secret')))
  t.ok(await isLetThrough(bob, 'secret'))
  t.match((await revoke(one, { upstream: 'account' })).json, { revoked: 0 })
  t.ok(await isLetThrough(bob, 'secret'), 'that was of another upstream')
  t.match((await revoke(one, { all: true })).json, { revoked: 0 })
  await until('the other process refuses it', async () => !(await isLetThrough(bob, 'secret')))
  await enter(one, keyOf.bob, 'the-next-secret-of-bob')
  await until('what was entered since counts', () => isLetThrough(bob, 'secret'))

  // Accounts of an upstream that is gone are given back, too.
  await allow(one, keyOf.ada)
  const { account: _, ...left } = options.upstreams
  for (const node of [one, other]) t.ok(node.reload(configOf({ ...options, upstreams: left })))
  const before = provider.revocations
  t.match((await revoke(one, { issuer: keyIssuer, subject: 'ada' })).json, { revoked: 1 })
  await until('it is given back', () => provider.revocations === before + 1)
})
