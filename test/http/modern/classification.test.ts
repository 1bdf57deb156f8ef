// The ladder at the real transport: whatever is missing, wrong or contradictory in headers, `_meta` and body has
// exactly one documented answer, and never reaches an upstream.

import { type Teardown } from '../../kit/until.ts'
import fc from 'fast-check'
import t from 'tap'
import { errorTable, type ErrorCode } from '../../../src/protocol/error-table.ts'
import { rpcCodeOf } from '../../../src/protocol/messages.ts'
import { send, type Answer } from '../../kit/client.ts'
import { gateway, key, type TestGateway } from '../../kit/gateway.ts'
import {
  axes,
  bodyOf,
  echoes,
  expectedOf,
  headersOf,
  requestId,
  type Case,
  type Expected
} from '../../kit/classify-oracle.ts'
import { modernMessage, modernRequest } from '../../kit/modern-client.ts'
import { startModern, type ModernUpstream } from '../../kit/modern-server.ts'
import { rawExchange } from '../../kit/raw-http.ts'

async function open(t: Teardown): Promise<{ acme: TestGateway; upstream: ModernUpstream }> {
  const upstream = await startModern()
  t.teardown(() => upstream.close())
  const acme = await gateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } },
    limits: { sessionsPerPrincipal: 100_000 }
  })
  const listed = await modernRequest(acme.url(), 'tools/list', {}, { token: key })
  if (listed.status !== 200) throw new Error(listed.text)
  return { acme, upstream }
}

/** @returns what is wrong with the answer; undefined where it is the expected one */
function fault({ status, json, text, headers }: Answer, given: Case, expected: Expected): string | undefined {
  if (status !== expected.status) return `status ${status} in place of ${expected.status}: ${text}`
  if (expected.code !== undefined) {
    if (json?.error?.code !== expected.code || json.error.data?.reason !== expected.reason)
      return `not ${expected.code} ${String(expected.reason)}: ${text}`
    if (json.id !== (echoes(given) ? requestId : undefined)) return `the id: ${text}`
    const code = expected.reason as ErrorCode
    return rpcCodeOf(code) !== expected.code || errorTable[code].status !== expected.status
      ? 'not as docs/errors.md has it'
      : undefined
  }
  if (expected.status === 202) return text === '' ? undefined : `a notification is not answered: ${text}`
  const sessionId = headers['mcp-session-id']
  if ((sessionId !== undefined) !== (expected.era === 'legacy'))
    return `session id ${String(sessionId)} from the ${expected.era} era`
  return json?.result === undefined || json.id !== requestId ? `no result: ${text}` : undefined
}

const shown = (given: Case, expected: Expected): string => JSON.stringify({ given, expected })

t.test('every combination is answered by the first check that it fails, and never by an upstream', async (t) => {
  const { acme, upstream } = await open(t)
  const others = new Set([
    'server/discover',
    'tools/list',
    'prompts/list',
    'resources/list',
    'resources/templates/list',
    'subscriptions/listen'
  ])
  let reached = 0
  const seen = new Map<string, number>()
  const axis = <Name extends keyof typeof axes>(name: Name) =>
    fc.constantFrom(...(axes[name] as unknown as ReadonlyArray<Case[Name]>))
  // Often right, so that the later checks are reached too.
  const mostly = <Name extends keyof typeof axes>(name: Name, usual: Case[Name]) =>
    fc.oneof({ weight: 3, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: axis(name) })
  const cases: fc.Arbitrary<Case> = fc.record({
    version: mostly('version', '2026-07-28'),
    methodHeader: mostly('methodHeader', 'right'),
    nameHeader: mostly('nameHeader', 'right'),
    session: axis('session'),
    accept: mostly('accept', axes.accept[0]),
    shape: mostly('shape', 'request'),
    method: mostly('method', 'tools/call'),
    meta: mostly('meta', 'full')
  })
  await t.resolves(
    fc.assert(
      fc.asyncProperty(cases, async (given) => {
        const expected = expectedOf(given)
        const answer = await send(acme.url(), {
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headersOf(given) },
          body: JSON.stringify(bodyOf(given))
        })
        const wrong = fault(answer, given, expected)
        if (wrong !== undefined) throw new Error(`${wrong}\n${shown(given, expected)}`)
        if (expected.reached === true) reached++
        const calls = upstream.server.requests('tools/call').length
        if (calls !== reached)
          throw new Error(`${calls} calls at the upstream in place of ${reached}\n${shown(given, expected)}`)
        const odd = upstream.server.received.find(
          ({ message }) => !others.has(String(message['method'])) && message['method'] !== 'tools/call'
        )
        if (odd !== undefined)
          throw new Error(`the upstream was sent ${JSON.stringify(odd.message)}\n${shown(given, expected)}`)
        const kind = expected.reason ?? String(expected.status)
        seen.set(kind, (seen.get(kind) ?? 0) + 1)
      }),
      { numRuns: 3_000 }
    )
  )
  t.ok(reached > 20, 'right ones reach it')
  for (const kind of [
    'invalid_request',
    'invalid_envelope',
    'header_mismatch',
    'unsupported_revision',
    'unknown_method',
    'not_acceptable',
    'session_required',
    'session_unknown',
    '202',
    '200'
  ])
    t.ok((seen.get(kind) ?? 0) > 0, `${kind} is among the answers`)
})

t.test('headers are read as HTTP reads them', async (t) => {
  const { acme, upstream } = await open(t)
  const port = Number(new URL(acme.publicUrl).port)
  const { body } = modernMessage('tools/call', { name: 'echo', arguments: {} })
  const as = async (...lines: string[]) =>
    await rawExchange(
      port,
      [
        'POST /t/acme/mcp HTTP/1.1',
        `Host: 127.0.0.1:${port}`,
        `Authorization: Bearer ${key}`,
        'Content-Type: application/json',
        'Connection: close',
        `Content-Length: ${Buffer.byteLength(body)}`,
        ...lines,
        '',
        body
      ].join('\r\n')
    )
  t.equal(
    (await as('MCP-PROTOCOL-VERSION: 2026-07-28', 'mcp-method: tools/call', 'MCP-NAME:    echo  \t ')).status,
    200,
    'names in any letters, blanks around values'
  )
  t.equal(upstream.server.requests('tools/call').length, 1)
  for (const lines of [
    ['Mcp-Protocol-Version: 2026-07-28', 'Mcp-Method: tools/call', 'Mcp-Name: echo', 'Mcp-Name: echo'],
    ['Mcp-Protocol-Version: 2026-07-28', 'Mcp-Method: tools/list', 'Mcp-Method: tools/call', 'Mcp-Name: echo'],
    [
      'Mcp-Protocol-Version: 2025-06-18',
      'Mcp-Protocol-Version: 2026-07-28',
      'Mcp-Method: tools/call',
      'Mcp-Name: echo'
    ],
    ['Mcp-Protocol-Version: 2026-07-28', 'Mcp-Method: tools/call', 'Mcp-Name: e\u0301cho'],
    ['Mcp-Protocol-Version: 2026-07-28', 'Mcp-Method: tools/call', 'Mcp-Name: '],
    ['Mcp-Protocol-Version: 2026-07-28', 'Mcp-Method: tools/call, tools/call', 'Mcp-Name: echo']
  ]) {
    t.equal((await as(...lines)).status, 400, lines.join(' | '))
  }
  t.equal(upstream.server.requests('tools/call').length, 1, 'none of them reached it')
})

t.test('a body that is no JSON, of another type or too large is refused before it is classified', async (t) => {
  const { acme } = await open(t)
  const { headers } = modernMessage('tools/list', {}, { token: key })
  t.match((await send(acme.url(), { headers, body: '{"jsonrpc"' })).json, { error: { code: -32700 } })
  t.equal((await send(acme.url(), { headers, body: '{"jsonrpc"' })).status, 400)
  t.equal((await send(acme.url(), { headers: { ...headers, 'content-type': 'text/plain' }, body: '{}' })).status, 415)
  t.equal((await send(acme.url(), { headers, body: ' '.repeat(4_194_305) })).status, 413)
})

t.test('what is refused is logged by its reason, and says nothing of the body', async (t) => {
  const { acme } = await open(t)
  await modernRequest(
    acme.url(),
    'tools/call',
    { name: 'echo', arguments: { secret: 'hush-hush' } },
    { token: key, headers: { 'mcp-name': 'hush-name' } }
  )
  t.ok(acme.log.some(({ reason }) => reason === 'header_mismatch'))
  t.notMatch(JSON.stringify(acme.log), /hush/)
})
