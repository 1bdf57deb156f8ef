// Refusals that come before the body is parsed carry `"id": null` (JSON-RPC 2.0 section 5): clients that take the body of
// a 4xx for a JSON-RPC error only where it has the member, as the official Python client does, show our text then.

import t, { type Test } from 'tap'
import { acmeGateway, initializeBody, keyOf } from '../kit/acme-gateway.ts'
import { jsonHeaders, legacyClient, send, type Answer } from '../kit/client.ts'
import { modernMessage } from '../kit/modern-client.ts'

const ping = '{"jsonrpc":"2.0","id":"mine","method":"ping"}'
const auth = { ...jsonHeaders, authorization: `Bearer ${keyOf.ada}` }

function isUnread(t: Test, { status, json, text }: Pick<Answer, 'status' | 'json' | 'text'>, expected: number): void {
  t.equal(status, expected, text)
  t.equal(json?.jsonrpc, '2.0')
  t.ok('id' in json && json.id === null, text)
  t.type(json.error.message, 'string')
}

t.test('a request that is refused before its body is parsed gets an error with the id null', async (t) => {
  const acme = await acmeGateway(t)
  for (const [status, headers, body] of [
    [401, jsonHeaders, ping],
    [401, { ...jsonHeaders, authorization: 'Bearer nope' }, ping],
    [403, { ...auth, origin: 'https://evil.example' }, ping],
    [403, { ...auth, host: 'evil.example' }, ping],
    [415, { ...auth, 'content-type': 'text/plain' }, ping],
    [406, { ...auth, accept: 'text/html' }, undefined],
    [400, auth, '{"jsonrpc":'],
    [413, auth, `"${'x'.repeat(5 * 1024 * 1024)}"`]
  ] as const) {
    const method = body === undefined ? 'GET' : 'POST'
    isUnread(t, await send(acme.url(), { method, headers, ...(body === undefined ? {} : { body }) }), status)
  }
  isUnread(t, await send(acme.url('nowhere'), { headers: auth, body: ping }), 404)
  isUnread(t, await send(`${acme.publicUrl}/nowhere`, { headers: auth, body: ping }), 404)
  isUnread(t, await send(acme.url(), { method: 'PUT', headers: auth, body: ping }), 405)
})

t.test('so does a request of 2026-07-28', async (t) => {
  const acme = await acmeGateway(t)
  const { body, headers } = modernMessage('tools/call', { name: 'echo', arguments: {} }, { token: 'nope' })
  isUnread(t, await send(acme.url(), { headers, body }), 401)
})

t.test('so does what Node refuses, with a text that says what is wrong', async (t) => {
  const acme = await acmeGateway(t)
  for (const [status, headers, text] of [
    [431, `X-Long: ${'x'.repeat(33_000)}\r\n`, /headers.*32 KiB/],
    [400, 'X A: b\r\n', /HTTP\/1\.1/]
  ] as const) {
    const answer = await acme.exchange(acme.post(ping, headers))
    const json = JSON.parse(answer.body)
    isUnread(t, { status: answer.status, json, text: answer.body }, status)
    t.match(json.error.message, text)
    t.equal(answer.header('connection'), 'close')
    t.equal(answer.header('content-type'), 'application/json')
  }
  t.equal((await acme.exchange(acme.post(initializeBody()))).status, 200)
})

t.test('once the id was read it is echoed, and it is left out of what is no message', async (t) => {
  const acme = await acmeGateway(t)
  const { headers } = await legacyClient(acme.url(), keyOf.ada)
  t.match(await send(acme.url(), { headers: auth, body: ping }), { status: 400, json: { id: 'mine', error: {} } })
  t.match((await send(acme.url(), { headers, body: ping })).json, { id: 'mine', result: {} })
  // 2025-11-25 schema: JSONRPCErrorResponse has an id that is a string or a number, or none.
  const invalid = await send(acme.url(), { headers, body: '{"jsonrpc":"2.0","id":{},"method":"ping"}' })
  t.equal(invalid.status, 400)
  t.notOk('id' in invalid.json)
})
