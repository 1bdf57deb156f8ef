// How many sockets one HTTP upstream gets: calls, event streams and the rest are counted apart, and a person has a part.

import t, { type Test } from 'tap'
import type { Upstream } from '../../src/protocol/seams.ts'
import {
  callOf,
  handClock,
  handshake,
  httpDefinition,
  type LogLine,
  never,
  recordingClient,
  realClock,
  recordingEvents,
  testConnector,
  until
} from '../kit/connector.ts'
import { type HttpUpstream, isCall, startUpstream } from '../kit/upstream.ts'

interface Limited {
  readonly upstream: HttpUpstream
  /** A connection of this person. */
  readonly connect: (person?: string) => Promise<Upstream>
  readonly logged: readonly LogLine[]
}

async function limited(t: Test, calls: number, streams = 100, others = 100, clock = realClock): Promise<Limited> {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  upstream.override(isCall('hang'), () => {}, Infinity)
  const { connector, logged } = testConnector({ sockets: { streams, others }, clock })
  const definition = httpDefinition(upstream.url, { era: 'legacy', timeoutMs: 600_000, maxCalls: calls })
  return {
    upstream,
    logged,
    async connect(person) {
      const own = person === undefined ? handshake : { ...handshake, quotaKey: person }
      const connected = await connector.connect(definition, own, recordingEvents())
      t.teardown(() => connected.destroy(new Error('the test is over')))
      return connected
    }
  }
}

const call = (upstream: Upstream, tool: string, signal = never) =>
  upstream.request(callOf(tool), recordingClient(), signal)

/** Calls that the server does not answer. @returns gives them up */
async function hang({ seen }: HttpUpstream, from: Upstream, count: number): Promise<() => Promise<void>> {
  const already = seen.filter(isCall('hang')).length
  const stop = new AbortController()
  const calls = Array.from({ length: count }, () => call(from, 'hang', stop.signal))
  const ended = Promise.allSettled(calls)
  await until(() => seen.filter(isCall('hang')).length === already + count, 'the calls reach the server')
  return async () => {
    stop.abort()
    await ended
  }
}

const tooMany = {
  code: 'too_many',
  message: /at most 4 requests of the kind "calls" at once, 3 of them for one caller/
}

t.test('a person who has three quarters of the sockets gets no more, and the others get the rest', async (t) => {
  const { upstream, connect, logged } = await limited(t, 4)
  const [own, again, other] = [await connect('mallory'), await connect('mallory'), await connect('alice')]
  const stop = await hang(upstream, own, 3)
  await t.rejects(call(own, 'echo'), tooMany)
  await t.rejects(call(again, 'echo'), tooMany, 'whatever the connection')
  t.match(await call(other, 'echo'), { content: [{}] })
  t.equal(upstream.seen.filter(isCall('echo')).length, 1, 'what was refused was not sent')
  t.equal(logged.filter(({ msg }) => msg === 'all sockets to an upstream are in use').length, 1)
  await stop()
  t.match(await call(own, 'echo'), { content: [{}] }, 'sockets that are free again count no more')
})

t.test('that all are in use is logged at most once a minute, and again while it goes on', async (t) => {
  const clock = handClock()
  const { upstream, connect, logged } = await limited(t, 4, 100, 100, clock)
  const own = await connect('mallory')
  const stop = await hang(upstream, own, 3)
  const warnings = () => logged.filter(({ msg }) => msg === 'all sockets to an upstream are in use').length
  for (const [ms, told] of [
    [0, 1],
    [59_999, 1],
    [1, 2],
    [1, 2]
  ] as const) {
    clock.advance(ms)
    await t.rejects(call(own, 'echo'), tooMany)
    t.equal(warnings(), told, `${ms} ms later`)
  }
  await stop()
})

t.test('connections of no one person share all the sockets', async (t) => {
  const { upstream, connect } = await limited(t, 4)
  const shared = await connect()
  const stop = await hang(upstream, shared, 4)
  await t.rejects(call(shared, 'echo'), tooMany)
  await stop()
  t.match(await call(shared, 'echo'), { content: [{}] })
})

t.test('event streams take no sockets of calls, and a session without one is served all the same', async (t) => {
  const { upstream, connect } = await limited(t, 1, 2)
  await connect()
  await connect()
  await until(() => upstream.streams() === 2, 'two streams are open')
  const third = await connect()
  t.match(await call(third, 'echo'), { content: [{}] })
  t.equal(upstream.streams(), 2)
})

t.test('a session is opened, listed and closed while no call gets a socket', async (t) => {
  const { upstream, connect } = await limited(t, 1)
  const busy = await connect()
  const stop = await hang(upstream, busy, 1)
  const session = await connect()
  t.match(await session.request({ method: 'tools/list' }, recordingClient(), never), { tools: [{}] })
  await session.close()
  await until(() => upstream.sessions.size === 1, 'the server has heard of the end')
  await stop()
})

t.test('sockets of requests that broke, or never came about, are free again', async (t) => {
  const { upstream, connect } = await limited(t, 2)
  const connected = await connect()
  const broken = Promise.allSettled([call(connected, 'hang'), call(connected, 'hang')])
  await until(() => upstream.seen.filter(isCall('hang')).length === 2, 'the calls reach the server')
  upstream.cut()
  await broken
  t.match(await call(connected, 'echo'), { content: [{}] })
  await upstream.close()
  for (let round = 0; round < 3; round++)
    await t.rejects(call(connected, 'echo'), { code: 'upstream_unavailable', message: /cannot be reached/ })
})
