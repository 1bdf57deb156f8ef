// How long each request and its answer were, where a body holds several of them, and before a session is initialized.

import t from 'tap'
import { legacyClient, send } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import { openSse, sseUrl } from '../kit/http-sse-client.ts'
import type { Json } from '../kit/server-request.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'

const upstream = await startUpstream()
t.teardown(() => upstream.close())
const acme = await gateway(t, {
  upstreams: { up: { url: upstream.url } },
  endpoints: { default: { upstreams: ['up'], prefix: '' } }
})

const echo = (id: number, text: string): Json => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'echo', arguments: { text } }
})
const bytesOf = (message: unknown): number => Buffer.byteLength(JSON.stringify(message))
const clientOf = (protocolVersion: unknown): Json => ({
  protocolVersion,
  capabilities: {},
  clientInfo: { name: 'kit', version: '1' }
})

/** Those of the calls since, in the order in which they came. */
const linesSince = (from: number, count: number) =>
  until('a line for each call', () => {
    const lines = acme.log.slice(from).filter(({ msg }) => msg === 'call')
    return lines.length >= count ? lines : undefined
  })

t.test('each request of a batch has its own length, short or long, and that of its answer', async (t) => {
  const session = await legacyClient(acme.url(), key, '2025-03-26')
  const notified = { jsonrpc: '2.0', method: 'notifications/roots/list_changed' }
  const batch = [echo(1, 'ü'), notified, echo(2, 'x'.repeat(100_000)), echo(3, ''), { ...echo(4, ''), method: 'ping' }]
  for (const messages of [batch, batch.toSpliced(2, 1)]) {
    const from = acme.log.length
    const headers = { ...session.headers, accept: 'application/json' }
    // Spaces between messages are nobody's.
    const body = `[ ${messages.map((each) => JSON.stringify(each)).join(' , ')} ]`
    const answer = await send(acme.url(), { headers, body })
    t.equal(answer.status, 200, answer.text.slice(0, 300))
    const requests = messages.filter((each) => 'id' in each)
    const answers = answer.json as unknown as Json[]
    const lines = await linesSince(from, requests.length)
    const told = lines.map(({ bytesIn, bytesOut }) => `${String(bytesIn)} ${String(bytesOut)}`)
    const wanted = requests.map(
      (each) => `${bytesOf(each)} ${bytesOf(answers.find(({ id }) => id === (each as Json)['id']))}`
    )
    t.same(told.toSorted(), wanted.toSorted())
  }
})

t.test('one over HTTP+SSE, too', async (t) => {
  const sse = await openSse(sseUrl(acme.url()), key)
  t.teardown(() => sse.close())
  t.match(await sse.request('initialize', clientOf('2025-03-26')), { result: {} })
  const from = acme.log.length
  const batch = [echo(1, 'a'), echo(2, 'bb')]
  t.equal((await sse.post(batch)).status, 202)
  const lines = await linesSince(from, 2)
  t.same(
    lines.map(({ bytesIn }) => Number(bytesIn)).toSorted((a, b) => a - b),
    batch.map(bytesOf)
  )
  const alone = acme.log.length
  t.equal((await sse.post(echo(3, 'ccc'))).status, 202)
  t.match(await linesSince(alone, 1), [{ bytesIn: bytesOf(echo(3, 'ccc')) }])
})

t.test('initialize has both, and what comes before it over HTTP+SSE has its line, refused or not', async (t) => {
  const from = acme.log.length
  const { initialized } = await legacyClient(acme.url(), key)
  t.match(await linesSince(from, 1), [
    { method: 'initialize', outcome: 'ok', bytesIn: Number, bytesOut: Buffer.byteLength(initialized.text) }
  ])
  const sse = await openSse(sseUrl(acme.url()), key)
  t.teardown(() => sse.close())
  const cases = [
    ['ping', undefined, { outcome: 'ok' }],
    ['server/discover', {}, { outcome: 'method_not_found', code: -32601, error: /Send initialize/ }],
    ['initialize', clientOf(7), { outcome: 'invalid_params', code: -32602, error: /protocolVersion/ }],
    ['initialize', clientOf('2025-03-26'), { outcome: 'ok', revision: '2025-03-26', software: 'kit 1' }]
  ] as const
  for (const [method, params, expected] of cases) {
    const before = acme.log.length
    const answer = (await sse.request(method, params)) as Json
    const [line] = await linesSince(before, 1)
    t.match(line, { level: 30, method, ...expected, bytesIn: Number, bytesOut: bytesOf(answer) }, method)
    t.equal(answer['error']?.data.requestId, 'error' in answer ? line?.['requestId'] : undefined)
  }
})
