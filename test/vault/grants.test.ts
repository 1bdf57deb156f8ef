// What a process remembers of what people have given, while it changes.

import t from 'tap'
import pino from 'pino'
import { personKeyOf } from '../../src/auth/principal.ts'
import { tenantId } from '../../src/protocol/messages.ts'
import { grantEndsKey } from '../../src/store/keys.ts'
import { openStore } from '../../src/store/open-store.ts'
import type { Store } from '../../src/store/port.ts'
import { steadyClock, wallClock } from '../../src/time/clock.ts'
import { createGrants, newGrantId } from '../../src/vault/grants.ts'
import { createSealedValues } from '../../src/vault/sealed-values.ts'
import { createVaultKeys } from '../../src/vault/wrapping/vault-keys.ts'

const log = pino({ level: 'silent' })
const ada = { tenant: tenantId('acme'), issuer: 'urn:gatehouse:key', subject: 'ada' }
const epochs = { epochOf: () => Promise.resolve(0), isCurrentEpoch: () => true }
const vault = { keys: [{ id: 'k1', key: Buffer.alloc(32, 7).toString('base64') }] }

t.test('whoever reads again what is changing meanwhile goes on with what is there afterwards', async (t) => {
  const store = await openStore({ kind: 'sqlite', path: ':memory:' }, wallClock, log)
  const keys = createVaultKeys({ store, snapshot: () => ({ vault }), epochs, clock: steadyClock, log })
  const sealed = createSealedValues(store, keys, log)
  /** Of reads that have their answer and have not given it yet. */
  let held: Array<() => void> | undefined
  const values: typeof sealed = {
    ...sealed,
    async read(...place) {
      const value = await sealed.read(...place)
      if (held !== undefined) await new Promise<void>((resolve) => held?.push(resolve))
      return value
    }
  }
  const grants = await createGrants({ store, values, epochs, upstreamsOf: () => ['up'], clock: steadyClock, log })
  t.teardown(async () => {
    await grants.close()
    await store.close()
  })
  const secret = () => grants.last(personKeyOf(ada))?.get('up')?.secret
  const put = (text: string) =>
    grants.put(ada, 'up', { id: newGrantId(), target: 'https://up.example', secret: text }, 0)
  await put('first')
  await grants.read(ada)
  t.equal(secret(), 'first')

  held = []
  let seen: string | undefined
  const waiting = grants.refresh(ada).then(() => {
    seen = secret()
  })
  while (held.length < 1) await new Promise(setImmediate)
  await put('second')
  while (held.length < 2) await new Promise(setImmediate)
  const all = held
  held = undefined
  for (const release of all) release()
  await waiting
  t.equal(seen, 'second')
})

t.test('the ends of connections are read once for all upstreams of a person, and stay short', async (t) => {
  const inner = await openStore({ kind: 'sqlite', path: ':memory:' }, wallClock, log)
  let reads = 0
  const store: Store = Object.create(inner, {
    get: {
      value(key: string) {
        if (key.startsWith('grant-ends:')) reads++
        return inner.get(key)
      }
    }
  }) as Store
  const keys = createVaultKeys({ store, snapshot: () => ({ vault }), epochs, clock: steadyClock, log })
  const values = createSealedValues(store, keys, log)
  const upstreams = Array.from({ length: 12 }, (_, n) => `up${n}`)
  const grants = await createGrants({ store, values, epochs, upstreamsOf: () => upstreams, clock: steadyClock, log })
  t.teardown(async () => {
    await grants.close()
    await inner.close()
  })
  for (const upstream of upstreams)
    await grants.put(ada, upstream, { id: newGrantId(), target: '', secret: 'of ada' }, 0)
  reads = 0
  t.equal((await grants.read(ada)).size, upstreams.length)
  // Once more where the word of the last change comes during the read.
  t.ok(reads === 1 || reads === 2, `${reads} for ${upstreams.length} upstreams`)
  const endOf = (n: number) => grants.endAll(ada.tenant, { issuer: `https://${n}.example/${'x'.repeat(2_000)}` })
  let kept = 0
  while (kept < 1_000 && (await endOf(kept))) kept++
  t.ok(kept > 10 && kept < 40, `${kept} of them`)
  t.ok(((await inner.get(grantEndsKey('acme'))) ?? '').length <= 65_536)
  t.ok(await grants.endAll(ada.tenant, {}), 'the end of all takes in those of parts')
  t.equal(await grants.get(ada, 'up0'), undefined)
})
