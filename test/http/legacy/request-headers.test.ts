// What a request must say in its headers: revision, formats, type of the body (basic/transports of 2025-03-26,
// 2025-06-18, 2025-11-25).

import t from 'tap'
import { acmeGateway, initializeBody, keyOf } from '../../kit/acme-gateway.ts'
import { jsonHeaders, legacyClient, send } from '../../kit/client.ts'

const auth = { ...jsonHeaders, authorization: `Bearer ${keyOf.ada}` }
const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'

t.test('MCP-Protocol-Version', async (t) => {
  const acme = await acmeGateway(t)
  const { sessionId } = await legacyClient(acme.url(), keyOf.ada)
  const headers = { ...auth, 'mcp-session-id': sessionId }
  const as = (version: string, method = 'POST') =>
    send(acme.url(), {
      method,
      headers: { ...headers, 'mcp-protocol-version': version },
      ...(method === 'POST' ? { body: ping } : {})
    })

  t.equal((await send(acme.url(), { headers, body: ping })).status, 200, 'left out, the session knows it')
  for (const version of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])
    t.equal((await as(version)).status, 200, `${version} is one that we speak`)

  for (const version of ['1.0', '2025-11-25, 2025-06-18', '2025-11-25x', ' ', 'latest']) {
    const answer = await as(version)
    t.equal(answer.status, 400, `${JSON.stringify(version)} is none`)
    t.equal(answer.json.error.code, -32600)
    t.equal(answer.json.id, 1)
    t.same(answer.json.error.data.supported, ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])
  }
  for (const version of ['2026-07-28', '2030-01-01']) {
    const answer = await as(version)
    t.equal(answer.status, 400, `${version} has no sessions, so the one of the header is nothing to it`)
    t.equal(answer.json.error.code, -32602)
    t.equal(answer.json.id, 1)
  }
  t.equal((await as('9999-99-99', 'GET')).status, 400, 'on GET too')
  t.equal((await as('9999-99-99', 'DELETE')).status, 400, 'on DELETE, which then ends nothing')
  t.equal((await send(acme.url(), { headers, body: ping })).status, 200)
  const initialize = await send(acme.url(), {
    headers: { ...auth, 'mcp-protocol-version': '2030-01-01' },
    body: initializeBody()
  })
  t.equal(initialize.status, 400, 'and on initialize')
})

t.test('the negotiated revision counts, not the one of the header', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada, '2025-03-26')
  const batch = await send(acme.url(), {
    headers: { ...client.headers, 'mcp-protocol-version': '2025-11-25' },
    body: `[${ping}]`
  })
  t.same(batch.json, [{ jsonrpc: '2.0', id: 1, result: {} }])
  const newer = await legacyClient(acme.url(), keyOf.ada, '2025-06-18')
  const refused = await send(acme.url(), {
    headers: { ...newer.headers, 'mcp-protocol-version': '2025-03-26' },
    body: `[${ping}]`
  })
  t.equal(refused.status, 400, 'a header does not bring batches back')
})

t.test('Accept of a POST', async (t) => {
  const acme = await acmeGateway(t)
  const { sessionId } = await legacyClient(acme.url(), keyOf.ada)
  const base = { authorization: auth.authorization, 'content-type': 'application/json', 'mcp-session-id': sessionId }
  const as = (accept: string | undefined) =>
    send(acme.url(), { headers: { ...base, ...(accept === undefined ? {} : { accept }) }, body: ping })

  for (const accept of [
    'application/json, text/event-stream',
    'text/event-stream, application/json',
    '*/*',
    'application/json',
    'application/*',
    'Application/JSON;q=0.9, Text/Event-Stream',
    undefined,
    '',
    'text/html, */*;q=0.1'
  ]) {
    const answer = await as(accept)
    t.equal(answer.status, 200, `${accept}`)
    t.equal(answer.headers['content-type'], 'application/json', 'nothing to stream, so JSON')
  }
  for (const accept of ['text/event-stream', 'text/*', 'application/json;q=0, text/event-stream']) {
    const answer = await as(accept)
    t.equal(answer.headers['content-type'], 'text/event-stream; charset=utf-8', `${accept} takes only a stream`)
    t.same(answer.messages, [{ jsonrpc: '2.0', id: 1, result: {} }])
  }
  for (const accept of [
    'text/html',
    'application/xml, image/*',
    'application/json;q=0',
    '*/*;q=0.0',
    'application/jsonx'
  ]) {
    const answer = await as(accept)
    t.equal(answer.status, 406, `${accept} takes neither`)
    t.equal(answer.json.error.data.reason, 'not_acceptable')
  }
})

t.test('Accept of a GET', async (t) => {
  const acme = await acmeGateway(t)
  const { headers } = await legacyClient(acme.url(), keyOf.ada)
  t.equal((await send(acme.url(), { method: 'GET', headers: { ...headers, accept: 'application/json' } })).status, 406)
  t.equal(
    (await send(acme.url(), { method: 'GET', headers: { ...headers, accept: 'text/event-stream;q=0' } })).status,
    406
  )
})

t.test('Content-Type of a POST: JSON in UTF-8 and nothing else', async (t) => {
  const acme = await acmeGateway(t)
  const { sessionId } = await legacyClient(acme.url(), keyOf.ada)
  const base = { authorization: auth.authorization, accept: auth.accept, 'mcp-session-id': sessionId }
  const as = (type: string | undefined) =>
    send(acme.url(), { headers: { ...base, ...(type === undefined ? {} : { 'content-type': type }) }, body: ping })

  for (const type of [
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json ; charset=utf-8',
    'application/json '
  ]) {
    t.equal((await as(type)).status, 200, type)
  }
  for (const type of [
    undefined,
    '',
    'text/plain',
    'text/json',
    'application/jsonx',
    'application/json-rpc',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/json\t; x',
    'application/json; charset=utf-16',
    'application/json; charset=utf-7',
    'application/json; charset=latin1',
    'application/json, text/plain',
    'text/plain; application/json',
    'application/json; charset=utf-8; charset=utf-16',
    'application/problem+json'
  ]) {
    const answer = await as(type)
    t.equal(answer.status, 415, `${type}`)
    t.equal(answer.json.error.data.reason, 'unsupported_media_type')
  }
})

t.test('Content-Encoding is refused whatever it says', async (t) => {
  const acme = await acmeGateway(t)
  const { headers } = await legacyClient(acme.url(), keyOf.ada)
  for (const encoding of ['gzip', 'br', 'zstd', 'deflate, gzip', 'identity', '']) {
    t.equal(
      (await send(acme.url(), { headers: { ...headers, 'content-encoding': encoding }, body: ping })).status,
      415,
      JSON.stringify(encoding)
    )
  }
  t.equal((await send(acme.url(), { headers, body: ping })).status, 200)
})
