// Metrics and the log, as a collector gets them over OTLP; and one that is away, refuses or never answers.

import { gzipSync } from 'node:zlib'
import t from 'tap'
import pino from 'pino'
import { alsoTo } from '../../src/observe/log.ts'
import { createLogExport } from '../../src/observe/otlp/log-export.ts'
import { createLosses } from '../../src/observe/otlp/losses.ts'
import { createCallSeries } from '../../src/observe/metrics/call-series.ts'
import { createMetricExport } from '../../src/observe/otlp/metric-export.ts'
import { steadyClock } from '../../src/time/clock.ts'
import { adminGateway } from '../kit/admin.ts'
import { legacyClient, send } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { collector, type Collector, valuesOf } from './collector.ts'
import { samplesOf } from './samples.ts'

const upstream = await startUpstream()
t.teardown(() => upstream.close())
const upstreams = { up: { url: upstream.url } }
const telemetry = (endpoint: string, more: object = {}) => ({
  telemetry: { otlp: { endpoint, headers: { 'X-Api-Key': 'of the collector' } }, ...more }
})

t.test('metrics and the log reach a collector, without an admin listener', async (t) => {
  const to = await collector(t)
  const made = await gateway(t, { upstreams, top: telemetry(to.endpoint, { metricsEverySeconds: 1 }) })
  const client = await legacyClient(made.url(), key)
  await client.request('tools/call', { name: 'up__echo', arguments: { canary: 'of-an-argument' } })
  await client.request('tools/call', { name: 'up__fail', arguments: {} })
  await send(made.url(), { body: '{}' })

  const point = await until('the call is in a histogram', () =>
    to.metrics
      .filter(({ name }) => name === 'mcp.server.operation.duration')
      .flatMap(({ histogram }) => histogram?.dataPoints ?? [])
      .find(({ attributes }) => valuesOf(attributes)['gen_ai.tool.name'] === 'echo')
  )
  t.match(valuesOf(point.attributes), {
    'mcp.method.name': 'tools/call',
    'gatehouse.tenant': 'acme',
    'gatehouse.outcome': 'ok'
  })
  t.match(point, { count: 1, sum: Number })
  t.equal(point.bucketCounts?.length, 15)
  t.ok(Number(point.timeUnixNano) >= Number(point.startTimeUnixNano) && Number(point.startTimeUnixNano) > 1e18)
  const histogram = to.metrics.find(({ name }) => name === 'mcp.server.operation.duration')
  t.match(histogram, { unit: 's', histogram: { aggregationTemporality: 2 } })
  const named = (wanted: string) => until(wanted, () => to.metrics.find(({ name }) => name === wanted))
  t.match(await named('gatehouse.requests.refused'), { sum: { isMonotonic: true, dataPoints: [{ asDouble: 1 }] } })
  for (const name of ['process.memory.usage', 'gatehouse.sessions', 'gatehouse.upstream.available']) await named(name)

  const lineOf = (tool: string) => to.logs.find(({ attributes }) => valuesOf(attributes)['gen_ai.tool.name'] === tool)
  await until('the line of the last call is there', () => lineOf('fail'))
  const logged = made.log.find(({ tool }) => tool === 'fail')
  t.match(lineOf('fail'), { body: { stringValue: 'call' }, severityText: 'INFO', traceId: logged?.['traceId'] })
  t.match(valuesOf(lineOf('fail')?.attributes ?? []), {
    'gatehouse.request_id': logged?.['requestId'],
    'gatehouse.outcome': 'tool_error',
    'gatehouse.api_key': 'test',
    'mcp.method.name': 'tools/call'
  })
  await until('so is that of a refusal', () => to.logs.some(({ eventName }) => eventName === 'gatehouse.refused'))
  t.notMatch(JSON.stringify([to.logs, to.metrics]), 'of-an-argument')
  await made.close()
  const paths = () => new Set(to.seen.map(({ path }) => path))
  await until('what was sent last is there', () => paths().size === 3)
  t.same(paths(), new Set(['/v1/metrics', '/v1/logs', '/v1/traces']))
  t.ok(
    to.seen.every(({ key: sent }) => sent === 'of the collector'),
    'with its headers'
  )
  t.match(to.seen[0]?.resource, { 'service.name': 'gatehouse', 'service.version': '0.0.0-test' })
})

t.test('a collector that refuses holds up nobody: what is dropped is counted, and said once', async (t) => {
  const to = await collector(t)
  to.status = 400
  const top = telemetry(to.endpoint, { metricsEverySeconds: 1, signals: ['metrics', 'logs'] })
  const made = await adminGateway(t, { upstreams, top })
  const client = await legacyClient(made.url(), key)
  const dropped = async (signal: string): Promise<number> => {
    const { text } = await made.call('GET', '/metrics')
    const found = samplesOf(text).find(
      ({ name, labels }) => name === 'gatehouse_telemetry_dropped_total' && labels['gatehouse_signal'] === signal
    )
    return found?.value ?? 0
  }
  await until('points are dropped', async () => (await dropped('metrics')) > 0)
  t.match((await client.request('tools/call', { name: 'up__echo', arguments: {} })).json, { result: {} })
  const warnings = () => made.log.filter(({ msg }) => String(msg).startsWith('telemetry does not reach'))
  await until('both are said', () => warnings().length === 2)
  const before = await dropped('metrics')
  await until('more are dropped', async () => (await dropped('metrics')) > before)
  t.equal(warnings().length, 2, 'and said no more')
  to.status = undefined
  await until('it is well again', () =>
    ['metrics', 'logs'].every((signal) =>
      made.log.some((line) => line['signal'] === signal && line['msg'] === 'telemetry reaches the collector again')
    )
  )
})

/** What `log` writes is sent; `lost`: lines that were dropped. */
function exportTo(to: Collector) {
  const state = { lost: 0, said: '' }
  const log = pino({ base: null }, { write: (line: string) => void (state.said += line) })
  const losses = createLosses('logs', log, { dropped: (_signal, items) => (state.lost += items) })
  const place = { url: `${to.endpoint}/v1/logs`, headers: {} }
  const exported = createLogExport({ place, resource: {}, losses, clock: steadyClock })
  return { state, log, exported, untap: alsoTo(log, exported) }
}

t.test('what a collector refuses for good is dropped, and keeps nothing after it; else it waits', async (t) => {
  const to = await collector(t)
  const { state, log, exported } = exportTo(to)
  const has = (text: string) => to.logs.some(({ body }) => body.stringValue === text)
  to.status = 503
  log.info('sent again')
  await until('it was sent once', () => state.said.includes('does not reach'))
  to.status = undefined
  await until('it is there', () => has('sent again'))
  t.equal(state.lost, 0)
  to.status = 413
  log.info('too large')
  await until('it is dropped', () => state.lost > 0)
  to.status = undefined
  log.info('after it')
  await until('the next one is there', () => has('after it'))
  t.notOk(has('too large'))
  await exported.close()
})

t.test('what a collector has taken is not sent again, whatever it says of it', async (t) => {
  const to = await collector(t)
  const { state, log, exported } = exportTo(to)
  const count = (text: string) => to.logs.filter(({ body }) => body.stringValue === text).length
  for (const [text, answer] of Object.entries({
    compressed: { headers: { 'Content-Encoding': 'gzip' }, body: gzipSync('{}') },
    long: { headers: {}, body: ' '.repeat(2 * 1024 * 1024) }
  })) {
    to.answer = answer
    log.info(text)
    await until('it is there', () => count(text) > 0)
    log.info(`after ${text}`)
    await until('so is what comes after it', () => count(`after ${text}`) > 0)
    t.equal(count(text), 1, text)
  }
  await exported.close()
  t.equal(state.lost, 0)
})

t.test('lines for a collector that never answers are bounded', async (t) => {
  const to = await collector(t)
  to.status = 0
  t.teardown(() => to.open.forEach((response) => response.destroy()))
  const { state, log, exported, untap } = exportTo(to)
  for (let line = 0; line < 10_000; line++) log.child({ line }).info('a line')
  // With the line that says so.
  t.equal(state.lost, 10_001 - 8_192)
  untap()
  log.info('not sent any more')
  t.equal(state.lost, 10_001 - 8_192)
  await until('the first are on their way', () => to.open.length === 1)
  to.status = undefined
  to.open[0]?.writeHead(200).end('')
  await exported.close()
  t.equal(to.logs.length, 8_192 - 1_024, 'the rest has been sent')
})

t.test('many series are sent in parts, and none is missing', async (t) => {
  const to = await collector(t)
  const series = createCallSeries('mcp.client.operation.duration', Date)
  for (let each = 0; each < 900; each++) series.record(1, 'acme', { 'gen_ai.tool.name': `tool-${each}` })
  const scopeMetrics = [{ scope: { name: 'gatehouse' }, metrics: [series.data()] }]
  const exported = createMetricExport({
    place: { url: `${to.endpoint}/v1/metrics`, headers: {} },
    everySeconds: 3_600,
    read: async () =>
      ({ resource: { attributes: {}, getRawAttributes: () => [], merge: () => undefined }, scopeMetrics }) as never,
    losses: createLosses('metrics', pino({ enabled: false }), undefined),
    clock: steadyClock
  })
  await exported.close()
  t.same(
    to.metrics.map(({ histogram }) => histogram?.dataPoints.length),
    [500, 400]
  )
})
