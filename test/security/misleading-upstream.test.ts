// What a server says, or a caller has it be told, does not become a misleading or an endless answer of ours.

import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { handshake, httpDefinition, recordingEvents, testConnector } from '../kit/connector.ts'
import { gateway, key } from '../kit/gateway.ts'
import { startModern } from '../kit/modern-server.ts'
import { isCall, isMethod, startUpstream } from '../kit/upstream.ts'

t.test('a session that the upstream forgot is made anew at once, and the call is sent once more', async (t) => {
  const { url, upstream } = await acmeGateway(t)
  const ada = await legacyClient(url(), keyOf.ada)
  await ada.request('tools/call', { name: 'echo', arguments: {} })
  upstream.sessions.clear()
  const { json } = await ada.request('tools/call', { name: 'echo', arguments: { n: 2 } })
  t.same(json.result?.structuredContent.arguments, { n: 2 })
  t.equal(upstream.server.calls('echo'), 2, 'executed once each')
})

for (const [how, answer] of [
  ['breaks the handshake', (response: { destroy(): void }) => response.destroy()],
  ['answers the handshake with what is none', (response: { end(text: string): void }) => response.end('hello')]
] as const) {
  t.test(`a call whose session was forgotten was not executed, also where the server ${how}`, async (t) => {
    const { url, upstream } = await acmeGateway(t)
    const ada = await legacyClient(url(), keyOf.ada)
    await ada.request('tools/call', { name: 'echo', arguments: {} })
    upstream.sessions.clear()
    upstream.override(isMethod('initialize'), answer, 100)
    const { json } = await ada.request('tools/call', { name: 'echo', arguments: { n: 2 } })
    t.equal(json.error.data.reason, 'upstream_unavailable')
    t.notOk('outcome' in json.error.data, JSON.stringify(json.error))
    t.match(json.error.message, /was not executed/)
    t.equal(upstream.server.calls('echo'), 1)
    t.equal(upstream.seen.filter(isCall('echo')).length, 2, 'it was sent once')
  })
}

t.test('arguments too long for the headers that repeat them are refused here, and nothing is sent', async (t) => {
  const upstream = await startModern()
  t.teardown(() => upstream.close())
  const { url } = await gateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } }
  })
  const client = await legacyClient(url(), key)
  const call = async (length: number) =>
    (await client.request('tools/call', { name: 'routed', arguments: { region: 'e'.repeat(length) } })).json
  t.notOk((await call(4_000)).error)
  t.equal(upstream.seen.at(-1)?.headers['mcp-param-region'], 'e'.repeat(4_000))
  const before = upstream.seen.length
  for (const length of [10_000, 200_000]) {
    const { error } = await call(length)
    t.equal(error?.code, -32602)
    t.match(error?.message, /headers .* 8192; the request was not sent/)
  }
  t.equal(upstream.seen.length, before)
})

t.test('capabilities and instructions of a server are capped, and its usual ones stay', async (t) => {
  const big = 'x'.repeat(1_000_000)
  const experimental = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`e${n}`, {}]))
  const capabilities = {
    tools: { listChanged: true },
    experimental: { big },
    [big.slice(0, 5_000)]: {},
    ...experimental
  }
  const script = { capabilities, instructions: `begin ${big}` }
  const { url } = await acmeGateway(t, { script })
  const { initialized } = await legacyClient(url(), keyOf.ada)
  t.match(initialized.json.result.capabilities.tools, { listChanged: true })
  t.match(initialized.json.result.instructions, /^begin x+/)
  t.ok(initialized.text.length < 40_000, `${initialized.text.length} characters`)

  // Each connection and listing keeps them, whatever the client is told.
  const server = await startUpstream(script)
  t.teardown(server.close)
  const connection = await testConnector().connector.connect(httpDefinition(server.url), handshake, recordingEvents())
  t.teardown(() => connection.close())
  t.ok(Object.keys(connection.capabilities).length <= 32)
  t.ok(JSON.stringify(connection.capabilities).length < 10_000)
  t.ok(String(connection.instructions).length < 20_000)

  const usual = await acmeGateway(t, { script: { instructions: 'be kind', capabilities: { tools: {}, logging: {} } } })
  const { json } = (await legacyClient(usual.url(), keyOf.ada)).initialized
  t.match(json.result, { instructions: 'be kind', capabilities: { tools: {} } })
})
