// The metrics of a gateway: their names, kinds and labels as docs/metrics.md has them, what they count, and what
// nobody can put into them.

import { moveClock } from '../kit/moving-clock.ts'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { prometheusName } from '../../scripts/metrics-doc.ts'
import { instruments, type MetricName } from '../../src/observe/metrics/instruments.ts'
import { adminGateway, adminKeys, adminSection, globexKey } from '../kit/admin.ts'
import { legacyClient, send } from '../kit/client.ts'
import { listenEvents } from '../kit/events.ts'
import { configOf, key } from '../kit/gateway.ts'
import { httpSseClient } from '../kit/http-sse-client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { modernListen } from '../kit/modern-listen.ts'
import { answersTo, round } from '../kit/parking-gateway.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { samplesOf, type Sample } from './samples.ts'

const canary = 'canary-of-a-client'
const stdioServer = join(import.meta.dirname, '../kit/stdio-server.ts')

t.test('calls are counted by what they asked for and how they ended, under the names of the table', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const gateway = await adminGateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } },
    limits: { bodyBytes: 4_096 },
    policy: { default: 'allow', rules: [{ name: 'no-pid', effect: 'deny', what: { names: ['pid'] } }] }
  })
  const client = await legacyClient(gateway.url(), key)
  const call = (name: string, args = {}) => client.request('tools/call', { name, arguments: { ...args, canary } })
  await call('echo')
  await call('echo')
  await call('fail')
  await call('rpcerror', { code: 7 })
  await call('pid')
  await client.request('prompts/get', { name: 'greet', arguments: { who: canary } })
  await call(canary)
  await client.request(canary, {})
  await modernRequest(gateway.url(), 'tools/call', { name: 'echo', arguments: {} }, { token: key })
  t.equal((await send(gateway.url(), { headers: { 'x-canary': canary }, body: '{}' })).status, 401)
  const short = await legacyClient(gateway.url(), key)
  await short.request('tools/call', { name: 'echo', arguments: {} })
  await short.end()
  // A limit: nothing may be larger than this.
  const large = { headers: { ...client.headers, 'content-type': 'application/json' }, body: `"${'x'.repeat(5_000)}"` }
  t.equal((await send(gateway.url(), large)).status, 413)

  // A metric without values is not there: that of the collector's pauses has some once it has run.
  const answer = await until('the collector has run, and a connection to the upstream has ended', async () => {
    const read = await gateway.call('GET', '/metrics', { key: adminKeys.viewer })
    return ['v8js_gc_duration', 'mcp_client_session_duration'].every((name) => read.text.includes(name))
      ? read
      : undefined
  })
  t.equal(answer.status, 200)
  t.equal(answer.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
  t.notMatch(answer.text, canary)
  const samples = samplesOf(answer.text)
  const value = (name: string, labels: Readonly<Record<string, string>>): number =>
    samples
      .filter((each) => each.name === name)
      .filter((each) => Object.entries(labels).every(([label, wanted]) => (each.labels[label] ?? '') === wanted))
      .reduce((sum, each) => sum + each.value, 0)
  const served = (labels: Readonly<Record<string, string>>): number =>
    value('mcp_server_operation_duration_seconds_count', { gatehouse_tenant: 'acme', ...labels })
  const tool = (name: string, revision: string) => ({
    mcp_method_name: 'tools/call',
    gen_ai_operation_name: 'execute_tool',
    gen_ai_tool_name: name,
    gatehouse_upstream: name === '' ? '' : 'up',
    gatehouse_endpoint: 'default',
    mcp_protocol_version: revision
  })
  t.equal(served({ ...tool('echo', '2025-11-25'), gatehouse_outcome: 'ok', error_type: '' }), 3)
  t.equal(served({ ...tool('echo', '2026-07-28'), gatehouse_outcome: 'ok', error_type: '' }), 1)
  t.equal(served({ ...tool('fail', '2025-11-25'), gatehouse_outcome: 'tool_error', error_type: 'tool_error' }), 1)
  t.equal(served({ ...tool('rpcerror', '2025-11-25'), gatehouse_outcome: 'rpc_error', error_type: '7' }), 1)
  t.equal(served({ ...tool('pid', '2025-11-25'), gatehouse_outcome: 'denied', error_type: '-32602' }), 1)
  t.equal(served({ ...tool('', '2025-11-25'), error_type: '-32602', rpc_response_status_code: '-32602' }), 1)
  t.equal(served({ mcp_method_name: '_OTHER', error_type: '-32601' }), 1)
  t.equal(served({ mcp_method_name: 'initialize', gatehouse_outcome: 'ok' }), 2)
  const sent = (labels: Readonly<Record<string, string>>): number =>
    value('mcp_client_operation_duration_seconds_count', {
      gatehouse_tenant: 'acme',
      gatehouse_upstream: 'up',
      network_transport: 'tcp',
      ...labels
    })
  t.equal(sent({ gen_ai_tool_name: 'echo', error_type: '', mcp_protocol_version: '2025-11-25' }), 4)
  const greeted = { mcp_method_name: 'prompts/get', gen_ai_prompt_name: 'greet', gen_ai_tool_name: '' }
  t.equal(sent({ ...greeted, mcp_protocol_version: '2025-11-25', error_type: '' }), 1)
  t.equal(served({ ...greeted, gatehouse_outcome: 'ok' }), 1)
  t.equal(sent({ gen_ai_tool_name: 'fail', error_type: 'tool_error' }), 1)
  t.equal(sent({ gen_ai_tool_name: 'rpcerror', error_type: '7' }), 1)
  t.equal(value('gatehouse_requests_refused_total', { gatehouse_reason: 'unauthenticated', gatehouse_tenant: '' }), 1)
  t.equal(value('gatehouse_upstream_available_ratio', { gatehouse_upstream: 'up', gatehouse_tenant: 'acme' }), 1)
  t.ok(value('gatehouse_upstream_connections', { gatehouse_upstream: 'up' }) > 0)
  t.equal(value('gatehouse_sessions', {}), 1)
  const ended = { gatehouse_tenant: 'acme', mcp_protocol_version: '2025-11-25', gatehouse_endpoint: 'default' }
  t.equal(value('mcp_server_session_duration_seconds_count', ended), 1)
  const closed = { gatehouse_upstream: 'up', network_transport: 'tcp', error_type: '' }
  t.ok(value('mcp_client_session_duration_seconds_count', closed) >= 1)
  for (const name of ['set', 'addMember', 'removeMember']) {
    const written = { db_system_name: 'sqlite', db_operation_name: name, error_type: '' }
    t.ok(value('db_client_operation_duration_seconds_count', written) >= 1, name)
  }
  t.equal(value('gatehouse_limits_hit_total', { gatehouse_reason: 'too_large', gatehouse_tenant: 'acme' }), 1)
  const asked = (cache: string, result: string): number =>
    value('gatehouse_cache_requests_total', { gatehouse_cache: cache, gatehouse_result: result })
  t.ok(asked('credentials', 'hit') > 0 && asked('credentials', 'miss') > 0 && asked('catalogs', 'miss') > 0)
  t.equal(value('gatehouse_upstream_silent_ratio', { gatehouse_upstream: 'up' }), 0)
  t.equal(value('gatehouse_tenants', {}), 2)
  for (const name of ['process_memory_usage_bytes', 'gatehouse_memory_budget_bytes', 'v8js_memory_heap_used_bytes'])
    t.ok(value(name, {}) > 1_000_000, name)
  judgeContract(t, answer.text, samples)
  const headers = { Accept: 'application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2' }
  const open = await gateway.call('GET', '/metrics', { key: adminKeys.viewer, headers })
  t.equal(open.headers['content-type'], 'application/openmetrics-text; version=1.0.0; charset=utf-8')
  t.match(open.text, /^# TYPE gatehouse_requests_refused counter\ngatehouse_requests_refused_total\{.*\} 1$/m)
  t.match(open.text, /^# TYPE target info\ntarget_info\{.*\} 1$[^]*\n# EOF\n$/m)
  t.notMatch(open.text, 'trace_id', 'no trace is sent anywhere')

  const zipped = await fetch(`${gateway.adminUrl}/metrics`, {
    headers: { authorization: `Bearer ${adminKeys.viewer}`, 'accept-encoding': 'gzip' }
  })
  t.equal(zipped.headers.get('content-encoding'), 'gzip')
  t.match(await zipped.text(), /^gatehouse_tenants(?:\{[^}]*\})? 2$/m)
  for (const [path, key] of [['/metrics', adminKeys.viewer], ['/reference'], ['/console/main.js']]) {
    const encoded = async (accepted: string) => {
      const sent = { 'accept-encoding': accepted, ...(key !== undefined && { authorization: `Bearer ${key}` }) }
      const answer = await fetch(`${gateway.adminUrl}${path}`, { headers: sent })
      t.equal(answer.status, 200)
      await answer.text()
      return answer.headers.get('content-encoding')
    }
    t.equal(await encoded('gzip;q=0.5, identity'), 'gzip', `the control: ${path}`)
    t.equal(await encoded('identity;q=0.5, *'), path === '/console/main.js' ? 'br' : 'gzip')
    for (const none of ['gzip;q=0', 'gzip; Q=0.000, identity', 'br;q=0, *;q=0', 'identity', 'x-gzip'])
      t.equal(await encoded(none), null, `${path} for ${none}`)
  }

  t.equal((await gateway.call('GET', '/metrics', { key: adminKeys.globexViewer })).status, 403)
})

t.test('a call that runs and an upstream that is away can be seen', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const gateway = await adminGateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url }, gone: { type: 'http', url: 'http://127.0.0.1:1/mcp' } },
    endpoints: { default: { upstreams: ['up', 'gone'] } }
  })
  const stop = new AbortController()
  const options = { token: key, signal: stop.signal }
  const params = { name: 'up__slow', arguments: { ms: 600_000 } }
  const running = modernRequest(gateway.url(), 'tools/call', params, options).catch(() => undefined)
  const value = async (name: string, labels: string): Promise<number | undefined> => {
    const { text } = await gateway.call('GET', '/metrics')
    return samplesOf(text).find((each) => each.name === name && JSON.stringify(each.labels) === labels)?.value
  }
  const acme = '{"gatehouse_tenant":"acme"}'
  const upstreamLabels = (name: string): string => `{"gatehouse_tenant":"acme","gatehouse_upstream":"${name}"}`
  await until('the call runs', async () => (await value('gatehouse_calls_running', acme)) === 1)
  await until('at its upstream', async () => (await value('gatehouse_upstream_calls', upstreamLabels('up'))) === 1)
  await until(
    'one is away',
    async () => (await value('gatehouse_upstream_available_ratio', upstreamLabels('gone'))) === 0
  )
  const nameOfCaller = { name: 'gone__made-up', arguments: {} }
  const lost = await modernRequest(gateway.url(), 'tools/call', nameOfCaller, { token: key })
  t.equal(lost.json.error.data.reason, 'upstream_unavailable')
  const counted = samplesOf((await gateway.call('GET', '/metrics')).text)
    .filter(({ name }) => name === 'mcp_server_operation_duration_seconds_count')
    .map(({ labels }) => labels)
  t.ok(counted.some((each) => each['gatehouse_upstream'] === 'gone' && each['gen_ai_tool_name'] === undefined))
  t.notMatch(JSON.stringify(counted), 'made-up')
  stop.abort()
  await running
  await until('the call is over', async () => (await value('gatehouse_calls_running', acme)) === 0)
})

t.test('what the processes of a tenant take is told, and a call that waits there for its client', async (t) => {
  const upstreams = { pipe: { command: process.execPath, args: [stdioServer] } }
  const gateway = await adminGateway(t, { upstreams, endpoints: { default: { upstreams: ['pipe'] } } })
  const client = await legacyClient(gateway.url(), key)
  await client.request('tools/list', {})
  await until('a look was taken at them', async () => {
    const { text } = await gateway.call('GET', '/metrics')
    const told = samplesOf(text).find(({ name }) => name === 'gatehouse_processes_memory_bytes')
    return told?.labels['gatehouse_tenant'] === 'acme' && told.value > 1_000_000
  })
  const parked = async (): Promise<number | undefined> => {
    const { text } = await gateway.call('GET', '/metrics')
    return samplesOf(text).find(({ name }) => name === 'gatehouse_calls_parked')?.value
  }
  t.equal(await parked(), 0)
  const params = { name: 'pipe__elicit', arguments: {} }
  const asked = await round(gateway.url(), 'tools/call', params)
  t.match(asked.result, { resultType: 'input_required' })
  t.equal(await parked(), 1)
  const { inputRequests, requestState } = asked
  const answers = { requestState, inputResponses: answersTo(inputRequests) }
  t.match((await round(gateway.url(), 'tools/call', { ...params, ...answers })).result, { resultType: 'complete' })
  t.equal(await parked(), 0)
})

t.test('streams of every revision are counted while they are open', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const gateway = await adminGateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'] } }
  })
  const streams = async (): Promise<number | undefined> => {
    const { text } = await gateway.call('GET', '/metrics', { key: adminKeys.metrics })
    return samplesOf(text).find(({ name }) => name === 'gatehouse_streams')?.value
  }
  t.equal(await streams(), 0)
  const client = await legacyClient(gateway.url(), key)
  const listening = await listenEvents(gateway.url(), client)
  await until('that of a session', async () => (await streams()) === 1)
  const subscribed = await modernListen(gateway.url(), { toolsListChanged: true }, { token: key })
  await until('that of subscriptions/listen', async () => (await streams()) === 2)
  const old = await httpSseClient(gateway.url(), key)
  await until('that of HTTP+SSE', async () => (await streams()) === 3)
  subscribed.close()
  old.response.destroy()
  await until('it is measured', async () => {
    const samples = samplesOf((await gateway.call('GET', '/metrics')).text)
    return samples.some(
      ({ name, labels, value }) =>
        name === 'mcp_server_session_duration_seconds_count' &&
        labels['mcp_protocol_version'] === '2024-11-05' &&
        value === 1
    )
  })
  await client.end()
  await until('none is left', async () => (await streams()) === 0)
  listening.cut()
})

t.test('what a caller has not connected is no upstream, whatever names it invents there', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const gateway = await adminGateway(t, {
    upstreams: {
      up: { type: 'http', url: upstream.url },
      notes: { type: 'http', url: 'https://notes.example/mcp', auth: { type: 'userSecret', header: 'X-Key' } }
    },
    endpoints: { default: { upstreams: ['up', 'notes'] } },
    top: { vault: { keys: [{ id: '1', key: Buffer.alloc(32, 7).toString('base64') }] } }
  })
  const client = await legacyClient(gateway.url(), key)
  for (let at = 0; at < 220; at++) {
    const { json } = await client.request('tools/call', { name: `notes__${canary}-${at}`, arguments: {} })
    t.match(json, { result: { isError: true } })
  }
  await client.request('tools/call', { name: `notes__${canary}${'x'.repeat(900_000)}`, arguments: {} })
  t.match((await client.request('tools/call', { name: 'up__echo', arguments: {} })).json, { result: {} })
  await client.end()
  const { text } = await gateway.call('GET', '/metrics')
  t.notMatch(text, canary)
  const calls = samplesOf(text).filter(({ labels }) => labels['mcp_method_name'] === 'tools/call')
  const counted = (name: string, upstream: string) =>
    calls.find((each) => each.name === `${name}_count` && each.labels['gatehouse_upstream'] === upstream)
  t.match(counted('mcp_server_operation_duration_seconds', 'notes'), {
    value: 221,
    labels: { gatehouse_outcome: 'connect_required' }
  })
  for (const metric of ['server', 'client'])
    t.match(counted(`mcp_${metric}_operation_duration_seconds`, 'up')?.labels, { gen_ai_tool_name: 'echo' })
  t.equal(counted('mcp_client_operation_duration_seconds', 'notes'), undefined, 'nothing was sent')
})

t.test('a session that is left to expire is counted, for as long as it was used', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const gateway = await adminGateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'] } },
    limits: { sessionIdleMs: 1_000 }
  })
  const read = async (part: string): Promise<number | undefined> =>
    samplesOf((await gateway.call('GET', '/metrics')).text).find(
      ({ name }) => name === `mcp_server_session_duration_seconds_${part}`
    )?.value
  let [opened, usedMs] = [0, 0]
  // One that a slow machine leaves unused for too long expires meanwhile: then the next one is looked at.
  await until('a session is open while the others are counted', async () => {
    const began = performance.now()
    opened++
    const client = await legacyClient(gateway.url(), key).catch(() => undefined)
    const counted = (await read('count')) ?? 0
    const isOpen = (await client?.request('tools/list'))?.status === 200
    usedMs += performance.now() - began
    if (isOpen) t.ok(counted < opened, 'it is not counted')
    return isOpen
  })
  await until('it is counted', async () => (await read('count')) === opened)
  const seconds = (await read('sum')) ?? Infinity
  t.ok(seconds * 1_000 <= usedMs, `${seconds} s of ${usedMs} ms, without the time until it expired`)
})

t.test('the names of too many tools are counted together', async (t) => {
  const tools = Array.from({ length: 220 }, (_, at) => ({ name: `tool-${at}`, inputSchema: { type: 'object' } }))
  const upstream = await startUpstream({ tools })
  t.teardown(() => upstream.close())
  const gateway = await adminGateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } }
  })
  for (const { name } of tools) await modernRequest(gateway.url(), 'tools/call', { name }, { token: key })
  const { text } = await gateway.call('GET', '/metrics')
  const counts = samplesOf(text).filter(
    ({ name, labels }) =>
      name === 'mcp_server_operation_duration_seconds_count' && labels['mcp_method_name'] === 'tools/call'
  )
  const total = counts.reduce((sum, each) => sum + each.value, 0)
  t.equal(total, tools.length)
  t.ok(new Set(counts.map(({ labels }) => labels['gen_ai_tool_name'])).size <= 201)
  t.ok((counts.find(({ labels }) => labels['gen_ai_tool_name'] === 'other')?.value ?? 0) >= 20)
})

t.test('a tool that is added later has its name once another one was not called for a while', async (t) => {
  const tools = Array.from({ length: 205 }, (_, at) => ({ name: `tool-${at}`, inputSchema: { type: 'object' } }))
  const upstream = await startUpstream({ tools })
  t.teardown(() => upstream.close())
  const gateway = await adminGateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } }
  })
  const call = (name: string) => modernRequest(gateway.url(), 'tools/call', { name }, { token: key })
  const names = async (): Promise<ReadonlyMap<string | undefined, number>> => {
    const { text } = await gateway.call('GET', '/metrics')
    const counts = samplesOf(text).filter(({ name }) => name === 'mcp_server_operation_duration_seconds_count')
    return new Map(counts.map(({ labels, value }) => [labels['gen_ai_tool_name'], value]))
  }
  for (const { name } of tools) await call(name)
  const full = await names()
  t.equal(full.get('other'), 5)
  t.equal(full.get('tool-204'), undefined)
  // Ten minutes make room; the calls before took some of them.
  moveClock(300_000)
  t.teardown(() => moveClock(0))
  await call('tool-3')
  await call('tool-204')
  t.equal((await names()).get('tool-204'), undefined, 'nothing makes room too early')
  moveClock(700_000)
  await call('tool-204')
  const later = await names()
  t.equal(later.get('tool-204'), 1)
  t.equal(later.get('tool-3'), 2, 'what was called stays, with its count')
  t.equal(later.get('tool-4'), undefined)
})

/** Nothing but what the table has, and each with no other labels than it has there. */
function judgeContract(t: Test, text: string, samples: readonly Sample[]): void {
  const known = new Map<string, { readonly kind: string; readonly labels: ReadonlySet<string> }>()
  for (const name of Object.keys(instruments) as MetricName[]) {
    const { kind, attributes } = instruments[name]
    const type =
      kind === 'histogram'
        ? kind
        : kind.toLowerCase().endsWith('counter') && kind !== 'upDownCounter'
          ? 'counter'
          : 'gauge'
    known.set(prometheusName(name), {
      kind: type,
      labels: new Set(attributes.map((each) => each.replaceAll('.', '_')))
    })
  }
  const typed = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', kind = '']) => [name, kind] as const)
  for (const [name, kind] of typed) if (name !== 'target_info') t.equal(known.get(name)?.kind, kind, `kind of ${name}`)
  t.same(
    [...known.keys()].filter((name) => !typed.some(([each]) => each === name)),
    ['gatehouse_telemetry_dropped_total', 'gatehouse_processes_memory_bytes'],
    'all are there; no collector has missed anything, and no process runs'
  )
  const wrong = samples.flatMap(({ name, labels }) => {
    if (name === 'target_info') return []
    const row = known.get(name) ?? known.get(name.replace(/_(?:bucket|sum|count)$/, ''))
    return Object.keys(labels).flatMap((label) =>
      label === 'le' || row?.labels.has(label) ? [] : [`${name} ${label}`]
    )
  })
  t.same(wrong, [], 'no other labels')
}

t.test('a tenant that leaves the configuration leaves the metrics, what it was refused included', async (t) => {
  const options = { upstreams: {}, top: { admin: adminSection }, limits: { bodyBytes: 4_096 } }
  const gateway = await adminGateway(t, options)
  const tenants = { acme: key, globex: globexKey }
  for (const [tenant, token] of Object.entries(tenants)) {
    const url = gateway.url('default', tenant)
    await modernRequest(url, 'tools/list', {}, { token })
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    for (let n = 0; n < 2; n++) t.equal((await send(url, { headers, body: `"${'x'.repeat(5_000)}"` })).status, 413)
  }
  const names = ['mcp_server_operation_duration_seconds_count', 'gatehouse_requests_refused_total']
  const counted = async () =>
    samplesOf((await gateway.call('GET', '/metrics')).text)
      .filter(({ name }) => [...names, 'gatehouse_limits_hit_total'].includes(name))
      .map(({ name, labels, value }) => `${name} ${labels['gatehouse_tenant']} ${value}`)
      .sort()
  const linesOf = (...ids: string[]) =>
    ids.flatMap((id) => [`gatehouse_limits_hit_total ${id} 2`, `${names[1]} ${id} 2`, `${names[0]} ${id} 1`]).sort()
  t.same(await counted(), linesOf('acme', 'globex'))
  gateway.reload(configOf(options))
  await until('globex is gone', async () => (await counted()).length === 3)
  t.same(await counted(), linesOf('acme'), 'the other one keeps its counts')
})
