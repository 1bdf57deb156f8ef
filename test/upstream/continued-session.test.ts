// A connection over Streamable HTTP that takes up the session of another one: when it does, and when it begins anew.

import type { ServerResponse } from 'node:http'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { SessionPlace, UpstreamSession } from '../../src/protocol/seams.ts'
import { createLentIds, createRequestIds, lentIds, numbersFrom } from '../../src/upstream/rpc/request-ids.ts'
import {
  handClock,
  handshake,
  httpDefinition,
  never,
  recordingClient,
  recordingEvents,
  testConnector,
  until
} from '../kit/connector.ts'
import { runs } from '../kit/runs.ts'
import { type HttpUpstream, isMethod, startUpstream } from '../kit/upstream.ts'

/** One place, as processes that follow each other have it. */
function shelf() {
  const state = { kept: undefined as UpstreamSession | undefined, ends: 0, isHeld: false }
  const place: SessionPlace = {
    load: async () => state.kept,
    async keep(session) {
      if (state.isHeld) return false
      state.kept = session
      return true
    },
    forget() {
      state.kept = undefined
    },
    async end(id) {
      state.ends++
      if (state.isHeld) return state.kept?.id !== id
      if (state.kept?.id === id) state.kept = undefined
      return true
    }
  }
  return { state, place }
}

/** A server whose session one process has begun and left. */
async function left(t: Test) {
  const peer = await startUpstream()
  t.teardown(peer.close)
  const { state, place } = shelf()
  const clock = handClock()
  const connect = () =>
    testConnector({ clock }).connector.connect(httpDefinition(peer.url), { ...handshake, place }, recordingEvents())
  const first = await connect()
  t.equal(first.isContinued, false)
  await first.leave?.()
  t.equal(peer.seen.filter(({ method }) => method === 'DELETE').length, 0)
  return { peer, state, connect, clock, handshakes: () => peer.seen.filter(isMethod('initialize')).length }
}

/** Of sessions that the server was told are over. */
const ended = ({ seen }: HttpUpstream) =>
  seen.filter(({ method }) => method === 'DELETE').map(({ headers }) => headers['mcp-session-id'])

t.test('the next process goes on in it, and ends it', async (t) => {
  const { peer, state, connect, handshakes } = await left(t)
  const before = state.kept
  const next = await connect()
  t.equal(next.isContinued, true)
  t.equal(handshakes(), 1)
  t.match(state.kept, { id: before?.id, secret: before?.secret, turn: 1 })
  t.equal(next.serverInfo.name, before?.serverInfo.name)
  await next.request({ method: 'tools/call', params: { name: 'echo' } }, recordingClient(), never)
  t.equal(peer.seen.findLast(isMethod('tools/call'))?.headers['mcp-session-id'], before?.id)
  await next.close()
  t.same([peer.sessions.size, state.ends], [0, 1])
})

for (const status of [400, 404, 405, 410, 500])
  t.test(`a server that answers ${status} for it is asked for a new one`, async (t) => {
    const { peer, state, connect, handshakes } = await left(t)
    const before = state.kept?.id
    peer.override(isMethod('ping'), (response) => response.writeHead(status).end())
    const next = await connect()
    t.same([handshakes(), state.ends], [2, 1])
    t.notOk(next.isContinued)
    t.not(state.kept?.id, before)
    if (status !== 404) await until(() => ended(peer).length > 0, 'the server hears that the former one is over')
    t.same(ended(peer), status === 404 ? [] : [before])
  })

/** Time passes meanwhile: more than there is between two attempts, and less than is left for the first of them. */
async function inTime<T>(clock: ReturnType<typeof handClock>, work: Promise<T>): Promise<T> {
  let isOver = false
  const over = (): void => {
    isOver = true
  }
  work.then(over, over)
  let passed = 0
  await until(() => {
    if (passed < 20_000) clock.advance(100)
    passed += 100
    return isOver
  }, 'it is over')
  return await work
}

for (const status of [401, 403, 429, 502, 503]) {
  t.test(`a server that answers ${status} is asked once more`, async (t) => {
    const { peer, connect, clock, handshakes } = await left(t)
    let pings = 0
    const refuse = (response: ServerResponse): void => {
      pings++
      response.writeHead(status).end()
    }
    peer.override(isMethod('ping'), refuse)
    t.same([(await inTime(clock, connect())).isContinued, handshakes(), pings], [true, 1, 1])
  })

  t.test(
    `where it answers ${status} again, it is asked for a new one, and the old one is kept until then`,
    async (t) => {
      const { peer, state, connect, clock, handshakes } = await left(t)
      const before = state.kept?.id
      const asked = async (): Promise<Awaited<ReturnType<typeof connect>>> => {
        peer.override(isMethod('ping'), (response) => response.writeHead(status).end(), 2)
        return await inTime(clock, connect())
      }
      peer.override(isMethod('initialize'), (response) => response.writeHead(503).end())
      await t.rejects(asked(), { code: 'upstream_unavailable' })
      t.same([state.kept?.id, state.ends], [before, 0])
      t.same(ended(peer), [], 'nor is it ended')
      t.notOk((await asked()).isContinued)
      t.not(state.kept?.id, before)
      t.equal(handshakes(), 3)
      await until(() => ended(peer).length > 0, 'the server hears that the former one is over')
      t.same(ended(peer), [before])
    }
  )
}

t.test('a session that another process has taken meanwhile is left to it', async (t) => {
  const { peer, state, connect, handshakes } = await left(t)
  const before = state.kept
  state.isHeld = true
  const next = await connect()
  t.notOk(next.isContinued)
  t.equal(handshakes(), 2)
  t.same(state.kept, before)
  await next.leave?.()
  const own = [...peer.sessions].find((id) => id !== before?.id)
  t.same([ended(peer).length, own], [1, undefined], 'what it began for itself, and could not keep, it ends')
  t.ok(peer.sessions.has(before?.id ?? ''))
})

t.test('a session whose handshake is given up, or fails, is ended', async (t) => {
  const peer = await startUpstream()
  t.teardown(peer.close)
  const { place } = shelf()
  const { connector } = testConnector()
  const connect = (signal: AbortSignal) =>
    connector.connect(httpDefinition(peer.url, { era: 'legacy' }), { ...handshake, place }, recordingEvents(), signal)
  const answer = (response: ServerResponse, id: unknown, protocolVersion: string): void => {
    const result = { protocolVersion, capabilities: {}, serverInfo: { name: 'late', version: '1' } }
    response.setHeader('Mcp-Session-Id', `of ${protocolVersion}`.replace(' ', '-'))
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  }
  const stop = new AbortController()
  let late = (): void => {}
  peer.override(isMethod('initialize'), (response, { message }) => {
    late = () => answer(response, message?.['id'], '2025-11-25')
    stop.abort()
  })
  await t.rejects(connect(stop.signal), { code: 'cancelled' })
  late()
  await until(() => ended(peer).length === 1, 'the server hears of it')
  peer.override(isMethod('initialize'), (response, { message }) => answer(response, message?.['id'], '1999-01-01'))
  await t.rejects(connect(never), { code: 'upstream_protocol' })
  await until(() => ended(peer).length === 2, 'the server hears of it')
  t.same(ended(peer), ['of-2025-11-25', 'of-1999-01-01'])
})

t.test('a process that stops while it opens a connection leaves the session to the next', async (t) => {
  const peer = await startUpstream()
  t.teardown(peer.close)
  const { state, place } = shelf()
  const { pool } = testConnector()
  let go = (): void => {}
  const held = isMethod('notifications/initialized')
  peer.override(held, (response) => (go = () => response.writeHead(202).end()))
  const definition = httpDefinition(peer.url)
  const opening = pool.acquire(definition, 'session:x', { ...handshake, place }, recordingEvents())
  await until(() => peer.seen.some(held), 'it is being opened')
  const closed = pool.close()
  go()
  await Promise.all([opening, closed])
  t.same([state.kept?.id], [...peer.sessions])
  t.same(ended(peer), [])
})

t.test('a session that hangs is given up while there is time for a new one', async (t) => {
  const { peer, connect, clock, handshakes } = await left(t)
  const held: ServerResponse[] = []
  peer.override(isMethod('ping'), (response) => held.push(response))
  const connecting = connect()
  await until(() => held.length === 1, 'it is asked')
  clock.advance(30_000)
  t.notOk((await connecting).isContinued)
  t.equal(handshakes(), 2)
})

t.test('those that have a session in turn use other ids', (t) => {
  fc.assert(
    fc.property(fc.string(), fc.nat(126), fc.integer({ min: 1, max: 400 }), (secret, turn, count) => {
      const idsOf = (turn: number): number[] => {
        const next = createRequestIds(numbersFrom(secret), turn)
        return Array.from({ length: count }, next)
      }
      const ids = [...idsOf(turn), ...idsOf(turn + 1)]
      return new Set(ids).size === ids.length && ids.every((id) => id > 0 && id < 2 ** 31)
    }),
    { numRuns: runs(500) }
  )
  t.pass()
  t.end()
})

t.test('those that are in a session at the same time use other ids, too', (t) => {
  const step = fc.record({ who: fc.nat(4), count: fc.integer({ min: 1, max: 300 }) })
  fc.assert(
    fc.property(fc.string(), fc.nat(126), fc.array(step, { maxLength: 20 }), (secret, turn, steps) => {
      const home = createRequestIds(numbersFrom(secret), turn)
      const lend = () => {
        const from = home.lend() ?? -1
        return { from, ...createLentIds(numbersFrom(secret), from) }
      }
      const borrowers = Array.from({ length: 3 }, lend)
      const ids: number[] = []
      /** Each id is found in its own series, and in no other. */
      const isFound = (id: number, who: number): boolean =>
        borrowers.every(({ from }, at) => home.isIn(from, id) === (at === who))
      for (const { who, count } of steps) {
        for (let n = 0; n < count; n++) {
          const id = who > 2 ? home() : borrowers[who]?.next()
          if (id !== undefined && !isFound(id, who)) return false
          if (id !== undefined) ids.push(id)
          else borrowers[who] = lend()
        }
      }
      return new Set(ids).size === ids.length && ids.every((id) => id > 0 && id < 2 ** 31)
    }),
    { numRuns: runs(200) }
  )
  const { next, left } = createLentIds(numbersFrom('secret'), 0)
  let given = 0
  while (next() !== undefined) given++
  t.same([left(), given > lentIds - 2], [0, true], 'a series has an end')
  const home = createRequestIds(numbersFrom('secret'), 126)
  let series = 0
  while (home.lend() !== undefined) series++
  t.equal(series, (2 ** 24 * 0.75) / lentIds, 'and so have the series of a turn, of which the home keeps the rest')
  t.ok(Number.isInteger(home()))
  t.end()
})
