// The reader of event streams: any chunking reads alike; what is too large is left out or reported, never held.

import fc from 'fast-check'
import t from 'tap'
import { finished } from '../../src/protocol/json-steps.ts'
import { idIn } from '../../src/upstream/rpc/decode-json.ts'
import { SseReader, type UnusableEvent } from '../../src/upstream/http/sse-reader.ts'

interface Read {
  readonly messages: unknown[]
  readonly ids: string[]
  readonly retries: number[]
  readonly endpoints: string[]
  readonly unusable: UnusableEvent[]
}

function read(chunks: Iterable<Buffer>, maxBytes: number, strict = false): Read {
  const found: Read = { messages: [], ids: [], retries: [], endpoints: [], unusable: [] }
  const reader = new SseReader(maxBytes, {
    message: (value) => {
      found.messages.push(value)
    },
    eventId: (id) => {
      found.ids.push(id)
    },
    retry: (ms) => {
      found.retries.push(ms)
    },
    endpoint: (uri) => {
      found.endpoints.push(uri)
    },
    ...(strict
      ? {}
      : {
          unusable: (event: UnusableEvent) => {
            found.unusable.push(event)
          }
        })
  })
  for (const chunk of chunks) finished(reader.push(chunk))
  return found
}

function* pieces(text: string, sizes: readonly number[]): Iterable<Buffer> {
  const bytes = Buffer.from(text)
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const size = sizes[n % sizes.length] ?? 1
    yield bytes.subarray(at, at + size)
    at += size
  }
}

const event = (message: unknown, end = '\n'): string => `data: ${JSON.stringify(message)}${end}${end}`
const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 10 })

t.test('any chunking reads alike, over-long events included', async (t) => {
  const long = { jsonrpc: '2.0', id: 5, result: 'ü'.repeat(400) }
  const longer = { result: 'x'.repeat(5_000), jsonrpc: '2.0', id: 6 }
  const block = fc.constantFrom(
    ': hello\n\n',
    `:${'y'.repeat(3_000)}\n`,
    'event: endpoint\ndata: /m?s=1\n\n',
    'event: ping\ndata: 1\n\n',
    'id: 7\ndata:\n\n',
    'retry: 12\n\n',
    'data: oops\n\n',
    event(long),
    event(longer),
    event({ small: '€' }, '\r\n'),
    event([1])
  )
  fc.assert(
    fc.property(fc.array(block, { maxLength: 12 }), sizes, (blocks, sizes) => {
      const text = blocks.join('')
      const whole = read([Buffer.from(text)], 300)
      t.same(read(pieces(text, sizes), 300), whole)
      return true
    }),
    { numRuns: 100 }
  )
})

t.test('an event above the limit is left out with its ends, and those around it are read', async (t) => {
  for (const [message, id] of [
    [{ jsonrpc: '2.0', id: 5, result: 'x'.repeat(5_000) }, 5],
    [{ result: 'x'.repeat(5_000), jsonrpc: '2.0', id: 6 }, 6],
    [{ a: 'x'.repeat(5_000) }, undefined]
  ] as const) {
    const { messages, unusable } = read(pieces(event(1) + event(message) + event(2), [64]), 1_000)
    t.same(messages, [1, 2])
    t.match(unusable, [{ reason: /larger than 1000 bytes/, oversized: true }])
    t.equal(idIn(unusable[0]?.head ?? '', unusable[0]?.tail ?? ''), id)
  }
})

t.test('an event of just the limit is read', async (t) => {
  const { messages, unusable } = read(pieces(event('x'.repeat(998)), [7]), 1_000)
  t.equal((messages[0] as string).length, 998)
  t.same(unusable, [])
})

t.test('a comment may be longer than any event', async (t) => {
  const { messages, unusable } = read(pieces(`: ${'x'.repeat(10_000)}\n${event(1)}`, [100]), 1_000)
  t.same([messages, unusable], [[1], []])
})

t.test('an event of many lines that is too large as a whole ends the stream', async (t) => {
  t.throws(() => read([Buffer.from(`${'data: "xxxxxxxxxx"\n'.repeat(500)}\n`)], 1_000), {
    name: 'SyntaxError',
    message: /larger than 1000/
  })
})

t.test('an unusable event is a fault where the sink does not take it', async (t) => {
  t.throws(() => read(pieces(event('x'.repeat(5_000)), [100]), 1_000, true), {
    name: 'SyntaxError',
    message: /larger than 1000/
  })
  t.throws(() => read([Buffer.from('data: oops\n\n')], 1_000, true), { name: 'SyntaxError', message: /not valid JSON/ })
  t.same(read([Buffer.from(event(1))], 1_000, true).messages, [1])
})

t.test('an event in tiny pieces takes linear time', async (t) => {
  const data = `data: ["${'x'.repeat(4_000_000)}"]\n\n`
  const began = process.threadCpuUsage()
  const pieces = Array.from({ length: Math.ceil(data.length / 100) }, (_, at) => data.slice(at * 100, at * 100 + 100))
  t.equal(
    read(
      pieces.map((piece) => Buffer.from(piece)),
      8_000_000
    ).messages.length,
    1
  )
  const { user, system } = process.threadCpuUsage(began)
  t.ok(user + system < 10_000_000, 'joining at each piece would take minutes of CPU')
})

t.test('an event has so many lines and no more', async (t) => {
  const lines = (count: number): Buffer => Buffer.from(`${'data\n'.repeat(count)}data: []\n\n`)
  t.equal(read([lines(90_000)], 8_000_000).messages.length, 1)
  t.throws(() => read([lines(110_000)], 8_000_000), { name: 'SyntaxError', message: /more than 100000 lines/ })
  t.equal(
    read(Array(60_000).fill(Buffer.from('data: []\n: x\n\n')), 1_000).messages.length,
    60_000,
    'those of one event'
  )
})

t.test('lines that belong to no event are skipped, ten for each message and a thousand more', async (t) => {
  const stream = (each: number, count: number): Buffer => Buffer.from(`${'z\n'.repeat(each)}data: []\n\n`.repeat(count))
  t.equal(read([stream(10, 500)], 1_000).messages.length, 500)
  t.throws(() => read([stream(20, 500)], 1_000), { name: 'SyntaxError', message: /1000 lines that belong to no event/ })
})

t.test(
  'what keeps a quiet stream alive is not held: comments, ids and other events, however they are cut',
  async (t) => {
    for (const quiet of [': ping\n\n', ': ping\r\n\r\n', 'id: 7\n\n', 'event: ping\ndata: 1\n\n', '\n', ':\r\r']) {
      for (const size of [1, 7, 1_000, 100_000]) {
        const reader = new SseReader(1_000_000, { message() {} })
        for (const chunk of pieces(quiet.repeat(20_000), [size])) finished(reader.push(chunk))
        t.ok(reader.held <= 1_100, `${JSON.stringify(quiet)} in pieces of ${size}: ${reader.held} characters`)
      }
    }
    const reader = new SseReader(1_000_000, { message() {} })
    finished(reader.push(Buffer.from(`: ping\n\ndata: "${'x'.repeat(50_000)}`)))
    t.ok(reader.held >= 50_000, 'an event that has not ended is')
  }
)
