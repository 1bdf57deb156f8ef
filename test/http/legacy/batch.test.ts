// JSON-RPC batches: 2025-03-26 basic/transports "Sending Messages to the Server" brought them, 2025-06-18 took them
// away.

import t from 'tap'
import { acmeGateway, initializeBody, keyOf } from '../../kit/acme-gateway.ts'
import { legacyClient, send } from '../../kit/client.ts'
import { until } from '../../kit/until.ts'

const request = (id: unknown, method: string, params?: unknown) => ({
  jsonrpc: '2.0',
  id,
  method,
  ...(params === undefined ? {} : { params })
})
const note = (method: string, params?: unknown) => ({
  jsonrpc: '2.0',
  method,
  ...(params === undefined ? {} : { params })
})

t.test('only a session of 2025-03-26 speaks batches', async (t) => {
  const acme = await acmeGateway(t)
  for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
    const { headers } = await legacyClient(acme.url(), keyOf.ada, revision)
    const answer = await send(acme.url(), { headers, body: JSON.stringify([request(1, 'ping')]) })
    t.equal(answer.status, revision === '2025-03-26' ? 200 : 400, revision)
    if (answer.status === 400) t.match(answer.json, { error: { code: -32600 }, id: undefined })
    else t.same(answer.json, [{ jsonrpc: '2.0', id: 1, result: {} }])
  }
})

t.test('in a batch', async (t) => {
  const acme = await acmeGateway(t, { limits: { batchMessages: 5 } })
  const { headers } = await legacyClient(acme.url(), keyOf.ada, '2025-03-26')
  const post = (batch: unknown, more = {}) =>
    send(acme.url(), { headers: { ...headers, ...more }, body: JSON.stringify(batch) })

  const mixed = await post([
    request('a', 'ping'),
    note('notifications/x'),
    request(2, 'nope'),
    7,
    { jsonrpc: '2.0', id: 9, result: {} }
  ])
  t.equal(mixed.status, 200, 'every request has its answer, the rest has none')
  t.equal(mixed.headers['content-type'], 'application/json')
  t.match(mixed.json, [{ id: 'a', result: {} }, { id: 2, error: { code: -32601 } }, { error: { code: -32600 } }])
  t.equal(mixed.json.length, 3)
  t.notOk('id' in mixed.json[2], 'what is no message has no id')

  const unasked = await post([note('notifications/x'), { jsonrpc: '2.0', id: 9, result: {} }])
  t.match([unasked.status, unasked.json], [400, { error: { data: { reason: 'invalid_request' } } }])
  const silent = await post([note('notifications/x'), note('notifications/y')])
  t.equal(silent.status, 202, 'nothing to answer')
  t.equal(silent.text, '')

  t.equal((await post([])).status, 400, 'empty')
  t.equal((await post(Array.from({ length: 5 }, (_, id) => request(id, 'ping')))).json.length, 5)
  t.equal((await post(Array.from({ length: 6 }, (_, id) => request(id, 'ping')))).status, 400, 'one too many')

  const nested = await post([[request(1, 'ping')]])
  t.match(nested.json, [{ error: { code: -32600 } }], 'a batch in a batch is no message')

  const late = await post([request(1, 'ping'), JSON.parse(initializeBody()) as unknown])
  t.equal(late.status, 400, 'initialize must not be part of one (2025-03-26 basic/lifecycle)')
  t.equal(acme.upstream.seen.filter(({ message }) => message?.['method'] === 'ping').length, 0)
})

t.test('a batch without a session cannot smuggle an initialize in', async (t) => {
  const acme = await acmeGateway(t)
  const {
    headers: { 'mcp-session-id': _, ...headers }
  } = await legacyClient(acme.url(), keyOf.ada, '2025-03-26')
  const answer = await send(acme.url(), { headers, body: `[${initializeBody('2025-03-26')}]` })
  t.equal(answer.status, 400)
  t.notOk(answer.headers['mcp-session-id'])
})

t.test('calls of one batch run side by side; progress rides ahead of their common answer', async (t) => {
  const acme = await acmeGateway(t)
  const { headers } = await legacyClient(acme.url(), keyOf.ada, '2025-03-26')
  const batch = send(acme.url(), {
    headers,
    body: JSON.stringify([
      request(1, 'tools/call', { name: 'slow', arguments: { at: 1 }, _meta: { progressToken: 'one' } }),
      request(2, 'tools/call', { name: 'slow', arguments: { at: 2 } }),
      request(3, 'tools/call', { name: 'slow', arguments: { at: 3 } }),
      note('notifications/cancelled', { requestId: 2 })
    ])
  })
  // The cancelled one may be there or not.
  await until('the two others wait at the upstream', () => {
    const received = JSON.stringify(acme.upstream.server.received)
    return received.includes('{"at":1}') && received.includes('{"at":3}')
  })
  acme.upstream.server.release()
  const answer = await batch
  t.equal(answer.headers['content-type'], 'text/event-stream; charset=utf-8')
  const [progress, answers] = answer.messages
  t.match(progress, { method: 'notifications/progress', params: { progressToken: 'one' } })
  t.same(
    answers.map(({ id }: { id: unknown }) => id),
    [1, 3],
    'the cancelled one stays silent'
  )
})
