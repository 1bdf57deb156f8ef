// A connection over Streamable HTTP that takes up the session of another one: when it does, and when it begins anew.

import type { ServerResponse } from 'node:http'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { SessionPlace, UpstreamSession } from '../../src/protocol/seams.ts'
import { createRequestIds, numbersFrom } from '../../src/upstream/rpc/request-ids.ts'
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
import { isMethod, startUpstream } from '../kit/upstream.ts'

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
    async end() {
      state.ends++
      state.kept = undefined
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
  })

/** Three seconds pass meanwhile. */
async function inTime<T>(clock: ReturnType<typeof handClock>, work: Promise<T>): Promise<T> {
  let isOver = false
  const over = (): void => {
    isOver = true
  }
  work.then(over, over)
  let passed = 0
  await until(() => {
    if (passed < 3_000) clock.advance(100)
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
      t.notOk((await asked()).isContinued)
      t.not(state.kept?.id, before)
      t.equal(handshakes(), 3)
    }
  )
}

t.test('a session that another process has taken meanwhile is left to it', async (t) => {
  const { state, connect, handshakes } = await left(t)
  const before = state.kept
  state.isHeld = true
  t.notOk((await connect()).isContinued)
  t.equal(handshakes(), 2)
  t.same(state.kept, before)
})

t.test('a session that hangs is given up while there is time for a new one', async (t) => {
  const { peer, connect, clock, handshakes } = await left(t)
  const held: ServerResponse[] = []
  peer.override(isMethod('ping'), (response) => held.push(response))
  const connecting = connect()
  await until(() => held.length === 1, 'it is asked')
  clock.advance(5_000)
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
