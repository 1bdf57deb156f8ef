// The memory of long arguments is given back when they were sent, not when the call ends.

import t from 'tap'
import { createMemoryAccount } from '../../src/limits/memory.ts'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient, send } from '../kit/client.ts'
import { startModern } from '../kit/modern-server.ts'
import { until } from '../kit/until.ts'
import { isCall, isMethod } from '../kit/upstream.ts'

const text = 'x'.repeat(1_000_000)
const count = 8

for (const { sessions, server, keptBytes } of [
  { sessions: false, server: 'without sessions', keptBytes: 0 },
  // What it may be sent again, where it has forgotten the session.
  { sessions: true, server: 'with sessions keep their text only', keptBytes: text.length }
])
  t.test(`calls that run at a server ${server}, and nothing else of their arguments`, async (t) => {
    const memory = createMemoryAccount(1024 * 1024 * 1024)
    const acme = await acmeGateway(t, { overrides: { memory }, script: { sessions } })
    await acme.gateway.warm()
    const client = await legacyClient(acme.url(), keyOf.ada)
    await client.request('tools/call', { name: 'echo', arguments: {} })
    const atRest = memory.held
    const { server } = acme.upstream
    const calls = Array.from({ length: count }, (_, at) =>
      client.request('tools/call', { name: 'slow', arguments: { text, at }, _meta: { progressToken: at } })
    )
    await until('they are at the upstream', () => server.calls('slow') === count)
    const held = (): number => memory.held - atRest
    await until('little of them is held', () => held() < count * (keptBytes * 1.1 + 70_000))
    t.ok(held() >= count * keptBytes, `${held()} bytes: what is held is counted`)
    server.release()
    for (const { json, messages } of await Promise.all(calls)) {
      t.match(json, { result: { content: [{ text: 'slow is done' }] } })
      t.equal(messages.length, 2, 'progress came with the token of the client')
    }
    await until('all is given back', () => held() <= 0)
  })

/** More than is let go of at once, and different values, of which one would be missed. */
const given = { text, list: Array.from({ length: 2_000 }, (_, at) => [at]), more: { a: { b: 'c' } } }

t.test('a server that has forgotten its session is sent long arguments once more, and whole', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  await client.request('tools/call', { name: 'echo', arguments: {} })
  acme.upstream.sessions.clear()
  const { json } = await client.request('tools/call', { name: 'echo', arguments: given })
  t.equal(JSON.stringify(json?.result?.structuredContent?.arguments), JSON.stringify(given))
  t.equal(acme.upstream.seen.filter(isCall('echo')).length, 3, 'it has refused the second of them')
})

t.test('a modern server that asks to come again is sent long arguments once more, and whole', async (t) => {
  const modern = await startModern()
  t.teardown(modern.close)
  const acme = await acmeGateway(t, { upstreams: { up: { type: 'http', url: modern.url } } })
  modern.override(isMethod('tools/call'), (response, { message }) => {
    const result = { resultType: 'input_required', requestState: 'again' }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result }))
  })
  const client = await legacyClient(acme.url(), keyOf.ada)
  const { json } = await client.request('tools/call', { name: 'echo', arguments: given })
  t.equal(JSON.stringify(json?.result?.structuredContent?.arguments), JSON.stringify(given))
  t.equal(modern.seen.filter(isMethod('tools/call')).length, 2)
})

t.test('what an endpoint adds to long arguments is there for the next call too', async (t) => {
  const fixed = { place: { region: 'eu', more: { text: 'x'.repeat(20_000) } } }
  const tools = { 'up/echo': { fixed } }
  const acme = await acmeGateway(t, { endpoints: { default: { upstreams: ['up'], prefix: '', tools } } })
  const client = await legacyClient(acme.url(), keyOf.ada)
  for (let times = 0; times < 2; times++) {
    const { json } = await client.request('tools/call', { name: 'echo', arguments: given })
    t.equal(JSON.stringify(json?.result?.structuredContent?.arguments), JSON.stringify({ ...given, ...fixed }))
  }
})

t.test('long arguments of a batch are all sent, and counted until the last of its calls has ended', async (t) => {
  const memory = createMemoryAccount(1024 * 1024 * 1024)
  const acme = await acmeGateway(t, { overrides: { memory }, script: { sessions: false } })
  await acme.gateway.warm()
  const client = await legacyClient(acme.url(), keyOf.ada, '2025-03-26')
  const atRest = memory.held
  const batch = ['echo', 'slow'].map((name, id) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: given }
  }))
  const answer = send(acme.url(), { headers: client.headers, body: JSON.stringify(batch) })
  await until('the slow one is at the upstream', () => acme.upstream.server.calls('slow') === 1)
  t.ok(memory.held - atRest >= 2 * text.length, 'both are counted')
  acme.upstream.server.release()
  t.equal((await answer).status, 200)
  for (const { message } of acme.upstream.seen.filter(isMethod('tools/call')))
    t.equal(JSON.stringify((message as { params: { arguments: unknown } }).params.arguments), JSON.stringify(given))
})
