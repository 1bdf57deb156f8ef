// Attack: JSON nested so deeply that parsing or serialising it would overflow the stack.

import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient, send } from '../kit/client.ts'

t.test('deep JSON is refused at once, wherever it stands', async (t) => {
  const acme = await acmeGateway(t)
  const { headers } = await legacyClient(acme.url(), keyOf.ada)
  const post = (body: string) => send(acme.url(), { headers, body })
  // Three levels are around `arguments`.
  const call = (depth: number, open = '[', close = ']') =>
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":${open.repeat(depth)}1${close.repeat(depth)}}}}`

  const deepest = await post(call(61))
  t.equal(deepest.status, 200, '64 levels pass')
  t.ok(deepest.json.result)
  for (const body of [
    call(62),
    call(62, '{"a":', '}'),
    call(200_000),
    '['.repeat(200_000),
    '{"a":'.repeat(200_000),
    '['.repeat(2_000_000),
    `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`
  ]) {
    const start = performance.now()
    const answer = await post(body)
    t.equal(answer.status, 400, `${body.slice(0, 20)}… of ${body.length}`)
    t.equal(answer.json.error.code, -32600)
    t.ok(performance.now() - start < 10_000)
  }
  t.equal(acme.upstream.server.calls('echo'), 1)
  t.notOk(acme.log.some(({ level }) => Number(level) >= 50))
  t.equal((await post('{"jsonrpc":"2.0","id":1,"method":"ping"}')).status, 200)
})

t.test('a deeply nested answer of an upstream is an error for its own call only', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  acme.upstream.override(
    ({ message }) => message?.['method'] === 'tools/call',
    (response, { message }) => {
      response
        .setHeader('Content-Type', 'application/json')
        .end(
          `{"jsonrpc":"2.0","id":${Number(message?.['id'])},"result":{"content":[],"deep":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`
        )
    }
  )
  const answer = await client.request('tools/call', { name: 'echo' })
  t.equal(answer.status, 200)
  t.match(answer.json, { id: 1, error: { code: -32603, data: { reason: 'upstream_protocol' } } })
  t.ok((await client.request('tools/call', { name: 'echo' })).json.result)
})
