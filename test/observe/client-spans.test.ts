// What goes from the gateway to its upstreams, in a trace: what the upstream answered, how often it was sent.

import t from 'tap'
import { answeringClient } from '../kit/answering-client.ts'
import { legacyClient } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import { startModern } from '../kit/modern-server.ts'
import { allCapabilities, type Json } from '../kit/server-request.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'
import { collector, spanAttributes, spansOf } from './collector.ts'

const [internal, server, client] = [1, 2, 3]
const parent = 'b7ad6b7169203331'
const traced = (endpoint: string) => ({ top: { telemetry: { otlp: { endpoint }, signals: ['traces'] } } })

t.test('what goes to an upstream has the status of its own answer, and each attempt a span of its own', async (t) => {
  const to = await collector(t)
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const endpoints = {
    default: { upstreams: ['up'], maxResultBytes: 2_000 }
  }
  const made = await gateway(t, { upstreams: { up: { url: upstream.url } }, endpoints, ...traced(to.endpoint) })
  const session = await legacyClient(made.url(), key)
  const traces: string[] = []
  const run = async (name: string, args: object = {}) => {
    const trace = `0af7651916cd43dd8448eb211c8031${String(traces.push(name)).padStart(2, '0')}`
    const _meta = { traceparent: `00-${trace}-${parent}-01` }
    await session.request('tools/call', { name: `up__${name}`, arguments: args, _meta })
    return trace
  }
  upstream.override(isCall('big'), (response, { message }) => {
    const error = { code: -32_050, message: 'no' }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], error }))
  })
  const [good, failed, refused, long] = [
    await run('echo'),
    await run('fail'),
    await run('big'),
    await run('echo', { text: 'x'.repeat(3_000) })
  ]
  upstream.sessions.clear()
  const again = await run('echo')
  const seen = upstream.seen.findLast(isCall('echo'))
  await made.close()
  for (const trace of [good, failed, refused, long]) await spansOf(to, trace, 2)
  await spansOf(to, again, 4)

  const told = (trace: string, kind: number) =>
    to.spans
      .filter((span) => span.traceId === trace && span.kind === kind)
      .map((span) => ({ error: spanAttributes(span)['error.type'], failed: span.status.code === 2 }))
  const ok = { error: undefined, failed: false }
  t.same([told(good, server), told(good, client)], [[ok], [ok]])
  const toolError = { error: 'tool_error', failed: true }
  t.same([told(failed, server), told(failed, client)], [[toolError], [toolError]])
  t.same(told(refused, client), [{ error: '-32050', failed: true }])
  t.same(told(long, client), [ok], 'the upstream did what it was asked')
  t.same(told(long, server), [toolError], 'the gateway let its answer not through')

  t.same([told(again, server), told(again, client)], [[ok], [ok]])
  const sent = to.spans.find((span) => span.traceId === again && span.kind === client)
  t.equal(seen?.headers['traceparent'], `00-${again}-${sent?.spanId}-01`, 'the server is told of the request')
  const attempts = to.spans
    .filter((span) => span.traceId === again && span.kind === internal)
    .toSorted((a, b) => Number(spanAttributes(a)['gatehouse.attempt']) - Number(spanAttributes(b)['gatehouse.attempt']))
  t.match(
    attempts.map((span) => ({ ...spanAttributes(span), parent: span.parentSpanId, code: span.status.code })),
    [
      { 'gatehouse.attempt': 1, 'error.type': 'session', parent: sent?.spanId, code: 2 },
      { 'gatehouse.attempt': 2, 'gatehouse.again': 'session', 'error.type': undefined, parent: sent?.spanId, code: 0 }
    ]
  )
  t.equal(to.spans.filter((span) => span.traceId === good && span.kind === internal).length, 0, 'sent once')
})

t.test(
  'each time that a server of 2026-07-28 asked the client of a session first is a request of its own',
  async (t) => {
    const to = await collector(t)
    const modern = await startModern()
    t.teardown(() => modern.close())
    const upstreams = { up: { url: modern.url, era: 'modern' } }
    const endpoints = { default: { upstreams: ['up'], prefix: '' } }
    const made = await gateway(t, { upstreams, endpoints, ...traced(to.endpoint) })
    const session = await answeringClient(made.url(), key, 'Streamable HTTP', '2025-11-25', allCapabilities)
    t.teardown(() => session.close())
    const trace = '0af7651916cd43dd8448eb211c80319c'
    const call = await session.start('tools/call', {
      name: 'ask',
      arguments: { rounds: 2 },
      _meta: { traceparent: `00-${trace}-${parent}-01` }
    })
    for (let round = 0; round < 2; round++) {
      const [question] = (await call.serverRequests()) as [Json]
      await session.answer(question, { action: 'accept', content: { name: 'ada' } })
    }
    t.match(await call.final(), { result: {} })
    await made.close()
    const sent = (await spansOf(to, trace, 4)).filter(({ kind }) => kind === client)
    t.equal(sent.length, 3)
  }
)
