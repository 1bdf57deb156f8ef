// Which sessions a tenant has: all that are open, however many others were opened and ended since.

import t from 'tap'
import { openSessionsKey } from '../../src/store/keys.ts'
import { sessionCursor, sessionHandle } from '../../src/session/session-index.ts'
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
