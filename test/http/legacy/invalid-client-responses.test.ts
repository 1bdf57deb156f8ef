// What a client answers to a server's server request is not always an answer. A client that asked is told, and the call
// goes on.

import t from 'tap'
import { acmeGateway, keyOf } from '../../kit/acme-gateway.ts'
import { callUntilServerRequest, isServerRequest, post } from '../../kit/server-request.ts'
import { legacyClient, send } from '../../kit/client.ts'
import { httpSseClient } from '../../kit/http-sse-client.ts'

const botched = {
  'a result that is null': { result: null },
  'a result that is a number': { result: 5 },
  'an error that is a word': { error: 'no' },
  'an error without a code': { error: { message: 'no' } },
  'both a result and an error': { result: {}, error: { code: 1, message: 'x' } },
  neither: {},
  'another member beside the result': { result: {}, extra: 1 },
  'another version of JSON-RPC': { jsonrpc: '1.0', result: {} }
}
const told = { error: { code: -32603, message: 'The client answered with something that is no JSON-RPC response.' } }
const good = { role: 'assistant', content: { type: 'text', text: 'x' }, model: 'm' }

t.test('over Streamable HTTP it is refused, and ends the server request', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada, '2025-11-25', { sampling: {} })
  for (const [what, answer] of Object.entries(botched)) {
    const call = await callUntilServerRequest(acme.url(), client, 'sample', {}, what)
    const refused = await post(acme.url(), client, { id: call.serverRequest['id'], ...answer })
    t.match([refused.status, refused.json.error.code], [400, -32600], what)
    t.match(await call.result(), told)
    t.equal(
      (await post(acme.url(), client, { id: call.serverRequest['id'], result: good })).status,
      202,
      'a second answer comes too late'
    )
  }
})

t.test('over HTTP+SSE too', async (t) => {
  const acme = await acmeGateway(t, { script: { answers: 'sse' } })
  const client = await httpSseClient(acme.url(), keyOf.ada, '2025-06-18', { sampling: {} })
  for (const [what, answer] of Object.entries(botched)) {
    const call = client.request('tools/call', { name: 'sample' }, what)
    const { id } = await client.next(
      'the question',
      (message) => isServerRequest(message) && client.messages.at(-1) === message
    )
    const refused = await client.post({ jsonrpc: '2.0', id, ...answer })
    t.match([refused.status, refused.json.error.code], [400, -32600], what)
    t.match(JSON.parse((await call).result.content[0].text), told)
  }
  client.close()
})

t.test('one in a batch ends its own server request only', async (t) => {
  const acme = await acmeGateway(t, { script: { answers: 'sse' } })
  const mcp = await legacyClient(acme.url(), keyOf.ada, '2025-03-26', { sampling: {} })
  const calls = [
    await callUntilServerRequest(acme.url(), mcp, 'sample', {}, 'one'),
    await callUntilServerRequest(acme.url(), mcp, 'sample', {}, 'two')
  ]
  const [one, two] = calls.map(({ serverRequest: question }) => question['id'] as string)
  const answer = await send(acme.url(), {
    headers: mcp.headers,
    body: JSON.stringify([
      { jsonrpc: '2.0', id: one, result: 5 },
      { jsonrpc: '2.0', id: two, result: good }
    ])
  })
  t.match([answer.status, answer.json], [200, [{ error: { code: -32600 } }]])
  t.match(await Promise.all(calls.map(({ result }) => result())), [told, { result: good }])

  const old = await httpSseClient(acme.url(), keyOf.ada, '2025-03-26', { sampling: {} })
  const asked = old.request('tools/call', { name: 'sample' }, 'three')
  const { id } = await old.next('the question', isServerRequest)
  t.equal(
    (
      await old.post([
        { jsonrpc: '2.0', id: 'p', method: 'ping' },
        { jsonrpc: '2.0', id, error: 'no' }
      ])
    ).status,
    400
  )
  t.match(JSON.parse((await asked).result.content[0].text), told)
  t.notOk(
    old.messages.some((message) => message.id === 'p'),
    'nothing else of the batch was done'
  )
  old.close()
})

t.test('a response to no server request of this session ends none', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada, '2025-11-25', { sampling: {} })
  const other = await legacyClient(acme.url(), keyOf.ada, '2025-11-25', { sampling: {} })
  const call = await callUntilServerRequest(acme.url(), client, 'sample')
  const id = call.serverRequest['id'] as string
  for (const [from, message] of [
    [other, { id, result: 5 }],
    [client, { id: `${id}0`, result: 5 }],
    [client, { id: 1, result: 5 }],
    [client, { result: 5 }],
    [client, { id, method: 7 }],
    [client, { id, method: 'x', result: {} }]
  ] as const) {
    t.equal((await post(acme.url(), from, message)).status, 400)
  }
  t.equal((await post(acme.url(), client, { id, result: good })).status, 202)
  t.match(await call.result(), { result: good })
})
