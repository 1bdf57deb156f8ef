// What is in the body: requests, notifications, responses, and what is none of them. Every refusal: right status, code,
// and id or none.

import t from 'tap'
import { acmeGateway, keyOf } from '../../kit/acme-gateway.ts'
import { legacyClient, send } from '../../kit/client.ts'

t.test('notifications and responses are accepted with 202 and no body', async (t) => {
  const acme = await acmeGateway(t)
  const { headers } = await legacyClient(acme.url(), keyOf.ada)
  for (const body of [
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
    '{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":{"_meta":{}}}',
    '{"jsonrpc":"2.0","method":"notifications/of/the/future","params":{"x":1}}',
    '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled"}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{},"reason":[]}}',
    '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}',
    '{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}'
  ]) {
    const answer = await send(acme.url(), { headers, body })
    t.equal(answer.status, 202, body)
    t.equal(answer.text, '')
    t.notOk(answer.headers['content-type'])
  }
  t.equal(acme.upstream.server.calls('echo'), 0, 'a call without an id is not run')
})

t.test('a response to what was not asked is refused', async (t) => {
  const acme = await acmeGateway(t)
  const { headers } = await legacyClient(acme.url(), keyOf.ada)
  for (const body of [
    '{"jsonrpc":"2.0","id":"never asked","result":{}}',
    '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}'
  ])
    t.match(await send(acme.url(), { headers, body }), {
      status: 400,
      json: { error: { code: -32600, data: { reason: 'invalid_request' } } }
    })
})

t.test('what is not JSON is a parse error with the id null', async (t) => {
  const acme = await acmeGateway(t)
  const { headers } = await legacyClient(acme.url(), keyOf.ada)
  for (const body of [
    '',
    ' ',
    '{',
    '{"jsonrpc":"2.0","id":1,"method":"ping"',
    '{"jsonrpc":"2.0","id":1,"method":"ping"}{}',
    '{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,"method":"ping"}',
    "{'jsonrpc':'2.0'}",
    '{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
    '{"jsonrpc":"2.0","id":1,"method":"ping",}',
    '/* */{"jsonrpc":"2.0","id":1,"method":"ping"}',
    'undefined',
    '{"a":01}',
    '{"a":"\t"}',
    '{"a":"\\x"}'
  ]) {
    const answer = await send(acme.url(), { headers, body })
    t.equal(answer.status, 400, JSON.stringify(body))
    t.equal(answer.json.error.code, -32700)
    t.equal(answer.json.id, null)
  }
})

t.test('JSON that is no message is an invalid request', async (t) => {
  const acme = await acmeGateway(t)
  const { headers } = await legacyClient(acme.url(), keyOf.ada)
  for (const body of [
    'null',
    'true',
    '7',
    '"ping"',
    '[]',
    '[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    '{}',
    '{"id":1,"method":"ping"}',
    '{"jsonrpc":"1.0","id":1,"method":"ping"}',
    '{"jsonrpc":2.0,"id":1,"method":"ping"}',
    '{"jsonrpc":"2.0","id":1}',
    '{"jsonrpc":"2.0","id":1,"method":7}',
    '{"jsonrpc":"2.0","id":1,"method":null}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":null}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":12345678901234567890}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}',
    '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}',
    '{"jsonrpc":"2.0","result":{}}',
    '{"jsonrpc":"2.0","id":1,"result":7}',
    '{"jsonrpc":"2.0","id":1,"error":"x"}',
    '{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":"x"}}'
  ]) {
    const answer = await send(acme.url(), { headers, body })
    t.equal(answer.status, 400, body)
    t.equal(answer.json.error.code, -32600)
    t.equal(answer.json.jsonrpc, '2.0')
  }
})

t.test('the id of a request comes back as it was, with its JSON type', async (t) => {
  const acme = await acmeGateway(t)
  const { headers } = await legacyClient(acme.url(), keyOf.ada)
  for (const id of [
    '1',
    '"1"',
    '0',
    '-1',
    '9007199254740991',
    '-9007199254740991',
    '"ünïcode \\u0000 \\ud83d\\ude00"',
    `"${'x'.repeat(1024)}"`,
    '"__proto__"'
  ]) {
    const answer = await send(acme.url(), { headers, body: `{"jsonrpc":"2.0","id":${id},"method":"ping"}` })
    t.equal(answer.status, 200, id.slice(0, 40))
    t.same(answer.json, { jsonrpc: '2.0', id: JSON.parse(id), result: {} })
  }
  const unknown = await send(acme.url(), { headers, body: '{"jsonrpc":"2.0","id":"x","method":"no/such"}' })
  t.match(unknown.json, { jsonrpc: '2.0', id: 'x', error: { code: -32601, message: 'Method not found: no/such' } })
  t.equal(unknown.status, 200, 'never 404: a client of this era would take its session for lost')
})

t.test(
  'methods of the specification that this endpoint does not offer, and those that no revision knows',
  async (t) => {
    const acme = await acmeGateway(t)
    const client = await legacyClient(acme.url(), keyOf.ada)
    for (const method of [
      'tasks/list',
      'server/discover',
      'subscriptions/listen',
      'sampling/createMessage',
      'elicitation/create',
      'roots/list',
      'rpc.discover',
      '__proto__',
      'constructor',
      'Tools/List',
      'tools/list/',
      'tools/call\0',
      '',
      '工具',
      'm'.repeat(10_000)
    ]) {
      const answer = await client.request(method)
      t.equal(answer.status, 200, method.slice(0, 30))
      t.equal(answer.json.error.code, -32601)
      t.ok(answer.json.error.message.length < 300, 'what is long is not echoed whole')
    }
  }
)

t.test('parameters of the wrong shape', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  for (const [method, params] of [
    ['tools/call', undefined],
    ['tools/call', {}],
    ['tools/call', { name: 7 }],
    ['tools/call', { name: ['echo'] }],
    ['tools/call', { name: 'nope' }],
    ['tools/call', { name: 'echo', arguments: 'x' }],
    ['tools/call', { name: 'echo', arguments: [] }],
    ['tools/call', { name: 'echo', arguments: null }],
    ['tools/call', { Name: 'echo' }],
    ['prompts/get', {}],
    ['prompts/get', { name: 'nope' }],
    ['resources/read', {}],
    ['resources/read', { uri: null }],
    ['completion/complete', {}],
    ['completion/complete', { ref: 'x' }],
    ['completion/complete', { ref: { type: 'ref/prompt' } }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'nope' } }],
    ['completion/complete', { ref: { type: 'ref/other' } }],
    ['logging/setLevel', {}],
    ['logging/setLevel', { level: 'loud' }],
    ['logging/setLevel', { level: 3 }],
    ['tools/list', { cursor: 'bogus' }],
    ['tools/list', { cursor: '' }],
    ['tools/list', { cursor: 0 }],
    ['resources/list', { cursor: btoa('after:nope') }],
    ['prompts/list', { cursor: null }]
  ] as const) {
    const answer = await client.request(method, params)
    t.equal(answer.status, 200, `${method} ${JSON.stringify(params)}`)
    t.equal(answer.json.error?.code, -32602)
    t.equal(answer.json.error?.data?.reason, 'invalid_params')
  }
  t.equal(acme.upstream.server.calls('echo'), 0)
  t.match((await client.request('tools/call', { name: 'echo', arguments: { a: 1 } })).json.result, {
    structuredContent: { arguments: { a: 1 } }
  })
})
