// Sorting decoded JSON into the four kinds of message (JSON-RPC 2.0 sections 4 and 5, as MCP narrows them).

import fc from 'fast-check'
import t from 'tap'
import {
  classifyMessage,
  errorMessage,
  GatewayError,
  isObject,
  isRequestId,
  metaOf,
  notificationMessage,
  requestMessage,
  responseMessage,
  RpcError
} from '../../src/protocol/messages.ts'
import { parseJson } from '../../src/protocol/json.ts'
import { runs } from '../kit/runs.ts'

const id = fc.oneof(
  fc.string({ minLength: 1 }),
  fc.maxSafeInteger().filter((value) => !Object.is(value, -0))
)
const params = fc.option(fc.dictionary(fc.string(), fc.jsonValue()), { nil: undefined })

t.test('whatever it is given, it answers and does not throw', async (t) => {
  const kinds = new Set(['request', 'notification', 'response', 'error', 'invalid'])
  fc.assert(
    fc.property(fc.anything({ withNullPrototype: true, withBigInt: true, withDate: true, withMap: true }), (value) =>
      kinds.has(classifyMessage(value).kind)
    ),
    { numRuns: runs(5_000) }
  )
  const member = fc.constantFrom('jsonrpc', 'id', 'method', 'params', 'result', 'error', '__proto__', 'Method')
  const content = fc.oneof(
    fc.constant('2.0'),
    id,
    fc.jsonValue(),
    fc.constant({ code: 1, message: 'x' }),
    fc.constant(undefined)
  )
  const counts = new Map<string, number>()
  fc.assert(
    fc.property(fc.array(fc.tuple(member, content), { maxLength: 6 }), (entries) => {
      const { kind } = classifyMessage({ jsonrpc: '2.0', ...Object.fromEntries(entries) })
      counts.set(kind, (counts.get(kind) ?? 0) + 1)
      return kinds.has(kind)
    }),
    { numRuns: runs(20_000) }
  )
  t.equal(counts.size, 5, 'the generator reaches every kind')
})

t.test('what we write is read as what it was', async (t) => {
  fc.assert(
    fc.property(id, fc.string(), params, (id, method, params) => {
      const request = params === undefined ? { method } : { method, params }
      t.same(classifyMessage(requestMessage(id, request)), { kind: 'request', id, request })
      t.same(classifyMessage(notificationMessage(request)), { kind: 'notification', notification: request })
      t.same(classifyMessage(responseMessage(id, { ...params })), { kind: 'response', id, result: { ...params } })
      const error = { code: -32000, message: method, data: params }
      t.same(classifyMessage(errorMessage(id, error)), { kind: 'error', id, error })
      t.same(classifyMessage(errorMessage(undefined, error)), { kind: 'error', id: undefined, error })
    }),
    { numRuns: runs(200) }
  )
})

t.test('ids', async (t) => {
  for (const good of ['1', 'x'.repeat(1024), 0, 1, -1, 2 ** 53 - 1, -(2 ** 53 - 1)])
    t.ok(isRequestId(good), String(good).slice(0, 20))
  for (const bad of [
    '',
    undefined,
    null,
    true,
    {},
    [],
    1.5,
    -0,
    2 ** 53,
    -(2 ** 53),
    Infinity,
    NaN,
    'x'.repeat(1025),
    parseJson(Buffer.from('9007199254740993')),
    parseJson(Buffer.from('1e400')),
    1n,
    Symbol.iterator
  ])
    t.notOk(isRequestId(bad), typeof bad)
})

t.test(
  'members that the envelope does not have are refused, so that no reader finds another message in it',
  async (t) => {
    for (const extra of ['Method', 'METHOD', 'ID', 'Params', 'Jsonrpc', 'method ', '__proto__', 'meta']) {
      const value = JSON.parse(
        `{"jsonrpc":"2.0","id":1,"method":"ping",${JSON.stringify(extra)}:"tools/call"}`
      ) as unknown
      t.match(classifyMessage(value), { kind: 'invalid', id: 1 }, extra)
    }
    const long = classifyMessage({ jsonrpc: '2.0', ['x'.repeat(10_000)]: 1 })
    t.ok(long.kind === 'invalid' && long.reason.length < 100, 'and are not echoed whole')
  }
)

t.test('a number of many digits is no object, although the engine says so', async (t) => {
  const number = parseJson(Buffer.from('12345678901234567890'))
  t.equal(typeof number, 'object')
  t.notOk(isObject(number))
  t.match(classifyMessage({ jsonrpc: '2.0', id: 1, method: 'ping', params: number }), { kind: 'invalid' })
  t.match(classifyMessage({ jsonrpc: '2.0', id: 1, result: number }), { kind: 'invalid' })
  for (const no of [null, undefined, [], 'x', 1, () => {}]) t.notOk(isObject(no))
  t.ok(isObject({}) && isObject(Object.create(null)))
})

t.test('the metadata of what has none is empty', async (t) => {
  t.same(metaOf(undefined), {})
  t.same(metaOf({ _meta: [] }), {})
  t.same(metaOf({ _meta: parseJson(Buffer.from('12345678901234567890')) }), {})
  t.same(metaOf({ _meta: { progressToken: 0 } }), { progressToken: 0 })
})

t.test('what is an answer has no stack, and what is a fault has one', (t) => {
  const cause = new Error('the store')
  const refused = new GatewayError('unavailable', 'Retry in a second.', { cause })
  t.notMatch(refused.stack, /\n\s+at /)
  t.notMatch(new RpcError({ code: -32050, message: 'refused' }).stack, /\n\s+at /)
  t.match(cause.stack, /\n\s+at /)
  t.match(new Error('a later fault').stack, /\n\s+at /)
  t.match(refused, { message: 'Retry in a second.', code: 'unavailable', cause })
  t.end()
})
