// How calls went in the last hour, and what is wrong now: of the tenants of the reader only, counted as log and metrics
// count, in bounded memory.

import { join } from 'node:path'
import t from 'tap'
import { createSeries } from '../../src/admin/series/series.ts'
import type { CallOutcome, ObservedCall } from '../../src/observe/calls.ts'
import { adminGateway, adminKeys, globexKey, type AdminAnswer } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { key as apiKey } from '../kit/gateway.ts'
import { until } from '../kit/until.ts'
import { startSseUpstream } from '../kit/sse-upstream.ts'
import { startUpstream } from '../kit/upstream.ts'

interface Steps {
  readonly calls: number[]
  readonly errors: number[]
  readonly toolErrors: number[]
  readonly p50: Array<number | null>
  readonly p99: Array<number | null>
}
interface Told {
  readonly from: string
  readonly stepMs: number
  readonly steps: number
  readonly total: Steps
  readonly items: Array<Steps & { readonly tenant: string; readonly name: string }>
}
const told = ({ json }: AdminAnswer): Told => json as Told
const sum = (values: readonly number[]): number => values.reduce((all, each) => all + each, 0)
const namesOf = ({ items }: Told) => items.map(({ tenant, name, calls }) => `${tenant} ${name} ${sum(calls)}`)

interface Problems {
  readonly items: Array<Record<string, unknown>>
}

t.test('calls are counted by step, tenant, endpoint, upstream and tool, for whoever may see the tenant', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const up = { type: 'http', url: upstream.url }
  const made = await adminGateway(t, {
    upstreams: { up },
    tenants: { globex: { auth: { keys: [{ name: 'gus', key: globexKey }] }, upstreams: { up } } }
  })
  const ada = await legacyClient(made.url(), apiKey)
  const gus = await legacyClient(made.url('default', 'globex'), globexKey)
  for (let at = 0; at < 3; at++) await ada.request('tools/call', { name: 'up__echo', arguments: { text: 'x' } })
  await ada.request('tools/call', { name: 'up__none', arguments: {} })
  await gus.request('tools/call', { name: 'up__echo', arguments: { text: 'x' } })
  const read = async (path: string, key?: string) => {
    const answer = await made.call('GET', path, key === undefined ? {} : { key })
    t.equal(answer.status, 200, answer.text)
    return told(answer)
  }
  const all = await read('/v1/series')
  t.equal(all.steps, 360)
  t.equal(all.total.calls.length, 360)
  t.same(all.items.map(({ name }) => name).sort(), ['acme', 'globex'])
  t.equal(sum(all.total.errors), 1)
  t.equal(sum(all.total.calls), sum(all.items.flatMap(({ calls }) => calls)))
  t.ok(all.total.p99.some((ms) => ms !== null && ms >= 0))
  t.same(namesOf(await read('/v1/series?by=tool')), ['acme up/echo 3', 'globex up/echo 1'])
  t.same(namesOf(await read('/v1/tenants/acme/series?by=upstream&minutes=5')), ['acme up 3'])
  t.same(namesOf(await read('/v1/tenants/acme/series?by=tool&name=up/echo&top=1')), ['acme up/echo 3'])
  t.same(namesOf(await read('/v1/tenants/acme/series?by=tool&name=up/fail')), [], 'it was not called')
  t.same(namesOf(await read('/v1/series?by=tool&top=0', adminKeys.viewer)), [' other 4'])
  const own = await read('/v1/series?by=tool', adminKeys.globex)
  t.same(namesOf(own), ['globex up/echo 1'], 'nothing of another tenant')
  t.equal(sum(own.total.errors), 0)
  t.equal((await made.call('GET', '/v1/tenants/acme/series', { key: adminKeys.globex })).status, 404)
  t.equal((await made.call('GET', '/v1/tenants/acme/series?by=tenant')).status, 400)
})

const callOf = (tenant: string, tool: string): ObservedCall => ({
  request: { method: 'tools/call' },
  tenant: { id: tenant, audit: { required: false, arguments: false } as unknown as ObservedCall['tenant']['audit'] },
  endpoint: { name: 'default' },
  principal: { kind: 'key', issuer: '', subject: 'x', clientId: 'x' },
  record: { route: { upstream: 'up', name: tool } }
})
const ended = (ms: number, outcome: CallOutcome['outcome'] = 'ok'): CallOutcome => ({ outcome, ms, rule: undefined })

t.test('quantiles are right within a fifth, steps fall out of the hour, and names are bounded', async (t) => {
  const clock = { time: Date.parse('2026-07-28T10:00:00Z'), now: () => clock.time }
  const series = createSeries(clock)
  for (let ms = 1; ms <= 1_000; ms++)
    series.meter.callEnded(callOf('acme', 'a'), ended(ms, ms > 990 ? 'tool_error' : 'ok'))
  const { total } = series.read('tenant', undefined, 60, 8)
  t.same([total.calls.at(-1), total.toolErrors.at(-1), total.errors.at(-1)], [1_000, 10, 0])
  for (const [found, right] of [
    [total.p50.at(-1), 500],
    [total.p95.at(-1), 950],
    [total.p99.at(-1), 990]
  ] as const)
    t.ok(Math.abs(Number(found) - right) <= right / 5, `${found} for ${right}`)
  clock.time += 30_000
  t.equal(series.read('tenant', undefined, 60, 8).total.calls.at(-4), 1_000)
  t.equal(series.failuresSince('acme', 'up', clock.time - 60_000), 0)
  series.meter.callEnded(callOf('acme', 'a'), ended(5, 'upstream_unavailable'))
  t.equal(series.failuresSince('acme', 'up', clock.time - 10_000), 1)
  for (let at = 0; at < 500; at++) series.meter.callEnded(callOf('acme', `tool ${at}`), ended(1))
  const { items } = series.read('tool', undefined, 60, 1_000)
  t.ok(items.length <= 41, 'so many are told apart')
  t.equal(sum(items.flatMap(({ calls }) => calls)), 1_501, 'and all are counted')
  const one = series.read('tool', new Set(['acme']), 60, 8, 'up/tool 30')
  t.same(
    one.items.map(({ name, calls }) => `${name} ${sum(calls)}`),
    ['up/tool 30 1', 'other 461'],
    'one of them alone, and those in which it may be counted'
  )
  for (let at = 0; at < 500; at++) series.meter.callEnded(callOf(`tenant ${at}`, 'a'), ended(1))
  const tenants = series.read('tenant', undefined, 60, 1_000)
  t.ok(tenants.items.length <= 65)
  t.equal(sum(tenants.total.calls), 2_001)
  clock.time += 61 * 60_000
  t.equal(sum(series.read('tenant', undefined, 60, 8).total.calls), 0)
  series.meter.callEnded(callOf('a new one', 'a'), ended(1))
  t.same(
    series.read('tool', undefined, 60, 8).items.map(({ tenant }) => tenant),
    ['a new one'],
    'those of an hour ago make room'
  )
})

t.test('what a person decides, or has to do first, is no error', async (t) => {
  const series = createSeries(Date)
  for (const outcome of ['cancelled', 'connect_required', 'declined', 'result_too_large', 'denied', 'ok'] as const)
    series.meter.callEnded(callOf('acme', 'a'), ended(5, outcome))
  const { total } = series.read('tenant', undefined, 60, 8)
  t.same([sum(total.calls), sum(total.errors), sum(total.toolErrors)], [6, 2, 0])
})

t.test(
  'what is wrong is told in sentences: an upstream that is away, a limit that refuses, a kill switch',
  async (t) => {
    const [upstream, older] = await Promise.all([startUpstream(), startSseUpstream()])
    for (const each of [upstream, older]) t.teardown(() => each.close())
    const away = await freePort()
    const made = await adminGateway(t, {
      upstreams: {
        up: { type: 'http', url: upstream.url },
        older: { type: 'http', url: older.url },
        named: { type: 'sse', url: `http://127.0.0.1:${away}/mcp` },
        tickets: { type: 'http', url: `http://127.0.0.1:${away}/mcp` },
        noisy: { command: process.execPath, args: [join(import.meta.dirname, '../kit/stdio-server.ts')] }
      },
      callLimits: { few: { per: ['principal'], what: { names: ['echo'], kinds: ['tool'] }, perMinute: 1 } }
    })
    const read = async (key?: string): Promise<Problems['items']> => {
      const answer = await made.call('GET', '/v1/problems', key === undefined ? {} : { key })
      t.equal(answer.status, 200, answer.text)
      return (answer.json as Problems).items
    }
    t.same(await read(adminKeys.globex), [], 'nothing is wrong with another tenant')
    const ada = await legacyClient(made.url(), apiKey)
    await ada.request('tools/list')
    const found = await until('the upstream is told', async () =>
      (await read()).find(({ upstream: name }) => name === 'tickets')
    )
    t.match(found, {
      kind: 'upstream',
      severity: 'fault',
      tenant: 'acme',
      since: /^20/,
      sentence: /^tickets of acme: down for \d+ s, \d+ calls failed; last error: .*; it is tried again in /,
      remedy: /reconnect/
    })
    await ada.request('tools/call', { name: 'tickets__find', arguments: {} })
    const failed = (await read()).find(({ upstream: name }) => name === 'tickets')
    t.equal(failed?.['id'], found['id'], 'it is the same problem')
    t.match(failed, { count: 1, sentence: /: down for \d+ s, 1 call failed;/ }, 'of one that listed nothing yet, too')
    await ada.request('tools/call', { name: 'noisy__raw', arguments: { text: 'one\ntwo\n' } })
    const noisy = (await read()).find(({ upstream: name }) => name === 'noisy')
    t.match(noisy, { severity: 'warning', count: 2, sentence: /^noisy of acme writes .* 2 lines that are no messages/ })
    const upstreams = await until('all are known', async () => {
      const { json } = await made.call('GET', '/v1/tenants/acme/upstreams', { key: adminKeys.viewer })
      const { items } = json as { items: Array<Record<string, unknown>> }
      return items.every(({ name, transport }) => name === 'tickets' || transport !== null) ? items : undefined
    })
    t.strictSame(
      upstreams.map(({ name, transport, strayLines }) => [name, transport, strayLines]),
      [
        ['named', 'sse', null],
        ['noisy', 'stdio', 2],
        ['older', 'sse', null],
        ['tickets', null, null],
        ['up', 'streamable-http', null]
      ],
      'over which transport each is spoken to'
    )
    const viewed = (await read(adminKeys.viewer)).find(({ kind }) => kind === 'upstream')
    t.notMatch(viewed?.['sentence'], /last error/, 'what a server said is for administrators')
    t.match(viewed?.['remedy'], /an administrator of the tenant can have it reconnected/, 'and so is what they may do')
    for (let at = 0; at < 3; at++) await ada.request('tools/call', { name: 'up__echo', arguments: { text: 'x' } })
    t.equal((await made.call('PUT', '/v1/tenants/acme/kills/tools/up/fail')).status, 201)
    const items = await read()
    t.equal(new Set(items.map(({ id }) => id)).size, items.length, 'each has an id of its own')
    t.match(
      items.find(({ kind }) => kind === 'limit'),
      { tenant: 'acme', count: 2, sentence: /^acme: 2 requests were refused with rate_limited/ }
    )
    t.match(items.at(-1), {
      kind: 'kill',
      severity: 'notice',
      sentence: 'acme: the tool fail of up is stopped by platform.'
    })
    t.same(await read(adminKeys.globex), [])
  }
)
