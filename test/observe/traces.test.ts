// The trace of one call, from the client through the gateway to the upstream, read back from a collector that speaks
// OTLP over HTTP.

import { createServer } from 'node:http'
import t from 'tap'
import { parentIn } from '../../src/observe/traces/trace-context.ts'
import { legacyClient } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import { listen } from '../kit/listen.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { startModern } from '../kit/modern-server.ts'
import { until } from '../kit/until.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'
import { collector, spanAttributes, spansOf } from './collector.ts'

const [server, client] = [2, 3]

const traced = (endpoint: string, more: object = {}) => ({
  top: { telemetry: { otlp: { endpoint, headers: { 'X-Api-Key': 'of the collector' } }, signals: ['traces'], ...more } }
})
const parent = { trace: '0af7651916cd43dd8448eb211c80319c', span: 'b7ad6b7169203331' }
const traceparent = `00-${parent.trace}-${parent.span}-01`

t.test('a call of a session is one trace: client, gateway, upstream', async (t) => {
  const to = await collector(t)
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const made = await gateway(t, { upstreams: { up: { url: upstream.url } }, ...traced(to.endpoint) })
  const session = await legacyClient(made.url(), key)
  const call = { method: 'tools/call', params: { name: 'up__echo', arguments: { secret: 'of the arguments' } } }
  const answer = await fetch(made.url(), {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${key}`,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'Mcp-Session-Id': session.sessionId,
      traceparent,
      tracestate: 'vendor=1'
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, ...call })
  })
  t.match(await answer.text(), 'of the arguments')
  await session.request('tools/call', { name: 'up__fail', arguments: {} })
  const line = made.log.find((each) => each['msg'] === 'call' && each['tool'] === 'echo')
  t.equal(line?.['traceId'], parent.trace, 'the line of the log names it')
  await made.close()

  const ofTrace = await spansOf(to, parent.trace, 2)
  const [inside, outside] = [server, client].map((kind) => ofTrace.find((span) => span.kind === kind))
  t.equal(ofTrace.length, 2, 'one span for each hop')
  t.match(inside, { name: 'tools/call echo', parentSpanId: parent.span, status: { code: 0 } })
  t.match(outside, { name: 'tools/call echo', parentSpanId: inside?.spanId })
  t.match(inside && spanAttributes(inside), {
    'mcp.method.name': 'tools/call',
    'gen_ai.tool.name': 'echo',
    'gen_ai.operation.name': 'execute_tool',
    'mcp.protocol.version': '2025-11-25',
    'gatehouse.tenant': 'acme',
    'gatehouse.upstream': 'up',
    'gatehouse.outcome': 'ok',
    'gatehouse.request_id': answer.headers.get('x-request-id'),
    // By the same characters as the line of the log.
    'gatehouse.session': String(line?.['session'])
  })
  t.match(line?.['session'], /^[\w-]{8}$/)
  const seen = upstream.seen.find(isCall('echo'))
  const own = `00-${parent.trace}-${outside?.spanId}-01`
  t.equal(seen?.headers['traceparent'], own, 'the upstream is told by header')
  t.equal(seen?.headers['tracestate'], 'vendor=1')
  t.match(seen?.message, { params: { _meta: { traceparent: own, tracestate: 'vendor=1' } } }, 'and in the message')

  const failed = await until('the call that failed is told', () =>
    to.spans.find((span) => span.kind === server && span.name === 'tools/call fail')
  )
  t.match(failed, { status: { code: 2 } })
  t.equal(spanAttributes(failed)['error.type'], 'tool_error')
  t.not(failed.traceId, parent.trace, 'a trace of its own')
  t.notMatch(JSON.stringify(to.spans), 'of the arguments')
  t.notMatch(JSON.stringify(to.spans), session.sessionId)
  const ofTraces = { path: '/v1/traces', key: 'of the collector', resource: { 'service.name': 'gatehouse' } }
  t.match(
    to.seen,
    to.seen.map(() => ofTraces)
  )
})

t.test('in 2026-07-28 the message carries it, in and out', async (t) => {
  const to = await collector(t)
  const modern = await startModern()
  t.teardown(() => modern.close())
  const made = await gateway(t, { upstreams: { up: { url: modern.url } }, ...traced(to.endpoint) })
  const options = { token: key, meta: { traceparent } }
  const { json } = await modernRequest(made.url(), 'tools/call', { name: 'up__echo', arguments: {} }, options)
  t.match(json, { result: {} })
  await made.close()
  const ofTrace = await spansOf(to, parent.trace, 2)
  t.same(new Set(ofTrace.map(({ kind }) => kind)), new Set([server, client]))
})

t.test('a name that its caller invented is the title of no span', async (t) => {
  const to = await collector(t)
  const { top } = traced(to.endpoint)
  const notes = { url: 'https://notes.example/mcp', auth: { type: 'userSecret', header: 'X-Key' } }
  const vault = { keys: [{ id: '1', key: Buffer.alloc(32, 7).toString('base64') }] }
  const made = await gateway(t, { upstreams: { notes }, top: { ...top, vault } })
  const session = await legacyClient(made.url(), key)
  await session.request('tools/call', { name: 'notes__invented', arguments: {} })
  await modernRequest(made.url(), 'tools/call', { name: 'notes__invented', arguments: {} }, { token: key })
  await made.close()
  const calls = await until('both calls are told', () => {
    const found = to.spans.filter((span) => spanAttributes(span)['mcp.method.name'] === 'tools/call')
    return found.length >= 2 ? found : undefined
  })
  t.same(new Set(calls.map(({ name }) => name)), new Set(['tools/call']))
  t.equal(calls.filter(({ kind }) => kind === server).length, 2)
})

t.test('what is no trace context is none, and a part of the traces can be sent', async (t) => {
  for (const text of ['', 'x', `00-${'0'.repeat(32)}-${parent.span}-01`, `ff-${parent.trace}-${parent.span}-01`, 7])
    t.equal(parentIn({ traceparent: text }), undefined, String(text))
  t.match(parentIn({ traceparent, tracestate: 'a'.repeat(513) }), { traceId: parent.trace, traceFlags: 1 })
  t.equal(parentIn({ traceparent, tracestate: 'a=b\r\nX: y' })?.tracestate, undefined)

  const to = await collector(t)
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const made = await gateway(t, {
    upstreams: { up: { url: upstream.url } },
    ...traced(to.endpoint, { samplePercent: 0 })
  })
  const session = await legacyClient(made.url(), key)
  await session.request('tools/call', { name: 'up__echo', arguments: {} })
  await session.request('tools/call', { name: 'up__echo', arguments: {}, _meta: { traceparent } })
  await made.close()
  await spansOf(to, parent.trace, 2)
  t.same(new Set(to.spans.map(({ traceId }) => traceId)), new Set([parent.trace]), 'whoever calls has decided')
})

t.test('a collector that is away costs no call anything, and without telemetry nothing is added', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const away = await gateway(t, { upstreams: { up: { url: upstream.url } }, ...traced('http://127.0.0.1:1') })
  const session = await legacyClient(away.url(), key)
  t.match((await session.request('tools/call', { name: 'up__echo', arguments: {} })).json, { result: {} })
  await away.close()
  const off = await gateway(t, { upstreams: { up: { url: upstream.url } } })
  const other = await legacyClient(off.url(), key)
  await other.request('tools/call', { name: 'up__echo', arguments: { off: true } })
  const seen = upstream.seen.findLast(isCall('echo'))
  t.equal(seen?.headers['traceparent'], undefined)
  t.notMatch(JSON.stringify(seen?.message), 'traceparent')
})

t.test('where no traces are sent, that of the client goes on as it came, and is in the log', async (t) => {
  const [upstream, modern] = [await startUpstream(), await startModern()]
  t.teardown(() => Promise.all([upstream.close(), modern.close()]))
  const upstreams = { up: { url: upstream.url }, new: { url: modern.url } }
  for (const top of [{}, traced('http://127.0.0.1:1', { signals: ['logs'] }).top]) {
    const made = await gateway(t, { upstreams, top })
    const session = await legacyClient(made.url(), key)
    const headers = {
      Authorization: `Bearer ${key}`,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'Mcp-Session-Id': session.sessionId,
      ...{ traceparent, tracestate: 'vendor=1' }
    }
    const call = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'up__echo', arguments: {} } }
    t.equal((await fetch(made.url(), { method: 'POST', headers, body: JSON.stringify(call) })).status, 200)
    const seen = upstream.seen.findLast(isCall('echo'))
    t.match(seen?.headers, { traceparent, tracestate: 'vendor=1' })
    t.match(seen?.message, { params: { _meta: { traceparent, tracestate: 'vendor=1' } } })
    const options = { token: key, meta: { traceparent } }
    await modernRequest(made.url(), 'tools/call', { name: 'new__echo', arguments: {} }, options)
    const lines = made.log.filter(({ msg, tool }) => msg === 'call' && tool === 'echo')
    t.same(
      lines.map(({ traceId }) => traceId),
      [parent.trace, parent.trace]
    )
    await made.close()
  }
})

t.test('a collector that takes connections and never answers does not hold up the end of the gateway', async (t) => {
  const [asked, gaveUp] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()]
  const endpoint = await listen(
    t,
    createServer((request) => {
      asked.resolve('asked')
      request.on('close', () => gaveUp.resolve('the collector was given up first'))
    })
  )
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const made = await gateway(t, { upstreams: { up: { url: upstream.url } }, ...traced(endpoint) })
  const session = await legacyClient(made.url(), key)
  await session.request('tools/call', { name: 'up__echo', arguments: {} })
  const closed = made.close().then(() => 'closed')
  t.equal(await asked.promise, 'asked', 'the last spans are sent')
  t.equal(await Promise.race([closed, gaveUp.promise]), 'closed')
})
