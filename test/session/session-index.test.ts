// Which sessions a tenant has: all that are open, however many others were opened and ended since.

import t from 'tap'
import { openSessionsKey } from '../../src/store/keys.ts'
import { sessionCursor, sessionHandle } from '../../src/session/session-index.ts'
import { unavailable } from '../../src/store/port.ts'
import { until } from '../kit/until.ts'
import { ada, client, endpoint, sessionsInStore } from './kit.ts'

t.test('an older session is listed however many were opened and ended after it', async (t) => {
  const { sessions, store, clock } = await sessionsInStore(t)
  const { session: older } = await sessions.open(ada, endpoint, client)
  for (let n = 0; n < 1_500; n++) await sessions.end((await sessions.open(ada, endpoint, client)).session)
  clock.advance(1)
  const { session: newer } = await sessions.open(ada, endpoint, client)
  const listed = await sessions.index.list(ada.tenant, 10)
  t.same(
    listed.map(({ key }) => key),
    [newer.key, older.key]
  )
  t.equal((await store.members(openSessionsKey(ada.tenant), { max: 5_000 })).length, 2, 'what has ended leaves nothing')
  t.equal((await sessions.index.find(ada.tenant, sessionHandle(older.key)))?.key, older.key)
})

t.test('a cursor holds its place when its session ends, also among those of the same millisecond', async (t) => {
  const { sessions, clock } = await sessionsInStore(t, { sessionsPerPrincipal: 1_000 })
  for (let n = 0; n < 130; n++) {
    await sessions.open(ada, endpoint, client)
    if (n % 40 === 0) clock.advance(1)
  }
  const all = await sessions.index.list(ada.tenant, Infinity)
  t.equal(all.length, 130)
  t.same(
    all.map(({ record }) => record.openedAt),
    all.map(({ record }) => record.openedAt).toSorted((a, b) => b - a)
  )
  const names: string[] = []
  let after: string | undefined
  for (;;) {
    const page = await sessions.index.list(ada.tenant, 7, after)
    names.push(...page.map(({ key }) => key))
    const last = page.at(-1)
    if (last === undefined) break
    after = sessionCursor(last)
    await sessions.end(last)
  }
  t.same(
    names,
    all.map(({ key }) => key)
  )
})

t.test(
  'a session that no list has yet is listed from its next use on; what has idled out goes by and by',
  async (t) => {
    const { sessions, store, clock } = await sessionsInStore(t, { sessionsPerPrincipal: 10_000 })
    const { id, session } = await sessions.open(ada, endpoint, client)
    await store.delete(openSessionsKey(ada.tenant))
    t.same(await sessions.index.list(ada.tenant, 10), [])
    for (let n = 0; n < 400; n++) await sessions.open(ada, endpoint, client)
    clock.advance(20 * 60_000)
    t.ok(await sessions.load(id, ada, endpoint))
    clock.advance(20 * 60_000)
    t.same(
      (await sessions.index.list(ada.tenant, 1_000)).map(({ key }) => key),
      [session.key],
      'the others have idled out'
    )
    for (let n = 0; n < 1_000; n++) await sessions.end((await sessions.open(ada, endpoint, client)).session)
    const kept = await store.members(openSessionsKey(ada.tenant), { max: 5_000 })
    t.ok(kept.length < 200, `${kept.length} of 401 are kept`)
    t.same(
      (await sessions.index.list(ada.tenant, 1_000)).map(({ key }) => key),
      [session.key]
    )
  }
)

t.test('a session is found by its name here with one record read, however many there are', async (t) => {
  const read: string[] = []
  const { sessions } = await sessionsInStore(t, { sessionsPerPrincipal: 10_000 }, (store) => ({
    ...store,
    get(key) {
      if (key.startsWith('session:')) read.push(key)
      return store.get(key)
    }
  }))
  const { session } = await sessions.open(ada, endpoint, client)
  for (let n = 0; n < 1_200; n++) await sessions.open(ada, endpoint, client)
  read.length = 0
  t.equal((await sessions.index.find(ada.tenant, sessionHandle(session.key)))?.key, session.key)
  t.same(read, [session.key])
  t.equal(await sessions.index.find(ada.tenant, 'x'.repeat(22)), undefined)
  t.equal(read.length, 1)
})

t.test('whoever reads the list takes out of it what is over', async (t) => {
  const { sessions, store, clock } = await sessionsInStore(t, { sessionsPerPrincipal: 1_000 })
  for (let n = 0; n < 120; n++) await sessions.open(ada, endpoint, client)
  clock.advance(20 * 60_000)
  const { session } = await sessions.open(ada, endpoint, client)
  clock.advance(20 * 60_000)
  const kept = async (): Promise<number> => (await store.members(openSessionsKey(ada.tenant), { max: 5_000 })).length
  t.equal(await kept(), 121)
  t.same(
    (await sessions.index.list(ada.tenant, 1_000)).map(({ key }) => key),
    [session.key]
  )
  await until('they are gone', async () => (await kept()) === 1)
})

t.test('a look for what is over that fails is no matter of the caller in whose request it began', async (t) => {
  let failed = 0
  let isAway = false
  const { sessions, store, clock } = await sessionsInStore(t, { sessionsPerPrincipal: 1_000 }, (store) => ({
    ...store,
    async members(key, options) {
      if (!isAway) return await store.members(key, options)
      failed++
      throw unavailable('The store is away.')
    }
  }))
  isAway = true
  for (let n = 0; n < 60; n++) await sessions.open(ada, endpoint, client)
  t.equal(failed, 2)
  await t.rejects(sessions.index.list(ada.tenant, 10), { code: 'unavailable' }, 'who asks for the list is told')
  isAway = false
  clock.advance(40 * 60_000)
  for (let n = 0; n < 60; n++) await sessions.open(ada, endpoint, client)
  await until('some that are over are gone', async () => {
    const kept = await store.members(openSessionsKey(ada.tenant), { max: 5_000 })
    return kept.length < 120
  })
})

t.test('sessions are counted without their records, those that have idled out by and by left out', async (t) => {
  let read = 0
  const { sessions, clock } = await sessionsInStore(t, { sessionsPerPrincipal: 10_000 }, (store) => ({
    ...store,
    get(key) {
      if (key.startsWith('session:')) read++
      return store.get(key)
    }
  }))
  for (let n = 0; n < 130; n++) await sessions.open(ada, endpoint, client)
  read = 0
  t.equal(await sessions.index.count(ada.tenant, 10_000), 130)
  t.equal(await sessions.index.count(ada.tenant, 100), 100)
  t.ok(read <= 100, `${read} records were read, to find those that are over`)
  clock.advance(40 * 60_000)
  await sessions.open(ada, endpoint, client)
  const counts: number[] = []
  for (let n = 0; n < 5; n++) counts.push(await sessions.index.count(ada.tenant, 10_000))
  t.equal(counts.at(-1), 1, counts.join(', '))
  t.ok((counts[0] ?? 0) > 50)
})
