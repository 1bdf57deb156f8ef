// Attack: three hundred answers of upstreams that come at once, in chunks of one byte each or as much as the system
// holds. In one turn of the event loop all of their sockets can be read.

import { once } from 'node:events'
import type { Socket } from 'node:net'
import t from 'tap'
import { legacyClient } from '../kit/client.ts'
import { until } from '../kit/until.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'
import { attacked, keys } from './kit.ts'

/** Of CPU, on a machine that does ten other things. In one go, each of these takes several times as long. */
const maxTurnMs = 150
const calls = 300

const upstream = await startUpstream()
t.teardown(upstream.close)
/** Whose requests wait for their answers, with their ids. */
let asking: Array<{ socket: Socket; id: unknown }> = []
upstream.override(
  isCall('echo'),
  ({ socket }, { message }) => {
    if (socket !== null) asking.push({ socket, id: message?.['id'] })
  },
  Infinity
)
const gateway = await attacked(t, { upstreams: { http: { url: upstream.url } }, watchTurns: true })
const attacker = await legacyClient(gateway.url, keys.attacker)
const colleague = await legacyClient(gateway.url, keys.colleague)

const inPieces = (text: string, size: number): string =>
  (text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [])
    .map((part) => `${part.length.toString(16)}\r\n${part}\r\n`)
    .join('')

/** @returns what came of all the calls that are answered at once, while the gateway could read none of it */
async function answeredAtOnce(type: string, text: string, size: number): Promise<unknown[]> {
  asking = []
  const params = { name: 'http__echo', arguments: {} }
  const answers = Array.from({ length: calls }, (_, at) =>
    (at % 2 === 0 ? attacker : colleague).request('tools/call', params)
  )
  await until('all of the calls wait', () => asking.length === calls)
  await gateway.pause()
  const head = `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`
  const [before, after] = type === 'text/event-stream' ? ['data: ', '\n\n'] : ['', '']
  // The same for all: only its beginning names the call.
  const rest = `${inPieces(`,"result":{"content":[],"x":"${text}"}}${after}`, size)}0\r\n\r\n`
  const written = asking.map(({ socket, id }) => {
    const begin = inPieces(`${before}{"jsonrpc":"2.0","id":${JSON.stringify(id)}`, size)
    socket.end(head + begin + rest, 'latin1')
    return once(socket, 'close')
  })
  gateway.signal('SIGCONT')
  await Promise.all(written)
  return (await Promise.all(answers)).map((answer) => answer.json?.result?.['x'] === text)
}

const attacks = [
  ['application/json', 'x'.repeat(10_000), 1],
  ['text/event-stream', 'x'.repeat(10_000), 1],
  ['application/json', 'x'.repeat(400_000), 100_000]
] as const

for (const [type, text, size] of attacks)
  t.test(`${calls} answers at once, ${type} in chunks of ${size}, arrive whole and stall nobody`, async (t) => {
    // Before it is hot, code takes several times as long.
    await answeredAtOnce(type, text.slice(0, 1_000), size)
    const ms = await gateway.longestTurnMs(maxTurnMs, async () =>
      t.same(new Set(await answeredAtOnce(type, text, size)), new Set([true]))
    )
    t.ok(ms < maxTurnMs, `the longest turn took ${ms} ms of CPU`)
  })
