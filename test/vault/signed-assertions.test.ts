// Who calls, signed by the gateway: verified by the code of the documentation, by keys that are published, rotated and
// the same for all processes.

import { randomBytes, randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { decodeProtectedHeader } from 'jose'
import t from 'tap'
import { acmeGateway, authOf, keyOf, type AcmeGatewayOptions } from '../kit/acme-gateway.ts'
import { legacyClient, send } from '../kit/client.ts'
import { gateway } from '../kit/gateway.ts'
import type { Teardown } from '../kit/listen.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { startUpstream } from '../kit/upstream.ts'
import { tenantId } from '../../src/protocol/messages.ts'
import { assertionKeysKey } from '../../src/store/keys.ts'
import type { Store } from '../../src/store/port.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { steadyClock } from '../../src/time/clock.ts'
import { createSealedValues } from '../../src/vault/sealed-values.ts'
import { createSigningKeys } from '../../src/vault/signed/signing-keys.ts'
import { createVaultKeys } from '../../src/vault/wrapping/vault-keys.ts'
import { until } from '../kit/until.ts'
import { quiet } from '../store/kit.ts'

const vault = { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] }
const echo = { name: 'echo', arguments: { text: 'hello' } }

type CallerOf = (headers: { authorization?: string | undefined }) => Promise<Record<string, unknown>>

/** The code of the documentation, for another issuer and audience. */
async function documentedCode(t: { testdir(): string }, issuer: string, audience: string): Promise<CallerOf> {
  const page = readFileSync('docs/connections.md', 'utf8')
  const code = /```js\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
  const path = join(t.testdir(), `${randomUUID()}.mjs`)
  writeFileSync(
    path,
    code.replace('https://mcp.example.com/t/acme', issuer).replace('https://orders.example.com/mcp', audience)
  )
  return ((await import(pathToFileURL(path).href)) as { callerOf: CallerOf }).callerOf
}

async function setup(t: Teardown, auth: object = {}, options: Partial<AcmeGatewayOptions> = {}) {
  const up = await startUpstream()
  t.teardown(() => up.close())
  const upstreams = { up: { type: 'http', url: up.url, auth: { type: 'signed', ...auth } } }
  const acme = await acmeGateway(t, { upstreams, top: { vault }, ...options })
  return { up, acme }
}

t.test('a server learns who calls by the code of the documentation', async (t) => {
  const { up, acme } = await setup(t, { claims: ['email', 'groups'] })
  const issuer = `${acme.publicUrl}/t/acme`
  const callerOf = await documentedCode(t, issuer, up.url)
  for (const who of ['ada', 'bob'] as const) {
    const token = await acme.bearer('JWT', who, { email: `${who}@acme.example`, groups: [who] })
    const client = await legacyClient(acme.url(), token)
    t.ok((await client.request('tools/call', echo)).json.result)
    t.ok((await modernRequest(acme.url(), 'tools/call', echo, { token })).json.result)
  }
  t.ok((await modernRequest(acme.url(), 'tools/call', echo, { token: keyOf.ada })).json.result)
  const people = new Set<string>()
  for (const { headers } of up.seen) {
    const {
      sub,
      sub_id: id,
      client_id: client,
      email,
      groups,
      iat,
      exp
    } = (await callerOf(headers)) as {
      sub: string
      sub_id: { iss: string; sub: string }
      [name: string]: unknown
    }
    const isKey = id.iss === 'urn:gatehouse:key'
    t.equal(sub, `${id.iss}|${id.sub}`)
    t.match(id.iss, isKey ? 'urn:gatehouse:key' : acme.issuer.issuer)
    t.equal(client, isKey ? id.sub : `app-of-${id.sub}`)
    t.equal(email, isKey ? undefined : `${id.sub}@acme.example`)
    t.same(groups, isKey ? [] : [id.sub])
    t.ok(Number(exp) - Number(iat) <= 60)
    people.add(sub)
  }
  t.equal(people.size, 3, 'an API key and a token of the same name are two callers')
  const assertion = String(up.seen[0]?.headers.authorization)
  await t.rejects(callerOf({}), 'nothing')
  await t.rejects(callerOf({ authorization: `${assertion.slice(0, -4)}AAAA` }), 'a changed one')
  await t.rejects(callerOf({ authorization: `Bearer ${await acme.bearer('JWT')}` }), 'the token of a caller')
  const other = await documentedCode(t, issuer, 'https://other.example/mcp')
  await t.rejects(other({ authorization: assertion }), 'at another server')
  t.notMatch(JSON.stringify(acme.log), new RegExp(assertion.slice(-40)))
})

t.test('an assertion is of no use at the gateway, and its keys are published without what signs', async (t) => {
  const { up, acme } = await setup(t)
  t.ok((await modernRequest(acme.url(), 'tools/call', echo, { token: keyOf.ada })).json.result)
  const assertion = String(up.seen[0]?.headers.authorization).replace('Bearer ', '')
  t.equal((await modernRequest(acme.url(), 'tools/call', echo, { token: assertion })).status, 401)
  const { status, headers, json } = await send(`${acme.publicUrl}/t/acme/jwks.json`, { method: 'GET' })
  t.equal(status, 200)
  t.equal(headers['cache-control'], 'public, max-age=300')
  t.same(Object.keys(json.keys[0]).toSorted(), ['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'])
  t.equal(json.keys[0].kid, decodeProtectedHeader(assertion).kid)
  t.equal((await send(`${acme.publicUrl}/t/nobody/jwks.json`, { method: 'GET' })).status, 404)
  t.equal((await send(`${acme.publicUrl}/t/acme/jwks.json`)).status, 405)
  const plain = await acmeGateway(t)
  t.equal((await send(`${plain.publicUrl}/t/acme/jwks.json`, { method: 'GET' })).status, 404, 'where nothing is signed')
})

t.test('two processes on one store sign with the same key, and nothing of it is there in the clear', async (t) => {
  const store = `file:${join(t.testdir(), 'gatehouse.db')}`
  const { up, acme } = await setup(t, {}, { store })
  t.ok((await modernRequest(acme.url(), 'tools/call', echo, { token: keyOf.ada })).json.result)
  const before = (await send(`${acme.publicUrl}/t/acme/jwks.json`, { method: 'GET' })).json
  await acme.close()
  const upstreams = { up: { type: 'http', url: up.url, auth: { type: 'signed' } } }
  const again = await gateway(t, { upstreams, auth: authOf(acme.issuer), store, top: { vault } })
  t.same((await send(`${again.publicUrl}/t/acme/jwks.json`, { method: 'GET' })).json, before)
  t.notMatch(readFileSync(store.slice('file:'.length), 'latin1'), /"d":"/)
})

/** Processes on one store, each of which can be held up before it writes. */
async function processes(t: Teardown) {
  const store = await createSqliteStore({ path: ':memory:', clock: Date, log: quiet })
  t.teardown(() => store.close())
  const clock = { now: Date.now() }
  const process = () => {
    const state = { held: undefined as Promise<void> | undefined, waiting: 0, writes: 0 }
    const set: Store['set'] = async (key, ...given) => {
      if (key !== assertionKeysKey('acme')) return await store.set(key, ...given)
      state.writes += 1
      state.waiting += 1
      await state.held
      state.waiting -= 1
      return await store.set(key, ...given)
    }
    const own = new Proxy(store, { get: (of, name) => (name === 'set' ? set : Reflect.get(of, name)) })
    const epochs = { epochOf: async () => 1, isCurrentEpoch: () => true }
    const parts = { store: own, snapshot: () => ({ vault }), epochs, clock: steadyClock, log: quiet }
    const values = createSealedValues(own, createVaultKeys(parts), quiet)
    const keys = createSigningKeys(values, epochs.epochOf, { now: () => clock.now })
    return Object.assign(state, { now: () => keys.of(tenantId('acme')) })
  }
  return { process, pass: (ms: number) => void (clock.now += ms) }
}

t.test('a process that is held up before it writes a key takes what another one has written', async (t) => {
  const { process, pass } = await processes(t)
  const [one, two, three] = [process(), process(), process()]
  for (const what of ['made', 'replaced']) {
    const { promise, resolve } = Promise.withResolvers<void>()
    one.held = promise
    const late = one.now()
    await until('it is about to write', () => one.waiting === 1)
    const other = await two.now()
    pass(20_000)
    one.held = undefined
    resolve()
    const known = [await late, await three.now()].map(({ kid, published }) => ({ kid, published }))
    const { kid, published } = other
    const same = { kid, published }
    t.same(known, [same, same], what)
    t.equal(other.published.length, what === 'made' ? 1 : 2)
    t.same([one.writes, two.writes, three.writes], what === 'made' ? [1, 1, 0] : [2, 2, 0])
    pass(31 * 86_400_000)
  }
})

t.test('a key is replaced after a month, is published before it signs, and the old one goes a day later', async (t) => {
  const { process, pass } = await processes(t)
  const { now } = process()
  const first = await now()
  pass(29 * 86_400_000)
  t.same((await now()).published, first.published)
  pass(2 * 86_400_000)
  const announced = await now()
  t.equal(announced.kid, first.kid, 'the old one signs')
  t.equal(announced.published.length, 2, 'and the new one is known')
  pass(2 * 3_600_000)
  t.not((await now()).kid, first.kid)
  t.equal((await now()).published.length, 2)
  pass(31 * 86_400_000)
  const third = await now()
  t.equal(
    third.published.some(({ kid }) => kid === first.kid),
    false
  )
})
