// A connection over Streamable HTTP lends its session, and another one sends requests in it.

import t, { type Test } from 'tap'
import type { LentSession, SessionPlace, Upstream } from '../../src/protocol/seams.ts'
import type { UpstreamCredentials } from '../../src/upstream/rpc/credential.ts'
import {
  callOf,
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
  const borrow = async (renew: (forgotten: string) => Promise<LentSession | undefined> = lend) => {
    const session = await lend()
    if (session === undefined) throw new Error('nothing is lent')
    return await testConnector().connector.connect(definition, { ...handshake, loan: { session, renew } }, events)
  }
  const count = (method: string): number =>
    peer.seen.filter((each) => each.method === method || isMethod(method)(each)).length
  return { peer, owner, definition, events, borrow, count }
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

t.test('where there is no session in its place, the call was not executed, and the connection ends', async (t) => {
  const { peer, borrow, count, events } = await setUp(t)
  for (const renew of [async () => undefined, () => Promise.reject(new Error('nobody is there'))]) {
    const borrower = await borrow(renew)
    const known = [...peer.sessions]
    peer.sessions.clear()
    await t.rejects(borrower.request(callOf('echo'), recordingClient(), never), {
      code: 'upstream_unavailable',
      message: /was not executed/
    })
    t.equal(events.ended.length, 1)
    events.ended.length = 0
    for (const each of known) peer.sessions.add(each)
  }
  t.equal(count('initialize'), 1)
})

t.test('after a 400 a borrower has no ids left for new calls; those that run go on', async (t) => {
  const { peer, borrow, count } = await setUp(t, { unknownSession: 400 })
  const borrower = await borrow()
  const running = borrower.request(callOf('slow'), recordingClient(), never)
  await until(() => peer.seen.some(isCall('slow')), 'it runs')
  t.ok((borrower.sharing?.idsLeft() ?? 0) > 1_000, 'the control')
  const known = [...peer.sessions]
  peer.sessions.clear()
  await t.rejects(borrower.request(callOf('echo'), recordingClient(), never), { message: 'no valid session' })
  t.equal(borrower.sharing?.idsLeft(), 0)
  for (const each of known) peer.sessions.add(each)
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
  const loan = { session, renew: async () => undefined }
  const borrower = await pool.acquire(definition, 'borrower', { ...handshake, loan }, recordingEvents())
  const echo = (upstream: Upstream) => upstream.request(callOf('echo'), recordingClient(), never)
  while ((borrower.sharing?.idsLeft() ?? 0) > 0) await echo(borrower)
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
