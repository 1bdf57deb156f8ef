// Answers of 2026-07-28 that nobody reads: what waits is bounded, whatever the call goes on saying, and whoever reads
// late misses no result.

import { type Teardown, until } from '../../kit/until.ts'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { open } from '../../kit/client.ts'
import { heldSocketTimeouts } from '../../kit/faster-sockets.ts'
import { gateway, key } from '../../kit/gateway.ts'
import { modernMessage, modernRequest } from '../../kit/modern-client.ts'
import { startModern } from '../../kit/modern-server.ts'
import { dial } from '../../kit/raw-http.ts'
import { fallBehind, heldSignals, slowReader, type SlowReader } from '../../kit/slow-reader.ts'

const otherKey = 'gh_another_key_0123456789'

async function acme(t: Teardown) {
  const upstream = await startModern()
  t.teardown(() => upstream.close())
  const made = await gateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } },
    auth: {
      keys: [
        { name: 'test', key },
        { name: 'other', key: otherKey }
      ]
    }
  })
  return { made, upstream }
}

t.test('who reads late has the result at the end; of the messages before it some may be left out', async (t) => {
  const { made } = await acme(t)
  const { headers, body } = modernMessage(
    'tools/call',
    { name: 'progress', arguments: { steps: 10_000 } },
    { token: key, meta: { progressToken: 'p'.repeat(1_000) } }
  )
  const response = await open(made.url(), { method: 'POST', headers, body })
  response.pause()
  await until('the call is over', () => made.log.some(({ msg, method }) => msg === 'call' && method === 'tools/call'))
  let text = ''
  response.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  response.resume()
  await once(response, 'close')
  const messages = text
    .split('\n\n')
    .filter((event) => event.includes('data: '))
    .map((event) => JSON.parse(event.slice(event.indexOf('data: ') + 6)))
  t.match(messages.at(-1), { id: 1, result: {} })
  const steps = messages.slice(0, -1).map((message) => message.params.progress as number)
  t.ok(steps.length > 0)
  t.same(
    steps,
    [...steps].sort((a, b) => a - b),
    'in order'
  )
})

t.test('beyond 32 MiB that wait to be read the caller is refused until it has read; others are not', async (t) => {
  const { made } = await acme(t)
  const port = Number(new URL(made.publicUrl).port)
  const { headers, body } = modernMessage(
    'tools/call',
    { name: 'big', arguments: { bytes: 14_000_000 } },
    { token: key }
  )
  const sockets = Array.from({ length: 4 }, () => {
    const socket = dial(port).pause()
    socket.write(
      [
        `POST /t/acme/mcp HTTP/1.1`,
        `Host: 127.0.0.1:${port}`,
        `Content-Length: ${Buffer.byteLength(body)}`,
        ...Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`),
        '',
        body
      ].join('\r\n')
    )
    return socket
  })
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  await until(
    'all are answered',
    () => made.log.filter(({ msg, method }) => msg === 'call' && method === 'tools/call').length === 4
  )
  const list = (token: string) => modernRequest(made.url(), 'tools/list', {}, { token })
  await until('it is refused', async () => (await list(key)).status === 429)
  t.equal((await list(otherKey)).status, 200)
  for (const socket of sockets) socket.resume()
  await until('it may ask again', async () => (await list(key)).status === 200)
})

interface TwoStreams {
  /** Of the same request of two callers. */
  readonly readers: readonly [SlowReader, SlowReader]
  /** Sends both a message with this text, which is neither short nor long enough to be all that may wait. */
  say(text: string): void
}

const streams: Readonly<Record<string, (t: Test) => Promise<TwoStreams & Awaited<ReturnType<typeof acme>>>>> = {
  async 'a call'(t) {
    const { made, upstream } = await acme(t)
    const calls: Array<{ response: ServerResponse; progressToken: unknown }> = []
    upstream.override(
      ({ message }) => message?.['method'] === 'tools/call',
      (response, { message }) => {
        const { _meta: meta } = (message as { params: { _meta: { progressToken: unknown } } }).params
        calls.push({ response: response.writeHead(200, { 'content-type': 'text/event-stream' }), ...meta })
      },
      2
    )
    const begin = (token: string): SlowReader => {
      const message = modernMessage('tools/call', { name: 'slow' }, { token, meta: { progressToken: 'p' } })
      return slowReader(t, Number(new URL(made.publicUrl).port), '/t/acme/mcp', { method: 'POST', ...message })
    }
    const readers = [begin(key), begin(otherKey)] as const
    await until('both calls run', () => calls.length === 2)
    let progress = 0
    const say = (message: string): void => {
      progress++
      for (const { response, progressToken } of calls) {
        const params = { progressToken, progress, message }
        response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params })}\n\n`)
      }
    }
    return { made, upstream, readers, say }
  },

  async 'subscriptions/listen'(t) {
    const { made, upstream } = await acme(t)
    const uri = 'test://item/one'
    const listen = async (token: string): Promise<SlowReader> => {
      const notifications = { resourceSubscriptions: [uri] }
      const message = modernMessage('subscriptions/listen', { notifications }, { token })
      const port = Number(new URL(made.publicUrl).port)
      const reader = slowReader(t, port, '/t/acme/mcp', { method: 'POST', ...message })
      await reader.takeUntil('acknowledged')
      return reader
    }
    const readers = [await listen(key), await listen(otherKey)] as const
    const say = (text: string): void => {
      // Servers may tell of what is below a resource.
      const params = { uri: `${uri}/${text}` }
      for (const { id, peer } of upstream.server.listens) {
        const meta = { 'io.modelcontextprotocol/subscriptionId': id }
        peer.reply({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { ...params, _meta: meta } })
      }
    }
    return { made, upstream, readers, say }
  }
}

for (const [name, begin] of Object.entries(streams))
  t.test(`the stream of ${name} is closed where it is read too slowly, and goes on where it is read`, async (t) => {
    // What runs out is the time that a slow reader is given, and no other: it never stalls.
    heldSocketTimeouts(t, 15_000)
    const signals = heldSignals(t)
    const { made, readers, say } = await begin(t)
    const [one, other] = readers
    const givesUp = (): number =>
      made.log.filter(({ msg }) => msg === 'a client did not read its stream; closed').length
    let sent = 0
    const heardBy = async (...some: SlowReader[]): Promise<void> => {
      say(`${'x'.repeat(200_000)}-${++sent}-of-all`)
      for (const reader of some) await reader.takeUntil(`-${sent}-of-all`)
    }
    other.takeAll()
    await fallBehind(one, signals, () => heardBy(other))
    one.takeAll()
    await heardBy(one, other)
    signals.runOut()
    await heardBy(one, other)
    t.equal(givesUp(), 0, 'positive control: it has read on in time')

    other.pause()
    await fallBehind(other, signals, () => heardBy(one))
    t.equal(givesUp(), 0)
    signals.runOut()
    await heardBy(one)
    const all = sent * 200_000
    other.takeAll()
    await until('it is closed, or has got all', () => other.closed || other.text().length >= all)
    t.ok(other.text().length < all, `it had taken ${other.text().length} bytes of ${all}`)
    t.equal(givesUp(), 1)
  })
