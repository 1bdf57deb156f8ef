// How often streams of a server over HTTP are opened again: whatever it sends on them, and whatever its `retry` says.

import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import type { Clock, Timer } from '../../src/time/clock.ts'
import { createReconnects } from '../../src/upstream/http/sessions/reconnects.ts'
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
import { isCall, startUpstream, type Seen } from '../kit/upstream.ts'

const sse = { 'content-type': 'text/event-stream' }
const isGet = ({ method }: Seen): boolean => method === 'GET'
const isResume = (seen: Seen): boolean => isGet(seen) && seen.headers['last-event-id'] !== undefined

/** Time that passes once all wait for it: no test takes as long as it measures. Longer waits never end. */
function hastyClock(longestMs = 3_000): Clock {
  let now = 1_000_000
  let due: Array<{ at: number; run: () => void }> = []
  let quiet: NodeJS.Timeout | undefined
  function pass(): void {
    now = Math.max(now, Math.min(...due.map(({ at }) => at)))
    const over = due.filter(({ at }) => at <= now)
    due = due.filter(({ at }) => at > now)
    for (const { run } of over) run()
    wait()
  }
  // What has come by now is taken in first, so that streams that were cut together come back together.
  function wait(): void {
    clearTimeout(quiet)
    if (due.length > 0) quiet = setTimeout(pass, 3)
  }
  return {
    now: () => now,
    timer(ms, run): Timer {
      const one = { at: 0, run }
      const close = (): void => {
        due = due.filter((each) => each !== one)
      }
      const refresh = (): void => {
        close()
        one.at = now + ms
        if (ms <= longestMs) due.push(one)
        wait()
      }
      refresh()
      return { refresh, close, unref() {} }
    }
  }
}

async function open(t: Test) {
  const peer = await startUpstream()
  t.teardown(peer.close)
  const clock = hastyClock()
  const connect = async () => {
    const { connector } = testConnector({ clock })
    const upstream = await connector.connect(httpDefinition(peer.url), handshake, recordingEvents())
    t.teardown(() => upstream.close())
    return upstream
  }
  const call = async (upstream: Awaited<ReturnType<typeof connect>>, n = 0) =>
    await upstream.request(callOf('echo', { n }), recordingClient(), never)
  /** When streams were resumed, in milliseconds of the clock. */
  const times: number[] = []
  /** Each call is cut; each resumption brings `brings` and is cut, until the answer comes with the last one. */
  const cutCalls = (retryMs: number, resumptions: number, brings = '') => {
    const left = new Map<unknown, number>()
    const cut = (response: ServerResponse, id: unknown): void => {
      response.writeHead(200, sse).end(`id: ${String(id)}\nretry: ${retryMs}\ndata:\n\n${brings}`)
    }
    peer.override(isCall('echo'), (response, { message }) => cut(response, message?.['id']), Infinity)
    peer.override(
      isResume,
      (response, { headers }) => {
        times.push(clock.now())
        const id = Number(headers['last-event-id'])
        const rest = (left.get(id) ?? resumptions) - 1
        left.set(id, rest)
        const answer = { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'at last' }] } }
        if (rest > 0) cut(response, id)
        else response.writeHead(200, sse).end(`data: ${JSON.stringify(answer)}\n\n`)
      },
      Infinity
    )
  }
  const elapsed = (): number => (times.at(-1) ?? NaN) - (times[0] ?? NaN)
  return { peer, clock, connect, call, cutCalls, times, elapsed }
}

const answered = { content: [{ text: 'at last' }] }
const log = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } }
const said = `data: ${JSON.stringify(log)}\n\n`

t.test('a call whose stream brings something and ends, again and again, is resumed once a second', async (t) => {
  const { connect, call, cutCalls, times, elapsed } = await open(t)
  cutCalls(1, 20, said)
  t.match(await call(await connect()), answered, 'it has its answer')
  t.equal(times.length, 20)
  t.ok(elapsed() >= 14_000, `within ${elapsed()} ms`)
})

t.test(
  'a server that has its clients poll once a second, or a few times at short intervals, is not slowed',
  async (t) => {
    const polled = await open(t)
    polled.cutCalls(1_000, 15)
    t.match(await polled.call(await polled.connect()), answered)
    t.ok(polled.elapsed() < 14_500, `15 within ${polled.elapsed()} ms`)
    const quick = await open(t)
    quick.cutCalls(100, 5)
    t.match(await quick.call(await quick.connect()), answered)
    t.ok(quick.elapsed() < 900, `5 within ${quick.elapsed()} ms`)
  }
)

t.test('a stream that is given up while it waits for its turn is not opened', (t) => {
  const clock = handClock()
  const reconnects = createReconnects(clock)
  let opened = 0
  const open = (): void => void opened++
  const seven = (): Array<{ close(): unknown }> => {
    const stream = reconnects.stream()
    return Array.from({ length: 7 }, () => stream(0, open))
  }
  const [given, kept] = [seven(), seven()]
  clock.advance(0)
  t.equal(opened, 10, 'five of each at once')
  for (const { close } of given) close()
  clock.advance(60_000)
  t.equal(opened, 12, 'and the rest of those that were not given up')
  t.equal(kept.length, 7)
  const [many, fewer] = [Array.from({ length: 60 }, seven), seven()]
  clock.advance(0)
  const first = opened
  t.equal(first, 12 + 50 + 50, 'of so many, fifty for the first time and fifty once more')
  for (const { close } of [...many.flat(), ...fewer]) close()
  clock.advance(60_000)
  t.equal(opened, first)
  t.end()
})

t.test('the GET stream that brings something and ends, again and again, is opened once a second', async (t) => {
  const { peer, clock, connect } = await open(t)
  const times: number[] = []
  peer.override(
    isGet,
    (response) => {
      times.push(clock.now())
      if (times.length < 20) response.writeHead(200, sse).end(`retry: 1\nid: ${times.length}\n${said}`)
      else response.writeHead(200, sse).write(said)
    },
    Infinity
  )
  await connect()
  await until(() => times.length === 20, 'it is open in the end')
  const elapsed = (times.at(-1) ?? NaN) - (times[0] ?? NaN)
  t.ok(elapsed >= 13_000, `within ${elapsed} ms`)
})

t.test('all calls at an upstream together are resumed so often, and each has its answer', async (t) => {
  const { connect, call, cutCalls, times, elapsed } = await open(t)
  cutCalls(1, 5, said)
  const calls = 120
  const upstream = await connect()
  const outcomes = await Promise.all(Array.from({ length: calls }, (_, n) => call(upstream, n)))
  for (const outcome of outcomes) t.match(outcome, answered)
  t.equal(times.length, calls * 5)
  // The first resumption of each does not wait for the others, nor do fifty.
  t.ok(elapsed() >= (calls * 4 - 50) * 10 - 100, `within ${elapsed()} ms`)
})
