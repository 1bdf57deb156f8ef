// Attack: tools and codes of errors in numbers, whose combinations all become series of metrics, by a tenant whose
// upstream makes them up. Whoever reads the metrics would hold the process up for seconds, and others would lose their
// own series.

import { get, type IncomingMessage } from 'node:http'
import t from 'tap'
import { adminCall, adminKeys, adminSection } from '../kit/admin.ts'
import { legacyClient, send } from '../kit/client.ts'
import type { Json } from '../kit/mcp-server.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { samplesOf } from '../observe/samples.ts'
import { attacked, keys } from './kit.ts'

const tools = Array.from({ length: 100 }, (_, at) => ({ name: `tool-${at}`, inputSchema: { type: 'object' } }))
/** Each with a code of its own. */
const rounds = 20
const batch = 50
/** Of one tenant; what has no names comes on top. */
const maxSeries = 1_000 + 20
const maxTurnMs = 100

t.test(
  'calls of a tenant that differ in all ways make a bounded part of the metrics, which hold nobody up',
  async (t) => {
    const upstream = await startUpstream({ tools })
    t.teardown(() => upstream.close())
    upstream.override(
      ({ message }) => message?.['method'] === 'tools/call',
      (response, { message }) => {
        const error = (message?.['params'] as Json | undefined)?.['arguments']
        response.setHeader('Content-Type', 'application/json')
        response.end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], error }))
      },
      Infinity
    )
    const gateway = await attacked(t, {
      upstreams: { hostile: { type: 'http', url: upstream.url } },
      tenant: { endpoints: { default: { upstreams: ['hostile'], prefix: '' } } },
      top: { admin: adminSection },
      watchTurns: true
    })
    const { adminUrl } = await gateway.logged('the admin API', (line) => line['adminUrl'] !== undefined)
    const client = await legacyClient(gateway.url, keys.attacker, '2025-03-26')
    for (let code = 1; code <= rounds; code++)
      for (let at = 0; at < tools.length; at += batch) {
        const calls = tools.slice(at, at + batch).map(({ name }, id) => ({
          ...{ jsonrpc: '2.0', id, method: 'tools/call' },
          params: { name, arguments: { code, message: 'no' } }
        }))
        t.equal((await send(gateway.url, { headers: client.headers, body: JSON.stringify(calls) })).status, 200)
      }
    // Whoever comes later has its own names.
    await (await gateway.neighbour()).stop()

    let text = ''
    const turnMs = await gateway.longestTurnMs(maxTurnMs, async () => {
      text = (await adminCall(String(adminUrl), 'GET', '/metrics', { key: adminKeys.viewer })).text
    })
    t.ok(turnMs < maxTurnMs, `${turnMs} ms of CPU in one turn`)
    for (const name of ['mcp_server_operation_duration_seconds_count', 'mcp_client_operation_duration_seconds_count']) {
      const samples = samplesOf(text).filter((each) => each.name === name)
      const of = (tenant: string) => samples.filter(({ labels }) => labels['gatehouse_tenant'] === tenant)
      const calls = of('acme').filter(({ labels }) => labels['mcp_method_name'] === 'tools/call')
      t.equal(
        calls.reduce((sum, { value }) => sum + value, 0),
        rounds * tools.length,
        'every call is counted'
      )
      t.ok(of('acme').length > 500 && of('acme').length <= maxSeries, `${of('acme').length} series`)
      t.ok(of('other').some(({ labels }) => labels['gen_ai_tool_name'] === 'echo'))
    }

    const unread: IncomingMessage[] = []
    const headers = { Authorization: `Bearer ${adminKeys.viewer}` }
    for (let reader = 0; reader < 4; reader++)
      get(`${String(adminUrl)}/metrics`, { agent: false, headers }, (response) => unread.push(response))
    await until('four are read', () => unread.length === 4)
    t.equal((await adminCall(String(adminUrl), 'GET', '/metrics')).status, 429)
    for (const response of unread) response.destroy()
    await until('there is room', async () => (await adminCall(String(adminUrl), 'GET', '/metrics')).status === 200)
  }
)
