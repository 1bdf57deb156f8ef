// A real Prometheus reads the metrics of a real gateway, with a key of its own, and judges the alerts that we ship.

import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { metricsMarkdown } from '../../scripts/metrics-doc.ts'
import { ensurePrometheus } from '../../scripts/programs.ts'
import { isFailure } from '../../src/observe/outcomes.ts'
import { errorTable } from '../../src/protocol/error-table.ts'
import { createPrometheus } from '../../src/admin/series/prometheus.ts'
import { adminGateway, adminKeys, adminSection } from '../kit/admin.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { legacyClient } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { key } from '../kit/gateway.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { collector } from './collector.ts'

const { prometheus, promtool } = ensurePrometheus()
const noFailures = new Set(['ok', ...Object.keys(errorTable)].filter((each) => !isFailure(each)))
const matchers = { cluster: 'eu "west"\\' }
const alerts = new URL('../../deploy/prometheus/alerts.yml', import.meta.url).pathname

interface Answer {
  readonly data: {
    readonly result: ReadonlyArray<{ readonly value: readonly [number, string] }>
    readonly groups: ReadonlyArray<{
      readonly rules: ReadonlyArray<{ readonly name: string; readonly health: string; readonly state: string }>
    }>
  }
}

interface Counts {
  readonly calls: readonly number[]
  readonly errors: readonly number[]
}

t.test('Prometheus reads the metrics, and an upstream that is away raises its alert', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const port = await freePort()
  const gateway = await adminGateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url }, gone: { type: 'http', url: 'http://127.0.0.1:1/mcp' } },
    endpoints: { default: { upstreams: ['up', 'gone'] } },
    limits: { bodyBytes: 16_384 },
    top: {
      admin: { ...adminSection, prometheus: { url: `http://127.0.0.1:${port}`, matchers } },
      telemetry: { otlp: { endpoint: (await collector(t)).endpoint }, signals: ['traces'] }
    }
  })
  const away = await gateway.call('GET', '/v1/series/long')
  t.match(away.json, { status: 503, detail: new RegExp(`Prometheus cannot be asked: .*127\\.0\\.0\\.1:${port}`) })
  for (const path of ['/v1/series/long', '/v1/tenants/acme/series/long'])
    for (const who of [adminKeys.viewer, adminKeys.auditor, adminKeys.acme]) {
      const { status, text: told } = await gateway.call('GET', path, { key: who })
      t.equal(status, 503)
      t.notMatch(told, String(port), 'nobody else is told where it is')
    }
  const client = await legacyClient(gateway.url(), key)
  t.match((await client.request('tools/call', { name: 'up__echo', arguments: {} })).json, { result: {} })
  const traceId = gateway.log.find(({ msg, tool }) => msg === 'call' && tool === 'echo')?.['traceId']
  t.match(traceId, /^[0-9a-f]{32}$/)
  const { text } = await gateway.call('GET', '/metrics')
  t.equal(
    execFileSync(promtool, ['check', 'metrics'], { input: text, encoding: 'utf8' }),
    '',
    'promtool has no complaint'
  )

  const folder = t.testdir({
    'admin.key': adminKeys.viewer,
    'broken.yml': 'groups: [{ name: a, rules: [{ alert: b, expr: "sum(" }] }]'
  })
  const checkedRules = (file: string) => spawnSync(promtool, ['check', 'rules', file], { encoding: 'utf8' })
  t.match(checkedRules(alerts), { status: 0, stdout: /SUCCESS: \d+ rules found/ })
  t.not(checkedRules(join(folder, 'broken.yml')).status, 0, 'the control')
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: [alerts],
    scrape_configs: [
      {
        job_name: 'gatehouse',
        authorization: { credentials_file: join(folder, 'admin.key') },
        static_configs: [{ targets: [new URL(gateway.adminUrl).host], labels: matchers }]
      }
    ]
  }
  // YAML takes JSON.
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config))
  const child = spawn(
    prometheus,
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--enable-feature=exemplar-storage'
    ],
    { stdio: 'ignore' }
  )
  const exited = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const ask = async (path: string): Promise<Answer['data'] | undefined> => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`).catch(() => undefined)
    return answer?.ok === true ? ((await answer.json()) as Answer).data : undefined
  }
  const query = async (expression: string): Promise<string | undefined> =>
    (await ask(`query?query=${encodeURIComponent(expression)}`))?.result[0]?.value[1]
  await until(
    'it has read the call',
    async () => (await query('mcp_server_operation_duration_seconds_count{gen_ai_tool_name="echo"}')) === '1'
  )
  // A reading that takes more than a second has failed, and leaves nothing to ask for until the next one.
  await until('it takes the gateway for up', async () => (await query('up{job="gatehouse"}')) === '1')
  await until('it has a quantile of the call', async () => {
    const buckets = 'mcp_server_operation_duration_seconds_bucket{gen_ai_tool_name="echo"}'
    return Number(await query(`histogram_quantile(0.99, sum by (le) (${buckets}))`)) > 0
  })
  const { start, end } = { start: Date.now() / 1_000 - 3_600, end: Date.now() / 1_000 + 60 }
  const exemplars = await until('it has the trace of the call', async () => {
    const name = 'mcp_server_operation_duration_seconds_bucket{gen_ai_tool_name="echo"}'
    const answer = await fetch(
      `http://127.0.0.1:${port}/api/v1/query_exemplars?query=${encodeURIComponent(name)}&start=${start}&end=${end}`
    )
    const found = ((await answer.json()) as { data: Array<{ exemplars: Array<{ labels: object }> }> }).data
    return found.length > 0 ? found.flatMap((each) => each.exemplars) : undefined
  })
  t.match(exemplars, [{ labels: { trace_id: traceId, span_id: /^[0-9a-f]{16}$/ }, value: /^0\.\d+$/ }])
  // The console asks it by the gateway, for the tenants of whoever asks only.
  const plain = { key: adminKeys.viewer }
  t.match((await gateway.call('GET', '/v1/administrator', plain)).json, { hasLongSeries: true })
  const asked = (name: string, signal?: AbortSignal) =>
    modernRequest(gateway.url(), 'tools/call', { name, arguments: {} }, { token: key, ...(signal && { signal }) })
  const long = await until('calls are told by Prometheus', async () => {
    // Of a counter only what grows between two readings counts.
    for (const name of ['up__echo', 'up__echo', 'up__rpcerror']) await asked(name)
    t.equal((await client.request('tools/list', { fill: 'x'.repeat(20_000) })).status, 413)
    const stop = new AbortController()
    const before = upstream.server.calls('slow')
    const cancelled = asked('up__slow', stop.signal).catch(() => undefined)
    await until('the slow one is at its upstream', () => upstream.server.calls('slow') > before)
    stop.abort()
    await cancelled
    const { status, text, json } = await gateway.call('GET', '/v1/series/long?by=tool&hours=1', plain)
    t.equal(status, 200, text)
    const told = json as { total: Counts; items: Array<Counts & { tenant: string; name: string }> }
    const counted = told.items.filter(({ calls }) => calls.some((count) => count > 0))
    return counted.length === 3 ? told : undefined
  })
  t.match(long, { process: null, stepMs: 60_000, steps: 60 })
  // Which was called most is not known: what a counter began with is not told.
  const namesOf = (items: ReadonlyArray<{ readonly name: string }>): Set<string> =>
    new Set(items.map(({ name }) => name))
  t.ok(long.items.every(({ tenant }) => tenant === 'acme'))
  t.ok(namesOf(long.items).has('up/echo'))
  const hasErrors = (name: string) => long.items.find((each) => each.name === name)?.errors.some((count) => count > 0)
  t.ok(hasErrors('up/rpcerror'))
  t.equal(hasErrors('up/slow'), false, 'that it was cancelled is no error')
  t.equal(long.total.calls.length, 60)
  const reader = createPrometheus({ now: Date.now })
  const all = { url: `http://127.0.0.1:${port}`, headers: {} }
  const read = (labels: Record<string, string>) =>
    reader.read({ ...all, matchers: labels }, 'test', { by: 'tool', hours: 1, top: 5 }, undefined)
  t.ok(namesOf((await read(matchers)).items).has('up/echo'))
  for (const labels of [{ cluster: 'us' }, { ...matchers, other: 'x' }, { cluster: '"} or vector(1)' }])
    t.match(await read(labels), { items: [], total: { calls: Array.from({ length: 60 }, () => 0) } })
  const other = await gateway.call('GET', '/v1/series/long?by=tool&hours=1', { key: adminKeys.globexViewer })
  t.match(other.json, { items: [], total: { calls: Array.from({ length: 60 }, () => 0) } }, 'nothing of other tenants')
  t.equal((await gateway.call('GET', '/v1/tenants/acme/series/long', { key: adminKeys.globexViewer })).status, 404)
  // Every query of every dashboard, with a tenant and an upstream that there are, is understood and finds something.
  const folderOfBoards = new URL('../../deploy/grafana/', import.meta.url)
  const boards = readdirSync(folderOfBoards)
  t.same(boards.toSorted(), ['overview.json', 'tenant.json', 'upstream.json'])
  for (const board of boards) {
    const text = readFileSync(new URL(board, folderOfBoards), 'utf8')
    for (const [, listed = ''] of text.matchAll(/gatehouse_outcome!~\\"([^"]*)\\"/g))
      t.same(new Set(listed.split('|')), noFailures, 'as docs/metrics.md has it')
    const { panels } = JSON.parse(text) as { panels: ReadonlyArray<{ targets: ReadonlyArray<{ expr: string }> }> }
    for (const { expr } of panels.flatMap(({ targets }) => targets)) {
      const filled = expr
        .replaceAll('$__rate_interval', '1m')
        .replaceAll('$tenant', 'acme')
        .replaceAll('$upstream', 'up')
      await until(`${board}: ${filled} is answered`, async () => {
        const found = await ask(`query?query=${encodeURIComponent(filled)}`)
        return found !== undefined && found.result.length > 0
      })
    }
  }
  const rules = async () => (await ask('rules'))?.groups.flatMap((group) => group.rules) ?? []
  await until('it has judged the alerts', async () => {
    const all = await rules()
    return all.length > 0 && all.every(({ health }) => health === 'ok')
  })
  await until(
    'the upstream that is away has raised its own',
    async () => (await rules()).find(({ name }) => name === 'GatehouseUpstreamAway')?.state === 'pending'
  )
  const names = (await rules()).map(({ name }) => name)
  t.same(
    names.filter((name) => !metricsMarkdown().includes(`\n### ${name}\n`)),
    [],
    'each alert has its runbook'
  )
  const anchors = [...readFileSync(alerts, 'utf8').matchAll(/metrics\.md#(\w+)/g)].map(([, anchor]) => anchor)
  t.same(
    anchors,
    names.map((name) => name.toLowerCase())
  )
})
