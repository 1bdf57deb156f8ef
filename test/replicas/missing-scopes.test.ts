// A call that lacks a scope is refused by its status, whichever replica its session lives at.

import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { legacyClient, type LegacyClient } from '../kit/client.ts'
import { openSse } from '../kit/http-sse-client.ts'
import { post } from '../kit/server-request.ts'
import { startUpstream } from '../kit/upstream.ts'
import { startReplicas } from './rig.ts'

const scopes = ['mcp', 'tools:write']
const upstream = await startUpstream()
t.teardown(() => upstream.close())
const rig = await startReplicas(t, {
  upstreams: { up: { type: 'http', url: upstream.url } },
  endpoints: { default: { upstreams: ['up'], prefix: '' } },
  auth: {
    keys: [
      { name: 'ada', key: keyOf.ada, scopes },
      { name: 'bob', key: keyOf.bob, scopes: ['mcp'] }
    ]
  },
  policy: {
    default: 'allow',
    rules: [{ name: 'write', effect: 'requires', what: { names: ['echo'] }, scopes: ['tools:write'] }]
  }
})
const ask = (node: number, client: LegacyClient, name: string) =>
  post(rig.at(node), client, { id: `${name} at ${node}`, method: 'tools/call', params: { name, arguments: {} } })

for (const node of [0, 1, 2])
  t.test(`of a session at replica 0: a call at replica ${node} is refused by a 403 that names the scope`, async (t) => {
    const [ada, bob] = await Promise.all([keyOf.ada, keyOf.bob].map((key) => legacyClient(rig.at(0), key)))
    const calls = upstream.server.calls('echo')
    const { status, headers, json } = await ask(node, bob as LegacyClient, 'echo')
    t.equal(status, 403)
    t.match(headers['www-authenticate'], /^Bearer error="insufficient_scope".* scope="tools:write"/)
    t.match(json, { error: { data: { reason: 'insufficient_scope', scopes: ['tools:write'] } } })
    t.equal(upstream.server.calls('echo'), calls, 'the upstream is not asked')
    t.match(await ask(node, bob as LegacyClient, 'pid'), { status: 200, json: { result: {} } })
    t.match(await ask(node, ada as LegacyClient, 'echo'), { status: 200, json: { result: {} } })
    t.equal(upstream.server.calls('echo'), calls + 1)
  })

t.test('HTTP+SSE has no status for one message: the error on the stream names the scope', async (t) => {
  const client = await openSse(rig.url('t/acme/sse'), keyOf.bob)
  const clientInfo = { name: 'raw', version: '1' }
  await client.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
  await client.notify('notifications/initialized')
  for (let n = 0; n < 3; n++) {
    const refused = await client.request('tools/call', { name: 'echo', arguments: {} })
    t.match(refused, { error: { data: { reason: 'insufficient_scope', scopes: ['tools:write'] } } })
    t.match(await client.request('tools/call', { name: 'pid', arguments: {} }), { result: {} })
  }
  client.close()
})
