// A connection over Streamable HTTP lends its session, and another one sends requests in it.

import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import type { LentSession, SessionPlace, Upstream } from '../../src/protocol/seams.ts'
import type { UpstreamCredentials } from '../../src/upstream/rpc/credential.ts'
import {
  callOf,
  handClock,
  handshake,
  httpDefinition,
  never,
  recordingClient,
  recordingEvents,
  testConnector,
  until
} from '../kit/connector.ts'
import { isCall, isMethod, startUpstream, type HttpUpstreamOptions } from '../kit/upstream.ts'

const place = (isKept: boolean): SessionPlace => ({
  load: async () => undefined,
  keep: async () => isKept,
  forget() {},
  end: async () => true
})

const credentials: UpstreamCredentials = {
  isForNobody: () => false,
  pageOf: () => undefined,
  of: () => ({
    lines: () => '',
    secrets: () => [],
    ready: () => undefined,
    refused: async () => false,
    hint: () => ''
  }),
  used() {}
}

/** @param given what is lent; default: what the first connection lends */
async function setUp(t: Test, options: HttpUpstreamOptions = {}) {
  const peer = await startUpstream(options)
  t.teardown(peer.close)
  const definition = httpDefinition(peer.url)
  const owner = await testConnector().connector.connect(
    definition,
    { ...handshake, place: place(true) },
    recordingEvents()
  )
  const lend = (forgotten?: string) => owner.sharing?.lend(forgotten) ?? Promise.resolve(undefined)
  const events = recordingEvents()
  const refused: string[] = []
  const borrow = async (renew: (forgotten: string) => Promise<LentSession | undefined> = lend) => {
    const session = await lend()
    if (session === undefined) throw new Error('nothing is lent')
    const loan = { session, renew, refused: (id: string) => void refused.push(id) }
    return await testConnector().connector.connect(definition, { ...handshake, loan }, events)
  }
  const count = (method: string): number =>
    peer.seen.filter((each) => each.method === method || isMethod(method)(each)).length
  return { peer, owner, definition, events, borrow, refused, count }
}

t.test('what is kept is lent, unless its server is shown a credential that changes', async (t) => {
  const { definition, owner } = await setUp(t)
  const lent = async (isKept: boolean, more: object = {}) => {
    const { connector } = testConnector(more)
    const upstream = await connector.connect(definition, { ...handshake, place: place(isKept) }, recordingEvents())
    const session = await upstream.sharing?.lend()
    t.equal(typeof upstream.sharing?.id(), 'string')
    await upstream.close()
    return session
  }
  t.match(await lent(true), { id: String, revision: '2025-11-25', secret: String, turn: 0, ids: Number }, 'the control')
  t.equal(await lent(false), undefined, 'not kept')
  t.equal(await lent(true, { credentials }), undefined, 'with a credential')
  const [one, two] = [await owner.sharing?.lend(), await owner.sharing?.lend()]
  t.equal(one?.id, two?.id)
  t.not(one?.ids, two?.ids, 'each with ids of its own')
})

t.test('a borrower sends requests alone: no handshake, no stream, no end', async (t) => {
  const { peer, owner, borrow, count } = await setUp(t)
  const borrower = await borrow()
  await Promise.all([owner, borrower].map((each) => each.request(callOf('echo'), recordingClient(), never)))
  const calls = peer.seen.filter(isCall('echo'))
  t.equal(new Set(calls.map(({ headers }) => headers['mcp-session-id'])).size, 1)
  t.equal(new Set(calls.map(({ message }) => message?.['id'])).size, 2)
  t.same([borrower.revision, borrower.serverInfo], [owner.revision, owner.serverInfo])
  await borrower.close()
  t.same([count('initialize'), count('GET'), count('DELETE')], [1, 1, 0])
  await owner.close()
  t.equal(count('DELETE'), 1, 'the control')
})

t.test('a borrower whose session is forgotten has it begun anew, once, and sends its calls again', async (t) => {
  const { peer, owner, borrow, count } = await setUp(t)
  const borrower = await borrow()
  const before = owner.sharing?.id()
  peer.sessions.clear()
  const calls = ['a', 'b', 'c'].map((text) => borrower.request(callOf('echo', { text }), recordingClient(), never))
  for (const each of await Promise.all(calls)) t.match(each, { content: [{ type: 'text' }] })
  t.equal(count('initialize'), 2)
  t.not(owner.sharing?.id(), before)
  t.equal(borrower.sharing?.id(), owner.sharing?.id())
})

t.test('a session that is forgotten is looked for, also while the one before it is', async (t) => {
  const { peer, owner } = await setUp(t)
  const held: ServerResponse[] = []
  peer.override(isMethod('ping'), (response) => void held.push(response))
  const ids = [owner.sharing?.id()]
  peer.sessions.clear()
  const first = owner.sharing?.lend(ids[0])
  await until(() => held.length > 0, 'it is looked for')
  await owner.request(callOf('echo'), recordingClient(), never)
  ids.push(owner.sharing?.id())
  peer.sessions.clear()
  const second = owner.sharing?.lend(ids[1])
  held[0]?.writeHead(404).end()
  for (const lent of await Promise.all([first, second])) ids.push(lent?.id)
  t.ok(ids[3], 'it is begun anew')
  t.equal(new Set(ids).size, 3)
})

t.test('where there is no session in its place, the call was not executed, and others that run go on', async (t) => {
  const { peer, borrow, count, events } = await setUp(t)
  for (const renew of [async () => undefined, () => Promise.reject(new Error('nobody is there'))]) {
    const borrower = await borrow(renew)
    const slow = peer.seen.filter(isCall('slow')).length
    const running = borrower.request(callOf('slow'), recordingClient(), never)
    await until(() => peer.seen.filter(isCall('slow')).length > slow, 'it runs')
    const known = [...peer.sessions]
    peer.sessions.clear()
    await t.rejects(borrower.request(callOf('echo'), recordingClient(), never), {
      code: 'upstream_unavailable',
      message: /was not executed/
    })
    t.equal(borrower.sharing?.series()?.left, 0, 'it takes no new calls')
    for (const each of known) peer.sessions.add(each)
    peer.server.release()
    t.match(await running, { content: [{ text: 'slow is done' }] })
  }
  t.same([count('initialize'), events.ended], [1, []])
})

t.test('a 404 that a borrower alone gets is no end of the session', async (t) => {
  const { peer, owner, borrow, refused, count } = await setUp(t)
  const borrower = await borrow()
  const id = owner.sharing?.id()
  peer.override(isCall('echo'), (response) => response.writeHead(404).end())
  const calls = peer.server.calls('echo')
  await t.rejects(borrower.request(callOf('echo'), recordingClient(), never), { message: /was not executed/ })
  t.equal(peer.seen.filter(isCall('echo')).length, 1, 'it is not sent again')
  t.same([owner.sharing?.id(), count('initialize'), peer.server.calls('echo')], [id, 1, calls])
  t.same(refused, [id])
  t.match(await owner.request(callOf('echo'), recordingClient(), never), { content: [{ type: 'text' }] })
  peer.sessions.clear()
  const lent = await owner.sharing?.lend(id)
  t.notSame([lent?.id, count('initialize')], [id, 1], 'the control: one that is gone')
  t.equal(count('initialize'), 2)
})

t.test('a session in which the server takes nothing from another process is not borrowed', async (t) => {
  const { peer, owner, borrow, refused, count } = await setUp(t)
  for (const [status, pings] of Object.entries({ 400: 1, 401: 2, 403: 2, 404: 1 })) {
    peer.override(isMethod('ping'), (response) => response.writeHead(Number(status)).end(), pings)
    await t.rejects(borrow(), { code: 'upstream_unavailable' }, status)
    t.same(refused, status === '404' ? [owner.sharing?.id()] : [], 'it is asked for no more where it is not known')
    await borrow()
  }
  t.same([count('initialize'), count('DELETE')], [1, 0])
})

t.test('a session that is begun anew is lent once its server knows that it has begun, and it is kept', async (t) => {
  const peer = await startUpstream()
  t.teardown(peer.close)
  const keeps: Array<(isKept: boolean) => void> = []
  let isHeld = false
  const kept = {
    ...place(true),
    keep: () => (isHeld ? new Promise<boolean>((keep) => keeps.push(keep)) : place(true).keep(undefined as never))
  }
  const owner = await testConnector().connector.connect(
    httpDefinition(peer.url),
    { ...handshake, place: kept },
    recordingEvents()
  )
  isHeld = true
  const initialized = isMethod('notifications/initialized')
  for (const isKept of [true, false]) {
    let go = (): void => {}
    peer.override(initialized, (response) => (go = () => response.writeHead(202).end()))
    const [told, forgotten] = [peer.seen.filter(initialized).length, owner.sharing?.id()]
    peer.sessions.clear()
    const call = owner.request(callOf('echo'), recordingClient(), never)
    await until(() => peer.seen.filter(initialized).length > told, 'the new one has begun')
    let lent: unknown = 'waits'
    const answered = Promise.all([undefined, forgotten].map(async (each) => await owner.sharing?.lend(each))).then(
      (all) => (lent = all)
    )
    const settled = (): Promise<unknown> => fetch(peer.url, { method: 'DELETE' })
    await settled()
    t.equal(lent, 'waits', 'the server was not told yet that it has begun')
    go()
    await until(() => keeps.length > 0, 'it is to be kept')
    await settled()
    t.equal(lent, 'waits', 'it is not kept yet')
    keeps.pop()?.(isKept)
    await answered
    const id = isKept ? owner.sharing?.id() : undefined
    t.match(lent, [id && { id }, id && { id }])
    t.not(owner.sharing?.id(), forgotten)
    await call
  }
})

for (const status of [400, 401, 403])
  t.test(`after a ${status} a borrower takes no new calls; those that run go on`, async (t) => {
    const { peer, borrow, refused, count } = await setUp(t)
    const borrower = await borrow()
    const running = borrower.request(callOf('slow'), recordingClient(), never)
    await until(() => peer.seen.some(isCall('slow')), 'it runs')
    t.ok((borrower.sharing?.series()?.left ?? 0) > 1_000, 'the control')
    peer.override(isCall('echo'), (response) => response.writeHead(status).end())
    await t.rejects(borrower.request(callOf('echo'), recordingClient(), never), { code: /^upstream_/ })
    t.equal(peer.seen.filter(isCall('echo')).length, 1, 'it is not sent again')
    t.same(refused, [borrower.sharing?.id()])
    t.equal(borrower.sharing?.series()?.left, 0)
    await borrower.request(callOf('release'), recordingClient(), never)
    t.match(await running, { content: [{ text: 'slow is done' }] })
    t.equal(count('initialize'), 1)
  })

t.test('a request that is not sent, for want of ids or by a fault, gives its place at the upstream back', async (t) => {
  const peer = await startUpstream()
  t.teardown(peer.close)
  const definition = httpDefinition(peer.url, { maxCalls: 4, checkAfterMs: 60_000 })
  const { pool } = testConnector()
  t.teardown(() => pool.close())
  const owner = await pool.acquire(definition, 'owner', { ...handshake, place: place(true) }, recordingEvents())
  const session = await owner.sharing?.lend()
  if (session === undefined) throw new Error('nothing is lent')
  const loan = { session, renew: async () => undefined, refused() {} }
  const borrower = await pool.acquire(definition, 'borrower', { ...handshake, loan }, recordingEvents())
  const echo = (upstream: Upstream) => upstream.request(callOf('echo'), recordingClient(), never)
  while ((borrower.sharing?.series()?.left ?? 0) > 0) await echo(borrower)
  const faulty = callOf('echo')
  Object.defineProperty(faulty.params, 'task', {
    get() {
      throw new Error('a fault')
    }
  })
  for (let n = 0; n < 8; n++) {
    await t.rejects(echo(borrower), { code: 'unavailable', message: /Retry in a second/ })
    await t.rejects(owner.request(faulty, recordingClient(), never), { message: 'a fault' })
  }
  t.equal(pool.stateOf(definition).calls, 0)
  t.match(await echo(owner), { content: [{ type: 'text' }] })
})

t.test('that a session is borrowed says nothing of the server: it is as far away as before', async (t) => {
  const { peer, owner } = await setUp(t)
  const definition = httpDefinition(peer.url, { hash: 'server' })
  const clock = handClock()
  const { pool } = testConnector({ clock })
  t.teardown(() => pool.close())
  const acquire = (scope: string, more: object, use?: 'listing') =>
    pool.acquire(definition, scope, { ...handshake, ...more }, recordingEvents(), use)
  const awayMs = (): number | undefined => pool.stateOf(definition).awayMs
  peer.override(isMethod('initialize'), (response) => response.writeHead(500).end(), Infinity)
  await t.rejects(acquire('lists', {}, 'listing'))
  t.equal(awayMs(), 0)
  clock.advance(1_500)
  const loan = { session: await owner.sharing?.lend(), renew: async () => undefined, refused() {} }
  const borrower = await acquire('borrower', { loan })
  t.equal(awayMs(), 1_500)
  await borrower.request(callOf('echo'), recordingClient(), never)
  t.equal(awayMs(), undefined, 'the control: it has answered a call')
})

t.test('a call that was given a borrowed connection is sent, also where the loan ends before it is', async (t) => {
  const { peer, owner } = await setUp(t)
  const definition = httpDefinition(peer.url)
  const clock = handClock()
  const { pool } = testConnector({ clock })
  t.teardown(() => pool.close())
  const session = await owner.sharing?.lend()
  if (session === undefined) throw new Error('nothing is lent')
  const loan = { session, renew: async () => undefined, refused() {} }
  const given = await pool.acquire(definition, 'borrower', { ...handshake, loan }, recordingEvents())
  t.equal(pool.use(definition, 'borrower'), given)
  pool.leave('borrower')
  t.equal(pool.use(definition, 'borrower'), undefined, 'no other call gets it')
  const echo = () => given.request(callOf('echo'), recordingClient(), never)
  for (let waits = 0; waits < 3; waits++) {
    clock.advance(4_000)
    t.match(await echo(), { content: [{ type: 'text' }] })
  }
  clock.advance(5_000)
  await owner.request(callOf('echo'), recordingClient(), never)
  await t.rejects(echo(), { code: 'upstream_unavailable' }, 'it is closed once no call can have it any more')
})
