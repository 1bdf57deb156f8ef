// The writer of server-sent events on a real response, and the one timer behind all keep-alive comments.

import { createServer, type ServerResponse } from 'node:http'
import fc from 'fast-check'
import t from 'tap'
import { createMemoryAccount, holdMemory } from '../../src/limits/memory.ts'
import { createSseWriter, maxQueuedBytes, type SseWriter } from '../../src/http/reply.ts'
import { createStream } from '../../src/session/stream.ts'
import { eventsOf, open, send } from '../kit/client.ts'
import { listen } from '../kit/listen.ts'
import { until } from '../kit/until.ts'

const writerOn = (raw: ServerResponse, warn: () => void): SseWriter =>
  createSseWriter({ raw, tenant: { id: 'acme' }, endpoint: { name: 'default' } }, { warn })

t.test('whatever JSON goes in comes out again, one event each', async (t) => {
  const values: unknown[] = []
  const origin = await listen(
    t,
    createServer((_request, response) => {
      const stream = writerOn(response, () => {})
      for (const value of values) {
        stream.comment('beat')
        stream.event('s.1.x', JSON.stringify(value))
      }
      stream.end()
      stream.event('s.2.x', 'too late') // without effect, and without an error
      stream.end()
    })
  )
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.jsonValue(), { maxLength: 5 }),
      fc.array(fc.string({ unit: 'binary' }), { maxLength: 3 }),
      async (json, strings) => {
        values.splice(0, values.length, ...json, ...strings)
        const { text } = await send(origin, { method: 'GET' })
        t.same(eventsOf(text), JSON.parse(JSON.stringify(values)))
      }
    ),
    { numRuns: 50 }
  )
})

t.test('a reader that does not read is cut off before its queue grows past the cap', async (t) => {
  let overflows = 0
  let response: ServerResponse | undefined
  const origin = await listen(
    t,
    createServer((_request, given) => {
      response = given
    })
  )
  const opening = open(origin).then(
    (incoming) => incoming.pause().on('error', () => {}),
    () => {}
  )
  const raw = await until('the request is there', () => response)
  const stream = writerOn(raw, () => {
    overflows++
  })
  const message = 'x'.repeat(64 * 1024)
  let most = 0
  for (let n = 0; stream.isOpen() && n < 10_000; n++) {
    stream.event('s.1.x', message)
    most = Math.max(most, raw.writableLength)
    if (n % 16 === 0)
      await new Promise((resolve) => {
        setImmediate(resolve)
      })
  }
  await opening
  t.notOk(stream.isOpen())
  t.equal(overflows, 1)
  t.ok(most <= maxQueuedBytes + 2 * message.length, `${most} bytes at most`)
})

t.test('a reader that catches up gets all of it, however much that is', async (t) => {
  const memory = holdMemory(createMemoryAccount().share('acme', 'ada'))
  const stream = createStream({
    now: () => 0,
    primes: true,
    idOf: (seq) => `s.${seq}`,
    onEvent() {},
    onFinish() {},
    memory
  })
  for (let n = 0; n < 10; n++) stream.send(`${n}${'x'.repeat(400_000)}`)
  let overflows = 0
  let most = 0
  const origin = await listen(
    t,
    createServer((_request, response) => {
      const sink = writerOn(response, () => {
        overflows++
      })
      const { event } = sink
      stream.resume(
        {
          ...sink,
          event(id, data) {
            const ready = event(id, data)
            most = Math.max(most, response.writableLength)
            return ready
          }
        },
        0
      )
      stream.finish()
    })
  )
  const { text } = await send(origin, { method: 'GET' })
  t.same(
    eventsOf(text).map((value) => String(value)[0]),
    '123456789'.split('')
  )
  t.equal(overflows, 0)
  t.ok(most < maxQueuedBytes, `${most} bytes at most`)
})
