// Subscriptions of sessions at a modern server: which of several subscribers ends their stream, and that streams leave
// nothing behind.

import t from 'tap'
import { getEventListeners } from 'node:events'
import { createLimitedWarnings } from '../../src/upstream/rpc/notifications.ts'
import { createUpstreamSubscriptions } from '../../src/upstream/modern/listen-streams.ts'
import { upstreamName } from '../../src/protocol/messages.ts'
import { handClock, never, recordingEvents, testConnector, until } from '../kit/connector.ts'
import type { Client } from '../../src/protocol/seams.ts'
import type { RpcClient } from '../../src/upstream/rpc/rpc-client.ts'

const uri = 'test://one'

/** Subscriptions whose streams the test acknowledges and ends. */
function bench() {
  const clock = handClock()
  const events = recordingEvents()
  const { log } = testConnector()
  const streams: Array<{ readonly client: Client; readonly signal: AbortSignal; readonly end: () => void }> = []
  const request: RpcClient['request'] = (_request, client, signal) =>
    new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true })
      streams.push({ client, signal, end: () => resolve({}) })
    })
  const name = upstreamName('files')
  const subscriptions = createUpstreamSubscriptions(
    { name, timeoutMs: 10_000 },
    { events, clock, random: () => 0, log, warnings: createLimitedWarnings(name, clock, log) },
    { request }
  )
  const agree = (): void =>
    streams.at(-1)?.client.notify({
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: { resourceSubscriptions: [uri] } }
    })
  return { clock, events, streams, subscriptions, agree }
}

t.test('a subscriber that gives up does not end the stream of another', async (t) => {
  const { streams, subscriptions, agree } = bench()
  const first = subscriptions.subscribe(uri, never)
  agree()
  t.same(await first, {})
  await t.rejects(subscriptions.subscribe(uri, AbortSignal.abort()), { code: 'cancelled' })
  t.same(
    streams.map(({ signal }) => signal.aborted),
    [false]
  )
  subscriptions.unsubscribe(uri)
  t.same(
    streams.map(({ signal }) => signal.aborted),
    [true]
  )
})

t.test('the subscriber that opened the stream may give up before others; the last one ends it', async (t) => {
  const { streams, subscriptions, agree } = bench()
  const [one, two] = [new AbortController(), new AbortController()]
  const [maker, joiner, third] = [
    subscriptions.subscribe(uri, one.signal),
    subscriptions.subscribe(uri, two.signal),
    subscriptions.subscribe(uri, never)
  ]
  one.abort()
  await t.rejects(maker, { code: 'cancelled' })
  agree()
  t.same([await joiner, await third, streams.length], [{}, {}, 1])
  t.notOk(streams[0]?.signal.aborted)

  const other = bench()
  const stops = [new AbortController(), new AbortController()]
  const waiting = stops.map(({ signal }) => other.subscriptions.subscribe(uri, signal))
  for (const [n, stop] of stops.entries()) {
    t.notOk(other.streams[0]?.signal.aborted)
    stop.abort()
    await t.rejects(Promise.all(waiting.slice(n, n + 1)), { code: 'cancelled' })
  }
  t.ok(other.streams[0]?.signal.aborted, 'nobody wants it')
})

t.test(
  'a stream that breaks again and again leaves no listeners behind, and is not opened after its end',
  async (t) => {
    const { clock, streams, subscriptions, agree } = bench()
    const first = subscriptions.subscribe(uri, never)
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
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
    subscriptions.unsubscribe(uri)
    clock.advance(100_000)
    t.equal(streams.length, 21)
  }
)

t.test('a subscriber that waits when the connection ends is told the reason', async (t) => {
  const { subscriptions } = bench()
  const waiting = subscriptions.subscribe(uri, never)
  subscriptions.end(new Error('it is over'))
  await t.rejects(waiting, { message: 'it is over' })
})

t.test('lists that were read before the server agreed to tell of changes are read again, and others are not', (t) => {
  const capabilities = { tools: { listChanged: true }, prompts: {} }
  for (const isRead of [true, false]) {
    const { events, subscriptions, agree } = bench()
    subscriptions.watchLists(capabilities)
    if (isRead) subscriptions.listed()
    agree()
    t.same(events.changed, isRead ? ['tools', 'prompts'] : [], `read: ${isRead}`)
    subscriptions.listed()
    subscriptions.end(new Error('over'))
  }
  t.end()
})
