// The keys of tenants: what a process keeps of them, and that they are under the first key of the configuration.

import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import t from 'tap'
import pino from 'pino'
import type { VaultKey } from '../../src/config/snapshot.ts'
import { tenantId } from '../../src/protocol/messages.ts'
import { type Store, unavailable } from '../../src/store/port.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { wallClock } from '../../src/time/clock.ts'
import { createVaultKeys } from '../../src/vault/wrapping/vault-keys.ts'
import { listen } from '../kit/listen.ts'

const log = pino({ level: 'silent' })
const acme = tenantId('acme')
const epochs = { epochOf: () => Promise.resolve(0), isCurrentEpoch: () => true }
const made = (id: string): VaultKey => ({ id, key: randomBytes(32).toString('base64') })
const [k1, k2] = [made('k1'), made('k2')]

async function setup(t: { teardown(end: () => unknown): void }) {
  const inner = await createSqliteStore({ path: ':memory:', clock: wallClock, log })
  t.teardown(() => inner.close())
  const state = { now: 0, isAway: false, keys: [k1] as readonly VaultKey[] }
  const store: Store = {
    ...inner,
    get: (key) => (state.isAway ? Promise.reject(unavailable('The store is away.')) : inner.get(key))
  }
  const clock = { now: () => state.now }
  const process = (keys: () => readonly VaultKey[]) =>
    createVaultKeys({ store, snapshot: () => ({ vault: { keys: keys() } }), epochs, clock, log })
  return { state, process, keys: process(() => state.keys) }
}

t.test('a moment without the store takes nothing away that was opened before', async (t) => {
  const { state, keys } = await setup(t)
  const first = await keys.of(acme)
  t.equal(await keys.of(acme), first)
  state.now += 61_000
  state.isAway = true
  await t.rejects(keys.of(acme), { code: 'unavailable' }, 'what an operator has deleted may not be used on')
  await t.rejects(keys.of(acme), { code: 'unavailable' })
  state.isAway = false
  t.equal(await keys.of(acme), first, 'the very one, which was not opened again')
  state.now += 16 * 60_000
  t.not(await keys.of(acme), first, 'as it is after a quarter of an hour')
  t.same(await keys.of(acme), first)
})

t.test('another configuration counts from the next call on', async (t) => {
  const { state, keys } = await setup(t)
  const first = await keys.of(acme)
  state.keys = [{ ...k1 }]
  t.equal(await keys.of(acme), first, 'one that was read again and says the same changes nothing')
  state.keys = [k2]
  await t.rejects(keys.of(acme), { message: /sealed with the key k1, which is not configured/ })
  state.keys = [{ ...made('k1') }]
  await t.rejects(keys.of(acme), { message: /The key k1 of the vault cannot open/ })
  state.keys = [k2, k1]
  t.same(await keys.of(acme), first)
})

t.test('a key is called needed no more only where nobody has used it meanwhile', async (t) => {
  const { process } = await setup(t)
  const [old, next] = [process(() => [k1, k2]), process(() => [k2, k1])]
  const key = await old.of(acme)
  let asked = 0
  const result = await next.rotate(async () => {
    // A process that has the keys in the other order writes between the change and the second look.
    if (++asked === 2) await old.rotate(() => Promise.resolve([acme]))
    return [acme]
  })
  t.equal(asked, 2)
  t.match(result, { first: 'k2', anew: 1, failed: [{ tenant: acme, error: { message: /wrapped with k1 meanwhile/ } }] })
  const globex = tenantId('globex')
  asked = 0
  const born = await next.rotate(async () => {
    if (++asked === 2) await old.of(globex)
    return asked === 1 ? [acme] : [acme, globex]
  })
  t.match(born, { anew: 1, failed: [{ tenant: globex }] }, 'nor where it has wrapped the key of a new tenant')
  t.match(await next.rotate(() => Promise.resolve([acme, globex])), { before: 1, anew: 1, failed: [] })
  t.same(await process(() => [k2]).of(acme), key)
})

t.test('a key service that is away takes nothing away that was opened before, and one that refuses does', async (t) => {
  const { state, keys } = await setup(t)
  const service = { answer: 'right' as 'right' | 'away' | 'busy' | 'refused', asked: 0 }
  const errorOf = {
    away: [503, ''],
    busy: [400, 'ThrottlingException'],
    refused: [400, 'AccessDeniedException']
  } as const
  // AWS JSON 1.1: what is wrapped here is what it was, turned around.
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    service.asked++
    const turned = (text: unknown): string =>
      Buffer.from(Buffer.from(String(text), 'base64').toReversed()).toString('base64')
    const given = (await json(request)) as Record<string, unknown>
    const [status, name] = service.answer === 'right' ? [200, ''] : errorOf[service.answer]
    const isWrap = request.headers['x-amz-target'] === 'TrentService.Encrypt'
    const body = isWrap
      ? { CiphertextBlob: turned(given['Plaintext']) }
      : { Plaintext: turned(given['CiphertextBlob']) }
    response.writeHead(status, { 'content-type': 'application/x-amz-json-1.1' })
    response.end(JSON.stringify(status === 200 ? body : { __type: name }))
  }
  const endpoint = await listen(
    t,
    createServer((request, response) => void answer(request, response))
  )
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' })
  state.keys = [{ id: 'kms', awsKms: { keyId: 'alias/gatehouse', region: 'eu-central-1', endpoint } }]
  const key = await keys.of(acme)
  const quarter = 16 * 60_000
  for (const fault of ['away', 'busy'] as const) {
    service.answer = fault
    const { asked } = service
    state.now += quarter
    t.equal(await keys.of(acme), key, fault)
    t.ok(service.asked > asked, 'although it was asked')
  }
  service.answer = 'refused'
  state.now += quarter
  await t.rejects(
    keys.of(acme),
    { message: /The key kms of the vault cannot open/ },
    'a right that was taken away ends'
  )
  service.answer = 'right'
  const again = await keys.of(acme)
  t.same(again, key)
  service.answer = 'away'
  state.now += 24 * 60 * 60_000
  await t.rejects(keys.of(acme), { code: 'unavailable' }, 'nor for longer than a day')
})
