// Attack: a message that two parsers read differently: duplicate keys, odd spellings, ids beyond the safe integers.
// What was judged is what the upstream gets, or it is refused.

import fc from 'fast-check'
import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient, send } from '../kit/client.ts'
import { until } from '../kit/until.ts'

t.test('of duplicate keys one is read, here and upstream', async (t) => {
  const acme = await acmeGateway(t)
  const { headers } = await legacyClient(acme.url(), keyOf.ada)
  const post = (body: string) => send(acme.url(), { headers, body })
  const last = () => acme.upstream.seen.findLast(({ message }) => message?.['method'] === 'tools/call')?.message

  const twoNames = await post(
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fail","name":"echo","arguments":{"a":1,"a":2}}}'
  )
  t.equal(twoNames.json.result.structuredContent.arguments.a, 2)
  t.match(last(), { params: { name: 'echo', arguments: { a: 2 } } })
  t.equal(acme.upstream.server.calls('fail'), 0)
  const called = () => acme.log.find(({ msg, method }) => msg === 'call' && method === 'tools/call')
  const line = await until('its line in the log', called)
  t.match(line, { tool: 'echo' }, 'the log says what was called')

  const twoMethods = await post(
    '{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","method":"ping","params":{"name":"fail"}}'
  )
  t.same(twoMethods.json, { jsonrpc: '2.0', id: 2, result: {} })
  const twoParams = await post(
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fail"},"params":{"name":"echo"}}'
  )
  t.ok(twoParams.json.result.structuredContent)
  t.equal(acme.upstream.server.calls('fail'), 0)
})

t.test('another spelling of a member is another member', async (t) => {
  const acme = await acmeGateway(t)
  const { headers } = await legacyClient(acme.url(), keyOf.ada)
  const post = (body: string) => send(acme.url(), { headers, body })
  for (const member of ['Method', 'METHOD', 'ID', 'Params', 'JSONRPC', 'method\\u0000', ' method', 'мethod']) {
    t.equal((await post(`{"jsonrpc":"2.0","id":1,"method":"ping","${member}":"tools/call"}`)).status, 400, member)
  }
  t.same(
    (await post('{"jsonrpc":"2.0","id":1,"\\u006dethod":"ping"}')).json,
    { jsonrpc: '2.0', id: 1, result: {} },
    'while an escaped one is the same'
  )
  const nested = await post(
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"fail","NAME":"fail","name":"echo","Arguments":{"x":1}}}'
  )
  t.ok(nested.json.result, 'further down they pass along, and do not count')
  t.equal(acme.upstream.server.calls('fail'), 0)
  t.equal(
    (await post('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"echo"}}')).json.error.code,
    -32602
  )
})

t.test('an id that would change its value on the way is refused', async (t) => {
  const acme = await acmeGateway(t)
  const { headers } = await legacyClient(acme.url(), keyOf.ada)
  for (const id of [
    'null',
    'true',
    '{}',
    '[]',
    '1.5',
    '-0',
    '1e400',
    '-1e400',
    '9007199254740992',
    '9007199254740993',
    '-9007199254740993',
    '123456789012345678901234567890',
    '1e16',
    `"${'x'.repeat(1025)}"`
  ]) {
    const answer = await send(acme.url(), {
      headers,
      body: `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo"}}`
    })
    t.equal(answer.status, 400, id.slice(0, 30))
    t.equal(answer.json.error.code, -32600)
    t.notOk('id' in answer.json)
  }
  t.equal(acme.upstream.server.calls('echo'), 0)
  for (const [id, same] of [
    ['1', 1],
    ['"1"', '1'],
    ['1.0', 1],
    ['1e2', 100],
    ['9007199254740991', 9007199254740991]
  ] as const) {
    t.equal(
      (await send(acme.url(), { headers, body: `{"jsonrpc":"2.0","id":${id},"method":"ping"}` })).json.id,
      same,
      id
    )
  }
})

t.test('arguments reach the upstream as they were sent, whatever they are', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ maxDepth: 8 }), { maxKeys: 5 }),
      async (args) => {
        await client.request('tools/call', { name: 'echo', arguments: args })
        const seen = acme.upstream.seen.findLast(({ message }) => message?.['method'] === 'tools/call')?.message as {
          params: { arguments: unknown }
        }
        t.same(seen.params.arguments, JSON.parse(JSON.stringify(args)))
      }
    ),
    { numRuns: 60 }
  )
})
