// The session that a server over HTTP has given to a session of a client, as it is kept: for that session, that upstream
// and that account only.

import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import type { UpstreamDefinition } from '../../../src/config/snapshot.ts'
import { tenantId } from '../../../src/protocol/messages.ts'
import type { UpstreamSession } from '../../../src/protocol/seams.ts'
import type { LiveSession } from '../../../src/session/live-sessions.ts'
import { createKeptSessions } from '../../../src/relay/connections/kept-sessions.ts'
import { unavailable, type Store } from '../../../src/store/port.ts'
import { createSealer } from '../../../src/store/seal.ts'
import { createSqliteStore } from '../../../src/store/sqlite.ts'
import { steadyClock, wallClock } from '../../../src/time/clock.ts'
import { httpDefinition } from '../../kit/connector.ts'
import { quiet } from '../../store/kit.ts'

const session: UpstreamSession = {
  id: 'of the server',
  revision: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'server', version: '1' },
  instructions: undefined,
  secret: 'a secret',
  turn: 3
}

async function rig(t: Test, wrap = (store: Store): Store => store, wall = wallClock) {
  const lapse = { now: '' }
  const keepers = { lapseOf: () => Promise.resolve(lapse.now) }
  const store = await createSqliteStore({ path: `${t.testdir()}/store.db`, clock: wallClock, log: quiet })
  const sealer = await createSealer({ store, randomBytes, timer: steadyClock.timer, log: quiet })
  t.teardown(async () => {
    sealer.close()
    await store.close()
  })
  const newId = (): string => randomBytes(16).toString('base64url')
  const process = () => createKeptSessions(wrap(store), sealer, { wall, newId, log: quiet }, keepers)
  type Asked = Parameters<ReturnType<typeof process>['placeOf']>
  const context = { snapshot: { limits: { sessionIdleMs: 10_000, sessionMaxMs: 60_000 } } } as unknown as Asked[1]
  const placeOf = (
    { key = 'ada’s', tenant = 'acme' } = {},
    definition: UpstreamDefinition = httpDefinition('http://127.0.0.1:1/mcp')
  ) => {
    const of = { key, tenant: tenantId(tenant), session: { record: { openedAt: Date.now() } } } as unknown as Asked[2]
    return process().placeOf(definition, context, of)
  }
  return { store, sealer, placeOf, process, context, lapse }
}

t.test('what was kept before a home that keeps nothing is out of date, and can be ended all the same', async (t) => {
  const { placeOf, lapse } = await rig(t)
  const before = placeOf()
  await before?.load()
  await before?.keep(session)
  t.same(await placeOf()?.load(), session, 'the control')
  lapse.now = 'a home'
  const [next, ending] = [placeOf(), placeOf()]
  t.equal(await next?.load(), undefined)
  t.equal(await next?.keep({ ...session, id: 'another' }), true, 'in place of it')
  t.equal((await placeOf()?.load())?.id, 'another')
  lapse.now = ''
  t.equal(await placeOf()?.load(), undefined, 'nor does what was kept since go on under another name')
  const taken = await Promise.all([ending?.take(), placeOf()?.take(), placeOf()?.take()])
  t.same(
    taken.filter((each) => each !== undefined).map(({ id }) => id),
    ['another'],
    'by one alone'
  )
})

t.test('another process has it as it was kept, and whoever kept it last may end it', async (t) => {
  const { placeOf } = await rig(t)
  const [first, next] = [placeOf(), placeOf()]
  t.equal(await first?.load(), undefined)
  await first?.keep(session)
  t.same(await next?.load(), session)
  await next?.keep(session)
  t.equal(await first?.end(session.id), false, 'the same session, and another connection has it')
  t.same(await placeOf()?.load(), session)
  t.equal(await next?.end(session.id), true)
  t.equal(await placeOf()?.load(), undefined)
  t.equal(await next?.end(session.id), true, 'nobody has it')
})

t.test('it is kept for the idle time of the session, from its last use', async (t) => {
  const times: Array<readonly [string, number | undefined]> = []
  const watched = (store: Store): Store =>
    Object.assign(Object.create(store), {
      set: (...given: Parameters<Store['set']>) => (times.push(['set', given[2]?.ttlMs]), store.set(...given)),
      touch: (key: string, ttlMs: number) => (times.push(['touch', ttlMs]), store.touch(key, ttlMs))
    }) as Store
  const wall = { now: (): number => now, timer: wallClock.timer }
  let now = Date.now()
  const { process, context } = await rig(t, watched, wall)
  const definition = { ...httpDefinition('http://127.0.0.1:1/mcp'), idleMs: 5_000 }
  const record = { openedAt: now }
  const live = { key: 'ada’s', tenant: tenantId('acme'), session: { record } } as unknown as LiveSession
  const kept = process()
  await kept.placeOf(definition, context, live)?.keep(session)
  kept.used(live, definition.hash)
  now += 2_000
  kept.used(live, definition.hash)
  kept.used(live, definition.hash)
  now += 56_000
  kept.used(live, definition.hash)
  kept.used(live, 'another upstream')
  const whole = 11_000 // With the tenth after which it is renewed.
  t.same(times, [
    ['set', whole],
    ['touch', whole],
    ['touch', 2_000]
  ])
})

t.test('of two that have read the same, one has it', async (t) => {
  const { placeOf } = await rig(t)
  await placeOf()?.keep(session)
  const [one, other] = [placeOf(), placeOf()]
  await Promise.all([one?.load(), other?.load()])
  const kept = await Promise.all([one?.keep({ ...session, turn: 4 }), other?.keep({ ...session, turn: 4 })])
  t.equal(kept.filter((isKept) => isKept === true).length, 1)
  const [loser, winner] = kept[0] === true ? [other, one] : [one, other]
  t.equal(await loser?.end('begun by itself'), true, 'what it speaks in now is its own alone')
  t.ok(await placeOf()?.load(), 'and the other one still has the session')
  t.equal(await winner?.keep(session), true)
})

t.test('it is for one tenant, session, upstream and account, wherever it is copied', async (t) => {
  const { store, placeOf } = await rig(t)
  const own = httpDefinition('http://127.0.0.1:1/mcp')
  const others = [
    placeOf({ key: 'bob’s' }),
    placeOf({}, { ...own, hash: `${own.hash}.another account` }),
    placeOf({}, { ...own, hash: 'another upstream' })
  ]
  const written: string[] = []
  const keys: string[] = []
  const set = store.set.bind(store)
  store.set = (key, value, options) => {
    keys.push(key)
    written.push(value)
    return set(key, value, options)
  }
  await placeOf()?.keep(session)
  const [copy = ''] = written
  for (const other of others) await other?.keep(session)
  t.equal(new Set(keys).size, 4, 'each has a key of its own')
  for (const key of keys.slice(1)) await set(key, copy)
  for (const other of others) t.equal(await other?.load(), undefined)
  t.equal(await placeOf({ tenant: 'umbrella' })?.load(), undefined)
  t.same(await placeOf()?.load(), session, 'the control')
  t.notMatch(written.join(), /of the server|a secret/)
})

t.test('what is no record of ours counts as absent', async (t) => {
  const { store, placeOf } = await rig(t)
  const set = store.set.bind(store)
  let key = ''
  store.set = (...given) => {
    key = given[0]
    return set(...given)
  }
  const place = placeOf()
  await place?.keep({ ...session, instructions: 'x'.repeat(60_000) })
  t.equal(key, '', 'too large: it is not kept')
  await place?.keep({ ...session, revision: '2026-07-28' })
  t.equal(await place?.load(), undefined, 'of a revision without sessions')
  await place?.keep(session)
  t.same(await place?.load(), session, 'the control')
  for (const value of ['', 'x', 'x'.repeat(100_000)]) {
    await set(key, value)
    t.equal(await place?.load(), undefined)
  }
})

t.test('a store that is away costs the session its next process, and no call anything', async (t) => {
  const away = () => Promise.reject(unavailable('away'))
  const { placeOf } = await rig(t, (store) => Object.assign(Object.create(store), { get: away, set: away }) as Store)
  const place = placeOf()
  t.equal(await place?.load(), undefined)
  await place?.keep(session)
  t.equal(await place?.end(session.id), true, 'it was never kept')
})

t.test(
  'nothing is kept of processes, of connections that several share, and where nothing outlives the process',
  async (t) => {
    const { placeOf } = await rig(t)
    const own = httpDefinition('http://127.0.0.1:1/mcp')
    t.ok(placeOf({}, own), 'the control')
    for (const isolation of ['shared', 'principal'] as const) t.notOk(placeOf({}, { ...own, isolation }))
    t.notOk(placeOf({}, { ...own, type: 'stdio' } as unknown as UpstreamDefinition))
    const memory = await rig(t, (store) => Object.assign(Object.create(store), { lasting: false }) as Store)
    t.notOk(memory.placeOf())
  }
)
