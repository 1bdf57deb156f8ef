// Attack: a session id chosen by the attacker, a malformed one, or one in a place where ids do not belong.

import t from 'tap'
import { acmeGateway, credentials, initializeBody, keyOf } from '../kit/acme-gateway.ts'
import { jsonHeaders, legacyClient, send } from '../kit/client.ts'

const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'

for (const kind of credentials) {
  t.test(`an id brought along to initialize is not taken over, by ${kind}`, async (t) => {
    const acme = await acmeGateway(t)
    const headers = { ...jsonHeaders, authorization: `Bearer ${await acme.bearer(kind)}` }
    const chosen = 'A'.repeat(43)
    const opened = await send(acme.url(), {
      headers: { ...headers, 'mcp-session-id': chosen },
      body: initializeBody()
    })
    const fresh = String(opened.headers['mcp-session-id'])
    t.equal(opened.status, 200)
    t.not(fresh, chosen)
    t.equal(
      (await send(acme.url(), { headers: { ...headers, 'mcp-session-id': chosen }, body: ping })).status,
      404,
      'and was not created'
    )
    t.equal((await send(acme.url(), { headers: { ...headers, 'mcp-session-id': fresh }, body: ping })).status, 200)
  })
}

t.test('ids are 256 bits of randomness in visible ASCII', async (t) => {
  const acme = await acmeGateway(t)
  const headers = { ...jsonHeaders, authorization: `Bearer ${keyOf.ada}` }
  const ids = await Promise.all(
    Array.from({ length: 200 }, async () =>
      String((await send(acme.url(), { headers, body: initializeBody() })).headers['mcp-session-id'])
    )
  )
  t.equal(new Set(ids).size, 200)
  for (const id of ids) t.match(id, /^[A-Za-z0-9_-]{43}$/)
  // No counter, no time: every position takes many values.
  for (let at = 0; at < 42; at++) t.ok(new Set(ids.map((id) => id[at])).size > 30, `position ${at}`)
})

t.test('what cannot be an id is refused before it is looked up', async (t) => {
  const acme = await acmeGateway(t)
  const { sessionId } = await legacyClient(acme.url(), keyOf.ada)
  const as = async (value: string) => (await acme.exchange(acme.post(ping, `Mcp-Session-Id: ${value}\r\n`))).status
  t.equal(await as(sessionId), 200)
  t.equal(await as(` ${sessionId} `), 200, 'white space around a header value is none of it (RFC 9110 section 5.5)')
  for (const value of [
    '',
    '*',
    '{',
    '?',
    'a b',
    '../x',
    'a:b',
    'session:*',
    '%2e',
    `"${sessionId}"`,
    `${sessionId},${sessionId}`,
    `${sessionId}\t x`,
    'ü',
    '\u00ff',
    'x'.repeat(129),
    'x'.repeat(10_000),
    '$(id)',
    "' OR 1=1 --",
    '<x>',
    `${sessionId}=`
  ]) {
    t.equal(await as(value), 400, value.slice(0, 40))
  }
  for (const value of ['a\0b', 'a\rb', 'a\x01b', 'a\x7fb'])
    t.equal(await as(value), 400, `${JSON.stringify(value)}: not even a header`)
  t.equal(await as(`x\r\nMcp-Session-Id: ${sessionId}`), 400, 'two headers')
  t.equal(await as(`${sessionId}\r\nmcp-session-id: ${sessionId}`), 400, 'two of the same')
  t.equal(
    await as(sessionId.toLowerCase() === sessionId ? 'x'.repeat(43) : sessionId.toLowerCase()),
    404,
    'case counts'
  )
})

t.test('an id anywhere but in its header is not there', async (t) => {
  const acme = await acmeGateway(t)
  const { sessionId } = await legacyClient(acme.url(), keyOf.ada)
  const headers = { ...jsonHeaders, authorization: `Bearer ${keyOf.ada}` }
  const id = { 'Mcp-Session-Id': sessionId, sessionId, 'io.modelcontextprotocol/sessionId': sessionId }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { ...id, _meta: id } })
  const answer = await send(`${acme.url()}?sessionId=${sessionId}&mcp-session-id=${sessionId}`, {
    headers: {
      ...headers,
      cookie: `mcp-session-id=${sessionId}`,
      'x-mcp-session-id': sessionId,
      mcp_session_id: sessionId
    },
    body
  })
  t.equal(answer.status, 400)
  t.equal(answer.json.error.data.reason, 'session_required')
})
