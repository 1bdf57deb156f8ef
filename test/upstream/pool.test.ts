// The pool: one connection per definition and scope, back-off, idleness, reload and shutdown. Time stands still where
// it matters.

import t, { type Test } from 'tap'
import { GatewayError, type Result } from '../../src/protocol/messages.ts'
import { UnreachableError } from '../../src/upstream/rpc/errors.ts'
import { createPool } from '../../src/upstream/pool/pool.ts'
import {
  callOf,
  handClock,
  handshake,
  never,
  recordingClient,
  recordingEvents,
  stdioDefinition,
  testConnector,
  until
} from '../kit/connector.ts'
import type { Upstream, UpstreamEvents } from '../../src/protocol/seams.ts'
import type { Connector } from '../../src/upstream/connect/connect.ts'

interface Made {
  readonly name: string
  readonly events: UpstreamEvents
  closed: boolean
  readonly calls: Array<PromiseWithResolvers<Result>>
}

/** A connector whose connections are doubles of the seam; `gate` decides how each attempt ends. */
function fakeConnector(gate: () => Promise<void> = () => Promise.resolve()) {
  const made: Made[] = []
  let attempts = 0
  const connector: Connector = {
    endSession: () => Promise.resolve(),
    async connect(definition, _handshake, events, signal) {
      attempts++
      const aborted = new Promise<never>((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(new GatewayError('cancelled', 'given up')))
      })
      aborted.catch(() => {})
      await Promise.race([gate(), aborted])
      const one: Made = { name: definition.hash, events, closed: false, calls: [] }
      made.push(one)
      const upstream: Upstream = {
        id: String(made.length),
        name: definition.name,
        era: 'legacy',
        revision: '2025-11-25',
        capabilities: {},
        serverInfo: { name: 'double', version: '1' },
        instructions: undefined,
        request() {
          const call = Promise.withResolvers<Result>()
          one.calls.push(call)
          return call.promise
        },
        notify() {},
        async close() {
          one.closed = true
        },
        destroy() {
          one.closed = true
        }
      }
      return upstream
    }
  }
  return { connector, made, attempts: () => attempts }
}

function still(gate?: () => Promise<void>) {
  const clock = handClock()
  const fake = fakeConnector(gate)
  const pool = createPool({ connector: fake.connector, clock, random: () => 0, log: testConnector().log })
  const definition = (overrides: object = {}) => stdioDefinition({}, { hash: 'd1', idleMs: 60_000, ...overrides })
  const acquire = (overrides: object = {}, scope = 'shared', events = recordingEvents()) =>
    pool.acquire(definition(overrides), scope, handshake, events)
  return { clock, pool, acquire, definition, ...fake }
}

const refused = () => Promise.reject(new UnreachableError('upstream_unavailable', 'connection refused'))

t.test('who asks at the same time gets the same connection, and later too', async (t) => {
  const { acquire, attempts } = still()
  const [a, b] = await Promise.all([acquire(), acquire()])
  t.equal(a, b)
  t.equal(await acquire(), a)
  t.equal(attempts(), 1)
})

t.test('another scope and another definition are other connections, connected in parallel', async (t) => {
  const all = Promise.withResolvers<void>()
  let waiting = 0
  const { acquire, attempts } = still(() => {
    if (++waiting === 3) all.resolve()
    return all.promise
  })
  const [a, b, c] = await Promise.all([acquire(), acquire({}, 'session:1'), acquire({ hash: 'd2' })])
  t.equal(new Set([a, b, c]).size, 3)
  t.equal(attempts(), 3)
})

t.test('an upstream that fails is left alone for 1 s, then 2, up to 60, and says when it is tried again', async (t) => {
  const { acquire, attempts, clock } = still(refused)
  await t.rejects(acquire(), { code: 'upstream_unavailable', message: 'connection refused' })
  await t.rejects(acquire({}, 'session:2'), {
    code: 'upstream_unavailable',
    message: /tried again in 1 s.*connection refused/,
    data: { upstream: 'files', retryAfterMs: 1_000 }
  })
  t.equal(attempts(), 1, 'no attempt was made')
  let wait = 1_000
  for (const next of [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]) {
    clock.advance(wait)
    await t.rejects(acquire(), { message: 'connection refused' })
    await t.rejects(acquire(), { message: /tried again/, data: { retriedInMs: next } })
    wait = next
  }
})

t.test('sessions that fail together are one failure', async (t) => {
  const { acquire } = still(refused)
  await Promise.allSettled(Array.from({ length: 100 }, (_, n) => acquire({}, `session:${n}`)))
  await t.rejects(
    acquire(),
    { message: /tried again/, data: { retryAfterMs: 1_000 } },
    'as long as after the first failure'
  )
})

t.test('an upstream that is left alone holds up no other', async (t) => {
  const { acquire } = still(() => Promise.resolve())
  const failing = still(refused)
  await t.rejects(failing.acquire())
  t.ok(await acquire({ hash: 'healthy' }))
})

t.test('a limit of our own is no failure of the upstream', async (t) => {
  const { acquire, attempts } = still(() => Promise.reject(new GatewayError('too_many', 'limits.processes')))
  await t.rejects(acquire(), { code: 'too_many' })
  await t.rejects(acquire(), { code: 'too_many' })
  t.equal(attempts(), 2)
})

t.test('a connection that ended is replaced at the next acquire, and its owner was told', async (t) => {
  const { acquire, made, clock } = still()
  const events = recordingEvents()
  const first = await acquire({}, 'shared', events)
  clock.advance(6_000)
  made[0]?.events.closed(new Error('gone'))
  t.equal(events.ended.length, 1)
  t.not(await acquire(), first)
})

t.test(
  'a connection that dies young is replaced at once the first time, then left alone for ever longer',
  async (t) => {
    const { acquire, made, clock } = still()
    const die = async (n: number): Promise<void> => {
      await acquire()
      made[n]?.events.closed(new Error('exit code 1'))
    }
    await die(0)
    await die(1)
    await t.rejects(acquire(), { message: /tried again in 1 s.*exit code 1/ })
    clock.advance(1_000)
    await die(2)
    await t.rejects(acquire(), { message: /tried again in 2 s/ }, 'a crash loop is not reset by connecting')
    clock.advance(2_000)
    await acquire()
    clock.advance(10_000)
    await die(3) // of old age
    await die(4)
    await die(5)
    await t.rejects(acquire(), { message: /tried again in 1 s/ }, 'one that lived is forgiven')
  }
)

t.test('a session that crashes its own connection over and over locks no other session out', async (t) => {
  const { acquire, made } = still()
  for (let n = 0; n < 2; n++) {
    await acquire({}, 'session:mad')
    made[n]?.events.closed(new Error('exit code 1'))
  }
  await t.rejects(acquire({}, 'session:mad'), { message: /tried again in 1 s/ })
  t.ok(await acquire({}, 'session:sane'))
})

t.test('a connection without calls is closed when idle, one with a call or a listener is not', async (t) => {
  const { acquire, made, clock, pool } = still()
  await acquire({}, 'idle')
  const busy = await acquire({}, 'busy')
  await acquire({}, 'touched')
  const call = busy.request(callOf('slow'), recordingClient(), never)
  for (let n = 0; n < 5; n++) {
    clock.advance(30_000)
    pool.touch('touched')
  }
  await until(() => made[0]?.closed === true, 'the idle one is closed')
  t.same(
    made.map(({ closed }) => closed),
    [true, false, false]
  )
  made[1]?.calls[0]?.resolve({})
  await call
  clock.advance(59_000)
  t.equal(made[1]?.closed, false, 'idleness counts from the end of the call')
  clock.advance(10_000)
  await until(() => made[1]?.closed === true, 'then it is closed')
})

t.test('releasing a scope closes its connections and gives up those being made', async (t) => {
  const gates = [Promise.resolve(), new Promise<void>(() => {})]
  let attempt = 0
  const { acquire, made, pool } = still(() => gates[attempt++] ?? Promise.resolve())
  await acquire({}, 'session:1')
  const pending = t.rejects(acquire({ hash: 'd2' }, 'session:1'), { code: 'cancelled' })
  await acquire({}, 'session:2')
  await pool.release('session:1')
  await pending
  t.same(
    made.map(({ closed }) => closed),
    [true, false]
  )
  await pool.release('session:1')
  t.ok(await acquire({ hash: 'd2' }, 'session:1'), 'what was given up is no failure')
})

t.test('after a reload, what is unchanged stays and the rest is closed once its calls have ended', async (t) => {
  const { acquire, made, pool } = still()
  const kept = await acquire({ hash: 'kept' })
  await acquire({ hash: 'idle' })
  const busy = await acquire({ hash: 'busy' })
  const call = busy.request(callOf('slow'), recordingClient(), never)
  pool.retain(new Set(['kept']))
  await until(() => made[1]?.closed === true, 'the idle one is closed')
  t.equal(made[2]?.closed, false, 'a call keeps the configuration it began with')
  t.equal(await acquire({ hash: 'kept' }), kept)
  made[2]?.calls[0]?.resolve({ done: true })
  t.same(await call, { done: true })
  await until(() => made[2]?.closed === true, 'then it is closed')
})

t.test('closing closes all and refuses more', async (t) => {
  const { acquire, made, pool } = still()
  await Promise.all([acquire({}, 'a'), acquire({}, 'b'), acquire({ hash: 'x' })])
  await pool.close()
  t.ok(made.every(({ closed }) => closed))
  await t.rejects(acquire(), { code: 'shutting_down' })
})

t.test('closing takes a connection too that is still retired with a call in flight', async (t) => {
  const { acquire, made, pool } = still()
  const busy = await acquire()
  busy.request(callOf('slow'), recordingClient(), never).catch(() => {})
  pool.retain(new Set())
  await pool.close()
  t.equal(made[0]?.closed, true)
})

function real(t: Test) {
  const shop = testConnector()
  t.teardown(() => shop.pool.close())
  return shop
}

t.test('a real child that crashes is replaced', async (t) => {
  const { pool, supervisor } = real(t)
  const events = recordingEvents()
  const upstream = await pool.acquire(stdioDefinition(), 'shared', handshake, events)
  await t.rejects(upstream.request(callOf('crash'), recordingClient(), never), { code: 'upstream_lost' })
  t.equal(events.ended.length, 1)
  t.ok(await pool.acquire(stdioDefinition(), 'shared', handshake, events))
  t.equal(supervisor.count(), 1)
})

t.test('of real children nothing is left after idling, releasing and closing', async (t) => {
  const { pool, supervisor } = real(t)
  await Promise.all(
    Array.from({ length: 6 }, (_, n) =>
      pool.acquire(
        stdioDefinition({}, { idleMs: n < 2 ? 200 : 60_000, hash: `h${n % 3}` }),
        `session:${n}`,
        handshake,
        recordingEvents()
      )
    )
  )
  await until(() => supervisor.count() === 4, 'the idle ones have ended')
  await pool.release('session:4')
  await until(() => supervisor.count() === 3, 'the released one has ended')
  await pool.close()
  await until(() => supervisor.count() === 0, 'all have ended')
})
