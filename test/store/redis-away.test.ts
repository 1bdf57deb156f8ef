// Redis killed, frozen, restarted, full, locked: calls fail clearly within a second, and everything heals without help.

import t, { type Test } from 'tap'
import type { Store } from '../../src/store/port.ts'
import { createRedisStore } from '../../src/store/redis.ts'
import { redis } from '../kit/redis.ts'
import { quiet, recorded, until } from './kit.ts'

const heartbeatMs = 200
// A call has one second (src/store/port.ts); the rest is for a machine that is busy with other things.
const patienceMs = 30_000

async function open(t: Test, url: string): Promise<Store> {
  const store = await createRedisStore({ url, clock: Date, log: quiet, heartbeatMs })
  t.teardown(() => store.close())
  return store
}

const calls: Record<string, (store: Store) => Promise<unknown>> = {
  get: (store) => store.get('k'),
  set: (store) => store.set('k', 'v', { ttlMs: 60_000, when: 'absent' }),
  delete: (store) => store.delete('k'),
  touch: (store) => store.touch('k', 1_000),
  count: (store) => store.count('n', 1, 1_000),
  publish: (store) => store.publish('c', 'm'),
  ping: (store) => store.ping()
}

/** Every call, all at once: each has to reject by itself in time. */
async function allRefused(t: Test, store: Store): Promise<void> {
  await Promise.all(
    Object.entries(calls).map(async ([name, call]) => {
      const began = performance.now()
      await t.rejects(
        call(store),
        { name: 'GatewayError', code: 'unavailable', headers: { 'Retry-After': '1' } },
        `${name} is refused`
      )
      t.ok(performance.now() - began < patienceMs, `${name} is refused in time`)
    })
  )
}

async function allAnswered(t: Test, store: Store): Promise<void> {
  for (const [name, call] of Object.entries(calls))
    await t.resolves(
      call(store).then(() => undefined),
      `${name} is answered`
    )
}

const answers = (store: Store): Promise<boolean> =>
  store.ping().then(
    () => true,
    () => false
  )

/** A subscriber on one store, and how to wait until what another one publishes gets through. */
async function listening(store: Store, publisher: Store): Promise<() => Promise<void>> {
  const heard: string[] = []
  let sent = 0
  await store.subscribe('c', (message) => {
    heard.push(message)
  })
  return async () => {
    sent += 1
    await publisher.publish('c', `message ${sent}`)
    await until(() => heard.includes(`message ${sent}`))
  }
}

t.test('Redis killed and started again', async (t) => {
  const server = await redis(t)
  const store = await open(t, server.url)
  const publisher = await open(t, server.url)
  const getsThrough = await listening(store, publisher)
  let lost = 0
  store.onLost(() => {
    throw new Error('a broken listener')
  })
  store.onLost(() => {
    lost += 1
  })
  await allAnswered(t, store)
  await getsThrough()
  t.ok(store.live)
  t.equal(lost, 0)

  await server.stop()
  await until(() => !store.live)
  t.equal(lost, 1, 'the loss is told, even after a listener that throws')
  await allRefused(t, store)

  const told = lost
  await server.restart()
  const began = performance.now()
  await until(async () => store.live && publisher.live && (await answers(store)) && (await answers(publisher)))
  t.ok(performance.now() - began < 30_000, 'it heals within a few seconds')
  t.ok(lost > told, 'and told once more, for what was read in between')
  await allAnswered(t, store)
  await getsThrough()
})

t.test('Redis frozen and thawed', async (t) => {
  const server = await redis(t)
  const store = await open(t, server.url)
  const publisher = await open(t, server.url)
  const getsThrough = await listening(store, publisher)
  let lost = 0
  store.onLost(() => {
    lost += 1
  })
  await getsThrough()

  server.pause()
  await allRefused(t, store)
  await until(() => !store.live)
  t.ok(lost > 0)
  // Later calls meet connections that were given up and ones that hang in their handshake.
  for (let i = 0; i < 5; i += 1) {
    await allRefused(t, store)
    t.notOk(store.live)
  }

  const told = lost
  server.resume()
  await until(async () => store.live && publisher.live && (await answers(store)) && (await answers(publisher)))
  t.ok(lost > told)
  await allAnswered(t, store)
  await getsThrough()
})

t.test('a freeze is noticed by the heartbeat alone, without any call', async (t) => {
  const server = await redis(t)
  const store = await open(t, server.url)
  t.ok(store.live)
  server.pause()
  await until(() => !store.live)
  server.resume()
  await until(() => store.live)
})

t.test('a process that was held up itself reads what Redis answered meanwhile, and refuses no call', async (t) => {
  const server = await redis(t)
  const store = await open(t, server.url)
  await store.set('k', 'v', { ttlMs: 60_000 })
  await until(() => answers(store))
  // What a busy machine holds up for longer is a connection that counts as lost: it says nothing of this.
  for (let heldMs = Infinity; heldMs >= 900;) {
    await until(() => answers(store))
    // From a check phase, the next phase is that of timers, before anything is read.
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
    const began = performance.now()
    const got = store.get('k').catch((error: unknown) => error)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 650)
    heldMs = performance.now() - began
    const answer = await got
    if (heldMs < 900) t.equal(answer, 'v')
  }
})

t.test('what was refused is not done later', async (t) => {
  const server = await redis(t)
  const store = await open(t, server.url)
  await server.stop()
  await until(() => !store.live)
  await t.rejects(store.set('late', 'x'), { code: 'unavailable' })
  await t.rejects(store.count('late counter', 1, 60_000), { code: 'unavailable' })
  await server.restart()
  await until(() => answers(store))
  t.equal(await store.get('late'), undefined)
  t.equal(await store.get('late counter'), undefined)
})

t.test(
  'Redis down at the start: the store opens, refuses, keeps its subscriptions, and works when Redis comes',
  async (t) => {
    const server = await redis(t)
    await server.stop()
    const { log, lines } = recorded()
    const store = await createRedisStore({ url: server.url, clock: Date, log, heartbeatMs })
    t.teardown(() => store.close())
    t.notOk(store.live)
    await allRefused(t, store)
    const heard: string[] = []
    await store.subscribe('c', (message) => {
      heard.push(message)
    })
    const stop = await store.subscribe('other', () => {
      heard.push('other')
    })
    await stop()
    const told = (): number => lines.filter(({ msg }) => String(msg).startsWith('Redis cannot be reached')).length
    await until(() => told() >= 3)
    t.equal(told(), 3, 'told once for each connection, not at every try')

    await server.restart()
    await until(async () => store.live && (await answers(store)))
    await store.publish('other', 'x')
    await store.publish('c', 'x')
    await until(() => heard.length > 0)
    t.same(heard, ['x'])
  }
)

t.test('Redis frozen at the start: the store opens in time, and heals', async (t) => {
  const server = await redis(t)
  server.pause()
  const began = performance.now()
  const store = await open(t, server.url)
  t.ok(performance.now() - began < 20_000)
  t.notOk(store.live)
  await allRefused(t, store)
  server.resume()
  await until(async () => store.live && (await answers(store)))
  await allAnswered(t, store)
})

t.test('a store is closed while Redis is away or frozen, in time and without telling a loss', async (t) => {
  for (const fault of ['stop', 'pause'] as const) {
    const server = await redis(t)
    const store = await open(t, server.url)
    await server[fault]()
    const began = performance.now()
    let lost = 0
    store.onLost(() => {
      lost += 1
    })
    await store.close()
    t.ok(performance.now() - began < patienceMs, fault)
    t.notOk(store.live)
    t.ok(lost <= 1)
  }
})

t.test('a Redis that is full refuses to write and still reads', async (t) => {
  const server = await redis(t)
  const store = await open(t, server.url)
  await store.set('k', 'v')
  const full = await redis(t, ['--maxmemory', '1'])
  const other = await open(t, full.url)
  await t.rejects(other.set('k', 'v'), { code: 'unavailable' })
  await t.rejects(other.count('n', 1, 1_000), { code: 'unavailable' })
  t.equal(await other.get('n'), undefined)
  t.equal(await store.get('k'), 'v')
})
