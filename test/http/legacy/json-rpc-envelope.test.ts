// Every answer is JSON-RPC as the schema of its revision has it (schema/{revision}/schema.json, the envelope), and
// errors say no more than they should.

import t from 'tap'
import { acmeGateway, initializeBody, keyOf } from '../../kit/acme-gateway.ts'
import { jsonHeaders, legacyClient, send } from '../../kit/client.ts'

type Json = Record<string, unknown>
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const isId = (value: unknown) => typeof value === 'string' || Number.isInteger(value)

/**
 * JSONRPCResponse or JSONRPCError; `id` of an error may be missing where the body is no request (required until
 * 2025-06-18, and nothing to say there either), and null where it was not parsed (JSON-RPC 2.0 section 5).
 */
function faultOf(message: unknown): string | undefined {
  if (!isObject(message)) return 'no object'
  const { jsonrpc, id, result, error, ...rest } = message
  if (jsonrpc !== '2.0') return 'jsonrpc'
  if (Object.keys(rest).length > 0) return `extra ${Object.keys(rest).join()}`
  if ((result === undefined) === (error === undefined)) return 'neither or both of result and error'
  if (result !== undefined) return isObject(result) && isId(id) ? undefined : 'result'
  if ('id' in message && id !== null && !isId(id)) return 'id'
  if (
    !isObject(error) ||
    !Number.isInteger(error['code']) ||
    typeof error['message'] !== 'string' ||
    error['message'] === ''
  )
    return 'error'
  return Object.keys(error).every((name) => ['code', 'message', 'data'].includes(name))
    ? undefined
    : 'extra member of error'
}

const calls: Array<[method: string, params?: unknown]> = [
  ['ping'],
  ['tools/list'],
  ['prompts/list'],
  ['resources/list'],
  ['resources/templates/list'],
  ['nope'],
  ['logging/setLevel', { level: 'info' }],
  ['logging/setLevel', {}],
  ['tools/call', { name: 'echo', arguments: {} }],
  ['tools/call', { name: 'fail' }],
  ['tools/call', { name: 'rpcerror', arguments: { code: -32002 } }],
  ['tools/call', { name: 'nope' }],
  ['tools/call', { name: 'content' }],
  ['prompts/get', { name: 'greet', arguments: { who: 'ada' } }],
  ['prompts/get', { name: 'nope' }],
  ['resources/read', { uri: 'test://one' }],
  ['completion/complete', { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: 'a' } }]
]

t.test('every answer is well-formed, in every revision', async (t) => {
  const acme = await acmeGateway(t)
  for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
    const client = await legacyClient(acme.url(), keyOf.ada, revision)
    t.equal(faultOf(client.initialized.json), undefined)
    for (const [method, params] of calls) {
      const answer = await client.request(method, params, { id: `id of ${method}` })
      t.equal(faultOf(answer.json), undefined, `${revision} ${method}`)
      t.equal(answer.json.id, `id of ${method}`)
      t.equal(answer.status, 200)
    }
  }
})

t.test('every refusal is well-formed, and echoes the id of a request that could be read', async (t) => {
  const acme = await acmeGateway(t)
  const { sessionId } = await legacyClient(acme.url(), keyOf.ada)
  const auth = { ...jsonHeaders, authorization: `Bearer ${keyOf.ada}` }
  const ping = '{"jsonrpc":"2.0","id":"mine","method":"ping"}'
  const cases: Array<[status: number, id: unknown, headers: Record<string, string>, body: string]> = [
    [401, null, jsonHeaders, ping], // before the body is read
    [401, null, { ...jsonHeaders, authorization: 'Bearer nope' }, ping],
    [400, 'mine', auth, ping],
    [400, 1, { ...auth, 'mcp-protocol-version': 'x' }, initializeBody()],
    [404, 'mine', { ...auth, 'mcp-session-id': 'x'.repeat(43) }, ping],
    [406, 'mine', { ...auth, accept: 'text/html' }, ping],
    [415, null, { ...auth, 'content-type': 'text/plain' }, ping],
    [403, null, { ...auth, origin: 'https://evil.example' }, ping],
    [403, null, { ...auth, host: 'evil.example' }, ping],
    [400, null, { ...auth, 'mcp-session-id': sessionId }, '{'],
    [400, undefined, { ...auth, 'mcp-session-id': sessionId }, '{"jsonrpc":"2.0","id":{},"method":"ping"}'],
    [413, null, auth, `"${'x'.repeat(5 * 1024 * 1024)}"`]
  ]
  for (const [status, id, headers, body] of cases) {
    const answer = await send(acme.url(), { headers, body })
    t.equal(answer.status, status)
    t.equal(faultOf(answer.json), undefined, answer.text)
    t.equal(answer.json.id, id)
    t.equal(answer.headers['content-type'], 'application/json')
    t.equal(answer.headers['cache-control'], 'no-store')
  }
})

t.test('the check can fail', async (t) => {
  for (const broken of [
    [],
    { jsonrpc: '2.0' },
    { jsonrpc: '2.0', id: {}, error: { code: 1, message: 'x' } },
    { jsonrpc: '2.0', id: 1, result: {}, error: { code: 1, message: 'x' } },
    { jsonrpc: '2.0', id: 1, error: { code: 1.5, message: 'x' } },
    { jsonrpc: '2.0', id: 1, result: {}, more: 1 }
  ])
    t.ok(faultOf(broken))
})
