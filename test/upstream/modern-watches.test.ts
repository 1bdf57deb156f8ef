// Subscriptions of sessions at a modern server: who may end the stream that several share, and what an open stream leaves behind.

import { getEventListeners } from 'node:events'
import t from 'tap'
import { createComplaints } from '../../src/upstream/complaints.ts'
import { createWatches } from '../../src/upstream/modern/watches.ts'
import { upstreamName } from '../../src/protocol/ids.ts'
import { handClock, recordingEvents, until, workshop } from '../kit/connection.ts'
import type { Client } from '../../src/protocol/seams.ts'
import type { Exchange } from '../../src/upstream/exchange.ts'

const never = new AbortController().signal
const uri = 'test://one'

/** An exchange whose streams are agreed to and ended by hand. */
function bench () {
  const clock = handClock()
  const events = recordingEvents()
  const { log } = workshop()
  const streams: Array<{ readonly client: Client, readonly signal: AbortSignal, readonly end: () => void }> = []
  const request: Exchange['request'] = (_request, client, signal) => new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true })
    streams.push({ client, signal, end: () => resolve({}) })
  })
  const name = upstreamName('files')
  const watches = createWatches({ name, timeoutMs: 10_000, events, clock, random: () => 0, log, complaints: createComplaints(name, clock, log), exchange: () => ({ request }) as Exchange })
  const agree = (): void => streams.at(-1)?.client.notify({ method: 'notifications/subscriptions/acknowledged', params: { notifications: { resourceSubscriptions: [uri] } } })
  return { clock, events, streams, watches, agree }
}

t.test('a subscriber that gives up while joining leaves the stream to those who have it', async (t) => {
  const { streams, watches, agree } = bench()
  const first = watches.subscribe(uri, never)
  agree()
  t.same(await first, {})
  await t.rejects(watches.subscribe(uri, AbortSignal.abort()), { code: 'cancelled' })
  t.same(streams.map(({ signal }) => signal.aborted), [false])
  watches.unsubscribe(uri)
  t.same(streams.map(({ signal }) => signal.aborted), [true])
})

t.test('one that made it leaves it to those who wait, and the last of them ends it', async (t) => {
  const { streams, watches, agree } = bench()
  const [one, two] = [new AbortController(), new AbortController()]
  const [maker, joiner, third] = [watches.subscribe(uri, one.signal), watches.subscribe(uri, two.signal), watches.subscribe(uri, never)]
  one.abort()
  await t.rejects(maker, { code: 'cancelled' })
  agree()
  t.same([await joiner, await third, streams.length], [{}, {}, 1])
  t.notOk(streams[0]?.signal.aborted)

  const other = bench()
  const stops = [new AbortController(), new AbortController()]
  const waiting = stops.map(({ signal }) => other.watches.subscribe(uri, signal))
  for (const [n, stop] of stops.entries()) {
    t.notOk(other.streams[0]?.signal.aborted)
    stop.abort()
    await t.rejects(Promise.all(waiting.slice(n, n + 1)), { code: 'cancelled' })
  }
  t.ok(other.streams[0]?.signal.aborted, 'nobody wants it')
})

t.test('a stream that breaks again and again leaves nothing behind, and none is opened after its end', async (t) => {
  const { clock, streams, watches, agree } = bench()
  const first = watches.subscribe(uri, never)
  agree()
  await first
  for (let n = 1; n <= 20; n++) {
    streams.at(-1)?.end()
    await until(() => {
      clock.advance(100_000)
      return streams.length > n
    }, 'it is opened again')
  }
  const { signal } = streams.at(-1) ?? { signal: never }
  // The exchange of this test never removes its own: one for each stream.
  t.equal(getEventListeners(signal, 'abort').length, 21)
  streams.at(-1)?.end()
  await new Promise((resolve) => { setImmediate(resolve) })
  watches.unsubscribe(uri)
  clock.advance(100_000)
  t.equal(streams.length, 21)
})

t.test('who waits when all ends is told why', async (t) => {
  const { watches } = bench()
  const waiting = watches.subscribe(uri, never)
  watches.end(new Error('it is over'))
  await t.rejects(waiting, { message: 'it is over' })
})
