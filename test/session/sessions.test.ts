// The record behind a session id: whose it is, how long it lives, and what its copies may not do.

import t from 'tap'
import { endpointName, tenantId } from '../../src/protocol/messages.ts'
import { createLiveSessions } from '../../src/session/live-sessions.ts'
import { sessionHandle } from '../../src/session/session-index.ts'
import { dropWithSessions } from '../../src/session/session-end.ts'
import type { Store } from '../../src/store/port.ts'
import { steadyClock } from '../../src/time/clock.ts'
import { until } from '../kit/until.ts'
import { ada, client, endpoint, sessionsInStore } from './kit.ts'

const minute = 60_000

t.test('a session is found by its id and its owner together', async (t) => {
  const { sessions } = await sessionsInStore(t)
  const { id, session } = await sessions.open(ada, endpoint, client)
  t.match(id, /^[A-Za-z0-9_-]{43}$/)
  t.match(await sessions.load(id, ada, endpoint), { key: session.key, record: { owner: ada, endpoint, ...client } })
  t.notOk(session.key.includes(id), 'the key inside is not the id')
  for (const other of [
    { ...ada, tenant: tenantId('beta') },
    { ...ada, issuer: 'https://idp.example/' },
    { ...ada, subject: 'bob' },
    { ...ada, clientId: 'other' },
    { ...ada, subject: '' }
  ]) {
    t.equal(await sessions.load(id, other, endpoint), undefined, JSON.stringify(other))
  }
  t.equal(await sessions.load(id, ada, endpointName('files')), undefined)
  t.equal(await sessions.load(`${id}x`, ada, endpoint), undefined)
  t.ok(await sessions.load(id, { ...ada }, endpoint), 'an equal owner is the owner')
})

t.test('ids do not repeat, and what names a session for people is no option of a command line', async (t) => {
  const { sessions } = await sessionsInStore(t, { sessionsPerPrincipal: 10_000 })
  const ids = new Set<string>()
  const begins = new Set<string>()
  for (let n = 0; n < 5_000; n++) {
    const { id, session } = await sessions.open(ada, endpoint, client)
    ids.add(id)
    begins.add(sessionHandle(session.key).slice(0, 1))
  }
  t.equal(ids.size, 5_000)
  t.equal(begins.size, 63, 'all characters of base64url but the dash')
  t.notOk(begins.has('-'))
})

t.test('an unused session ends after the idle time; a used one goes on', async (t) => {
  const { sessions, clock, ended } = await sessionsInStore(t)
  const used = await sessions.open(ada, endpoint, client)
  const unused = await sessions.open(ada, endpoint, client)
  for (let n = 0; n < 5; n++) {
    clock.advance(20 * minute)
    t.ok(await sessions.load(used.id, ada, endpoint))
  }
  t.equal(await sessions.load(unused.id, ada, endpoint), undefined)
  clock.advance(30 * minute + 1)
  t.equal(await sessions.load(used.id, ada, endpoint), undefined)
  t.equal(await sessions.load(used.id, ada, endpoint), undefined, 'and looking for it does not bring it back')
  t.same(
    ended.filter((key) => key !== used.session.key && key !== unused.session.key),
    []
  )
})

t.test('a session ends after its longest time, however busy it is', async (t) => {
  const { sessions, clock } = await sessionsInStore(t, { sessionMaxMs: 2 * 60 * minute })
  const { id } = await sessions.open(ada, endpoint, client)
  let lived = 0
  while ((await sessions.load(id, ada, endpoint)) !== undefined) {
    clock.advance(minute)
    lived++
    if (lived > 1_000) break
  }
  t.ok(lived >= 119 && lived <= 122, `${lived} minutes`)
})

t.test('an ended session is ended for every process, and for good', async (t) => {
  const { sessions, another } = await sessionsInStore(t)
  const elsewhere = await another()
  const heard: string[] = []
  elsewhere.onEnded((key) => heard.push(key))
  const { id, session } = await sessions.open(ada, endpoint, client)
  t.ok(await elsewhere.load(id, ada, endpoint), 'known there by a copy')
  await sessions.end(session)
  t.equal(await sessions.load(id, ada, endpoint), undefined)
  await until('the other process has heard', () => heard.includes(session.key))
  t.equal(await elsewhere.load(id, ada, endpoint), undefined)
  await sessions.update(session, { logLevel: 'debug' })
  await elsewhere.update(session, { logLevel: 'debug' })
  t.equal(await sessions.load(id, ada, endpoint), undefined, 'a late write does not bring it back to life')
  await sessions.end(session)
  await elsewhere.close()
})

t.test('a change at one process is seen at the other', async (t) => {
  const { sessions, another } = await sessionsInStore(t)
  const elsewhere = await another()
  const { id, session } = await sessions.open(ada, endpoint, client)
  t.match(await elsewhere.load(id, ada, endpoint), { record: { logLevel: undefined } })
  await sessions.update(session, { logLevel: 'error' })
  await until(
    'the level is known there',
    async () => (await elsewhere.load(id, ada, endpoint))?.record.logLevel === 'error'
  )
  await elsewhere.close()
})

t.test('the limit counts open sessions, per caller', async (t) => {
  const { sessions, clock } = await sessionsInStore(t, { sessionsPerPrincipal: 2 })
  const first = await sessions.open(ada, endpoint, client)
  await sessions.open(ada, endpoint, client)
  await t.rejects(sessions.open(ada, endpoint, client), { code: 'too_many', headers: { 'Retry-After': /^\d+$/ } })
  await t.rejects(sessions.open(ada, endpointName('files'), client), { code: 'too_many' }, 'over all endpoints')
  t.ok(await sessions.open({ ...ada, subject: 'bob' }, endpoint, client))
  await sessions.end(first.session)
  t.ok(await sessions.open(ada, endpoint, client))
  await t.rejects(
    sessions.open(ada, endpoint, client),
    { code: 'too_many' },
    'refusals are not counted, and do not make room'
  )
  clock.advance(30 * minute + 1)
  t.ok(await sessions.open(ada, endpoint, client), 'those that idled out make room')
})

t.test('a used session goes on counting, and ending one frees one slot', async (t) => {
  const { sessions, clock } = await sessionsInStore(t, { sessionsPerPrincipal: 2 })
  const [first, second] = [await sessions.open(ada, endpoint, client), await sessions.open(ada, endpoint, client)]
  const use = async (): Promise<void> => {
    for (let n = 0; n < 5; n++) {
      clock.advance(20 * minute)
      for (const { id } of [first, second]) await sessions.load(id, ada, endpoint)
    }
  }
  await use()
  await t.rejects(
    sessions.open(ada, endpoint, client),
    { code: 'too_many' },
    'longer than the idle time after it was opened'
  )
  await sessions.end(first.session)
  await sessions.end(first.session)
  t.ok(await sessions.open(ada, endpoint, client))
  await t.rejects(sessions.open(ada, endpoint, client), { code: 'too_many' }, 'one, not two')
})

t.test('sessions that no client ends stop counting when they expire', async (t) => {
  const { sessions, clock } = await sessionsInStore(t, { sessionsPerPrincipal: 3 })
  const used = await sessions.open(ada, endpoint, client)
  for (let n = 0; n < 10; n++) {
    t.ok(await sessions.open(ada, endpoint, client))
    for (let step = 0; step < 2; step++) {
      clock.advance(20 * minute)
      t.ok(await sessions.load(used.id, ada, endpoint))
    }
  }
})

t.test('of many opened at once at two processes, no more than the limit succeed', async (t) => {
  const { sessions, another } = await sessionsInStore(t, { sessionsPerPrincipal: 100 })
  const elsewhere = await another()
  const opened = await Promise.allSettled(
    Array.from({ length: 150 }, (_, n) => (n % 2 === 0 ? sessions : elsewhere).open(ada, endpoint, client))
  )
  t.equal(opened.filter(({ status }) => status === 'fulfilled').length, 100)
  await elsewhere.close()
})

t.test('a damaged record in the store is an unknown session', async (t) => {
  const { sessions, store, clock } = await sessionsInStore(t)
  for (const text of [
    'null',
    '',
    '{',
    '[]',
    '7',
    '"x"',
    '{}',
    '{"owner":null}',
    '{"owner":{"tenant":"acme"}}',
    JSON.stringify({ owner: ada, endpoint, ...client, capabilities: null, openedAt: 1, touchedAt: 1 }),
    JSON.stringify({ owner: ada, endpoint, ...client, openedAt: 'x', touchedAt: 1 })
  ]) {
    const { id, session } = await sessions.open(ada, endpoint, client)
    await store.set(session.key, text)
    clock.advance(3_000) // The local copy is older than it may be.
    t.equal(await sessions.load(id, ada, endpoint), undefined, text)
  }
})

t.test('no copy is trusted while messages of the store may be missed', async (t) => {
  let live = true
  let reads = 0
  let lost = (): void => {}
  const { sessions, clock } = await sessionsInStore(t, {}, (store): Store => ({
    ...store,
    get live() {
      return live
    },
    onLost: (listener) => {
      lost = listener
    },
    get(key) {
      if (key.startsWith('session:')) reads++
      return store.get(key)
    }
  }))
  const { id } = await sessions.open(ada, endpoint, client)
  const load = async () => {
    reads = 0
    t.ok(await sessions.load(id, ada, endpoint))
    return reads
  }
  t.equal(await load(), 0, 'from the copy')
  clock.advance(2_001)
  t.equal(await load(), 1, 'which lives two seconds')
  t.equal(await load(), 0)
  lost()
  t.equal(await load(), 1, 'and not over a loss')
  live = false
  t.equal(await load(), 1)
  t.equal(await load(), 1, 'nor while nobody would tell us')
})

t.test(
  'the only process on a store keeps its copies while sessions are used, and none of one that ended',
  async (t) => {
    let reads = 0
    const counted = (store: Store): Store => ({
      ...store,
      get(key) {
        if (key.startsWith('session:')) reads++
        return store.get(key)
      }
    })
    for (const shared of [false, true]) {
      const { sessions, clock } = await sessionsInStore(t, {}, counted, shared)
      const { id, session } = await sessions.open(ada, endpoint, client)
      const neighbour = await sessions.open(ada, endpoint, client)
      reads = 0
      for (let uses = 0; uses < 10; uses++) {
        clock.advance(5_000)
        t.ok(await sessions.load(id, ada, endpoint))
      }
      t.equal(
        reads,
        shared ? 10 : 0,
        shared ? 'another process could have ended it' : 'nobody else could have ended it'
      )
      // What is being written while it ends leaves no copy, either.
      const writing = sessions.update(session, { logLevel: 'debug' })
      await sessions.end(session)
      t.equal(await sessions.load(id, ada, endpoint), undefined)
      await writing
      t.equal(await sessions.load(id, ada, endpoint), undefined)
      t.ok(await sessions.load(neighbour.id, ada, endpoint), 'that of another goes on')
    }
  }
)

t.test('a session that has ended at another process is not brought back by whoever read it before', async (t) => {
  const { sessions, another } = await sessionsInStore(t)
  const elsewhere = await another()
  const live = createLiveSessions(steadyClock, 'test')
  t.teardown(async () => {
    live.close()
    await elsewhere.close()
  })
  const forgotten: string[] = []
  dropWithSessions(sessions, live, { drop: (key) => void forgotten.push(key) })
  const { session } = await sessions.open(ada, endpoint, client)
  t.equal(live.use(session).session, session)
  live.drop(session.key)
  t.equal(live.use(session).session, session, 'what was idle begins anew')
  live.drop(session.key)
  forgotten.length = 0
  await elsewhere.end(session)
  await until('its end is heard', () => forgotten.length > 0)
  t.throws(() => live.use(session), { code: 'session_unknown' })
  t.equal(live.size, 0)
})
