// Histograms of calls: the same figures as OpenTelemetry's own make of the same values, and no more series than may be.

import fc from 'fast-check'
import { type Histogram, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics'
import t from 'tap'
import { type Attributes, createCallAttributes } from '../../src/observe/metrics/call-attributes.ts'
import { createLabelNames } from '../../src/observe/metrics/label-names.ts'
import { RpcError } from '../../src/protocol/messages.ts'
import { createCallSeries, type HistogramValue, maxSeries } from '../../src/observe/metrics/call-series.ts'
import { bucketsOf } from '../../src/observe/metrics/instruments.ts'

const name = 'mcp.server.operation.duration'
const explicitBucketBoundaries = bucketsOf[name] ?? []

class Reader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

const attributesOf = (tenant: string, tool: string | undefined): Attributes => ({
  'gen_ai.tool.name': tool,
  'error.type': undefined,
  'rpc.response.status_code': undefined,
  'gatehouse.tenant': tenant
})

/** In any order of series and attributes. */
const figures = (points: ReadonlyArray<{ readonly attributes: object; readonly value: unknown }>): unknown[] =>
  points
    .map(({ attributes, value }) => {
      const { buckets, count, sum = 0 } = value as Histogram
      return [
        JSON.stringify(Object.entries(attributes).sort(([a], [b]) => (a < b ? -1 : 1))),
        buckets.counts,
        count,
        sum.toFixed(6)
      ] as const
    })
    .sort(([a], [b]) => (a < b ? -1 : 1))

t.test('they count as those of OpenTelemetry do', async () => {
  const seconds = fc.oneof(
    fc.constantFrom(0, ...explicitBucketBoundaries, 1e6),
    fc.double({ min: 0, max: 400, noNaN: true })
  )
  const call = fc.tuple(seconds, fc.constantFrom('acme', 'globex'), fc.constantFrom('echo', 'add', undefined))
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 30 }), async (calls) => {
      const reader = new Reader()
      const provider = new MeterProvider({ readers: [reader] })
      const theirs = provider.getMeter('test').createHistogram(name, { advice: { explicitBucketBoundaries } })
      const ours = createCallSeries(name, Date)
      for (const [value, tenant, tool] of calls) {
        const attributes = attributesOf(tenant, tool)
        ours.record(value, tenant, attributes)
        theirs.record(value, JSON.parse(JSON.stringify(attributes)) as Record<string, string>)
      }
      const { resourceMetrics } = await reader.collect()
      await provider.shutdown()
      const expected = resourceMetrics.scopeMetrics[0]?.metrics[0]?.dataPoints ?? []
      return JSON.stringify(figures(ours.data().dataPoints)) === JSON.stringify(figures(expected))
    }),
    { numRuns: 200 }
  )
})

t.test('a tenant with too many is counted without names, and none goes uncounted', async (t) => {
  const series = createCallSeries(name, Date)
  const calls = 1_500
  for (let at = 0; at < calls; at++) series.record(1, 'acme', attributesOf('acme', `tool ${at}`))
  series.record(1, 'globex', attributesOf('globex', 'echo'))
  const points = series.data().dataPoints
  t.equal(points.length, 1_002)
  t.match(points.find(({ attributes }) => attributes['gen_ai.tool.name'] === 'other')?.value, { count: 500 })
  t.equal(
    points.reduce((sum, { value }) => sum + (value as Histogram).count, 0),
    calls + 1
  )
})

t.test('all tenants together have so many, and what is beyond is counted together', async (t) => {
  const series = createCallSeries(name, Date)
  for (let at = 0; at < maxSeries + 500; at++) series.record(1, `t${at}`, attributesOf(`t${at}`, 'echo'))
  const points = series.data().dataPoints
  t.equal(points.length, maxSeries)
  t.same(points.at(-1)?.attributes, { 'otel.metric.overflow': true })
  t.match(points.at(-1)?.value, { count: 501 })
})

t.test('tenants that take all places leave some to one that comes later', async (t) => {
  const series = createCallSeries(name, Date)
  for (let tenant = 0; tenant < 50; tenant++)
    for (let at = 0; at < 250; at++) series.record(1, `full ${tenant}`, attributesOf(`full ${tenant}`, `tool ${at}`))
  for (let at = 0; at < 100; at++) series.record(1, 'late', attributesOf('late', `tool ${at}`))
  const points = series.data().dataPoints
  const own = points.filter(({ attributes }) => attributes['gatehouse.tenant'] === 'late')
  t.equal(new Set(own.map(({ attributes }) => attributes['gen_ai.tool.name'])).size, 100, 'each by its name')
  t.ok(points.length <= maxSeries)
  t.notMatch(JSON.stringify(points.map(({ attributes }) => attributes)), 'overflow', 'no call is without its tenant')
})

t.test('a tool that has not been called for ten minutes makes room, one that is called stays', async (t) => {
  let now = 0
  const names = createLabelNames()
  const series = createCallSeries(name, { now: () => now }, names)
  const { ofSent } = createCallAttributes(names, [series])
  const sent = (tool: string, error?: Error): void => {
    const definition = { tenant: 'acme', name: 'up', type: 'http' }
    const asked = { revision: '2025-11-25', method: 'tools/call', name: tool }
    const request = { ...asked, error, isToolError: false, ms: 1 }
    series.record(1, 'acme', ofSent(definition, request))
  }
  const counts = () =>
    new Map(
      series
        .data()
        .dataPoints.map(({ attributes, value }) => [attributes['gen_ai.tool.name'], (value as Histogram).count])
    )
  for (let code = 0; code < 300; code++) sent('tool 0', new RpcError({ code, message: 'no' }))
  for (let at = 0; at < 200; at++) sent(`tool ${at}`)
  t.equal(counts().size, 200, 'codes take no places of tools')
  sent('late')
  t.equal(counts().get('late'), undefined)
  t.equal(counts().get('other'), 1)
  now += 599_000
  sent('tool 7')
  sent('late')
  t.equal(counts().get('other'), 2)
  now += 61_000
  sent('late')
  t.equal(counts().get('late'), 1)
  t.equal(counts().get('tool 7'), 2)
  t.equal(counts().get('tool 8'), undefined)
})

t.test('the last call of each bucket is known by its trace, in so many series', async (t) => {
  const series = createCallSeries(name, { now: () => 5_000 })
  const trace = (id: string) => ({ traceId: id, spanId: 's' })
  const first = series.find('acme', attributesOf('acme', 'echo'))
  series.add(first, 0.001, trace('a'))
  series.add(first, 0.002, trace('b'))
  series.add(first, 1e6, trace('c'))
  series.add(first, 1e6)
  for (let at = 0; at < 2_000; at++)
    series.add(series.find(`tenant ${at}`, attributesOf(`tenant ${at}`, 'echo')), 1, trace('d'))
  const kept = series.data().dataPoints.map(({ value }) => (value as HistogramValue).exemplars)
  t.same(
    kept[0]?.filter((each) => each !== undefined),
    [
      { traceId: 'b', spanId: 's', seconds: 0.002, at: 5_000 },
      { traceId: 'c', spanId: 's', seconds: 1e6, at: 5_000 }
    ]
  )
  t.equal(kept[0]?.length, explicitBucketBoundaries.length + 1)
  t.equal(kept.filter((each) => each !== undefined).length, 1_000)
})

t.test('a tenant with many tools leaves places for the traces of others', async (t) => {
  const series = createCallSeries(name, Date)
  const call = (tenant: string, tool: string): void =>
    series.add(series.find(tenant, attributesOf(tenant, tool)), 1, { traceId: tenant, spanId: 's' })
  const kept = (tenant: string): number =>
    series
      .data()
      .dataPoints.filter(({ attributes }) => attributes['gatehouse.tenant'] === tenant)
      .filter(({ value }) => (value as HistogramValue).exemplars !== undefined).length
  for (let at = 0; at < 300; at++) call('noisy', `tool ${at}`)
  t.equal(kept('noisy'), 100)
  for (let tenant = 0; tenant < 9; tenant++) for (let at = 0; at < 100; at++) call(`full ${tenant}`, `tool ${at}`)
  t.equal(kept('full 8'), 100, 'all places are taken')
  for (let at = 0; at < 5; at++) call('quiet', `tool ${at}`)
  t.equal(kept('quiet'), 5)
  t.equal(series.data().dataPoints.filter(({ value }) => (value as HistogramValue).exemplars).length, 1_000)
  for (let at = 0; at < 300; at++) call('noisy', `tool ${at}`)
  t.equal(kept('quiet'), 5, 'and nobody takes them back')
})

t.test('a tenant that is no more leaves nothing behind, and others keep theirs', (t) => {
  const names = createLabelNames()
  const series = createCallSeries(name, Date, names)
  const tenants = () =>
    [...new Set(series.data().dataPoints.map(({ attributes }) => attributes['gatehouse.tenant']))]
      .map(String)
      .toSorted((a, b) => a.localeCompare(b))
  const isFull = (tenant: string) => !names.has(tenant, 'names', 'one more')
  for (const tenant of ['acme', 'globex'])
    for (let tool = 0; tool < 200; tool++) series.record(1, tenant, attributesOf(tenant, `tool-${tool}`))
  const kept = series.find('globex', attributesOf('globex', 'tool-0'))
  const gone = series.find('acme', attributesOf('acme', 'tool-0'))
  t.ok(isFull('acme') && isFull('globex'), 'the control')
  series.keepOnly(new Set(['globex']))
  t.same(tenants(), ['globex'])
  t.ok(gone.isGone && !kept.isGone)
  t.ok(!isFull('acme') && isFull('globex'))
  series.record(1, 'acme', attributesOf('acme', 'tool-0'))
  const again = series.data().dataPoints.find(({ attributes }) => attributes['gatehouse.tenant'] === 'acme')
  t.match(again, { value: { count: 1 } }, 'one of the same name begins anew')
  t.end()
})
