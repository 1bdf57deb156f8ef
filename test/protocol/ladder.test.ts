// The ladder as a function, over every combination of the headers, envelopes and bodies that the oracle knows.

import t from 'tap'
import { errorTable } from '../../src/protocol/error-table.ts'
import { GatewayError, rpcCodeOf } from '../../src/protocol/messages.ts'
import { classifyHttpBody, isModernVersionHeader, type ClassifiedBody } from '../../src/protocol/envelope.ts'
import { axes, bodyOf, expectedOf, headersOf, type Case } from '../kit/classify-oracle.ts'
import { envelope } from '../kit/modern-client.ts'

function outcome(given: Case): ClassifiedBody | GatewayError {
  const headers = headersOf(given) as Record<string, string>
  try {
    return classifyHttpBody(
      { version: headers['mcp-protocol-version'], method: headers['mcp-method'], name: headers['mcp-name'] },
      bodyOf(given)
    )
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
}

function* combinations(): Generator<Case> {
  for (const version of axes.version)
    for (const methodHeader of axes.methodHeader)
      for (const nameHeader of axes.nameHeader)
        for (const shape of axes.shape)
          for (const method of axes.method)
            for (const meta of axes.meta)
              yield {
                version,
                methodHeader,
                nameHeader,
                shape,
                method,
                meta,
                session: undefined,
                accept: axes.accept[0]
              }
}

t.test('every combination has the one answer that the table gives it', async (t) => {
  const counts = { legacy: 0, modern: 0, notification: 0, refused: 0 }
  const wrong: unknown[] = []
  for (const given of combinations()) {
    const expected = expectedOf(given)
    const found = outcome(given)
    const refusedLater = expected.reason === 'unknown_method'
    const fits =
      found instanceof GatewayError
        ? expected.era === 'modern' &&
          found.code === expected.reason &&
          errorTable[found.code].status === expected.status &&
          rpcCodeOf(found.code) === expected.code
        : found.kind === 'legacy'
          ? expected.era === 'legacy'
          : found.kind === 'notification'
            ? expected.status === 202
            : expected.era === 'modern' && (expected.status === 200 || refusedLater)
    counts[found instanceof GatewayError ? 'refused' : found.kind]++
    if (!fits) wrong.push({ given, expected, found })
  }
  t.same(wrong.slice(0, 3), [])
  for (const [kind, count] of Object.entries(counts)) t.ok(count > 100, `${kind} is among them: ${count}`)
})

const right = { version: '2026-07-28', method: 'tools/call', name: 'echo' }
const call = (meta: unknown, params = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'echo', ...params, _meta: meta }
})

t.test('what has passed is the request without its envelope, and the envelope beside it', async (t) => {
  t.same(
    classifyHttpBody(
      right,
      call(
        {
          ...envelope({ sampling: {} }),
          progressToken: 7,
          'example.com/own': true,
          'io.modelcontextprotocol/logLevel': 'debug'
        },
        { arguments: { a: 1 } }
      )
    ),
    {
      kind: 'modern',
      id: 1,
      request: {
        method: 'tools/call',
        params: { name: 'echo', arguments: { a: 1 }, _meta: { progressToken: 7, 'example.com/own': true } }
      },
      envelope: {
        software: { name: 'raw', version: '1' },
        version: '2026-07-28',
        capabilities: { sampling: {} },
        logLevel: 'debug'
      }
    }
  )
})

t.test('a refusal says what is wrong and what to do', async (t) => {
  t.throws(
    () => classifyHttpBody({ ...right, version: '2026-07-28' }, { jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    {
      code: 'invalid_envelope',
      message: /io\.modelcontextprotocol\/protocolVersion.*io\.modelcontextprotocol\/clientCapabilities/
    }
  )
  t.throws(() => classifyHttpBody({ ...right, method: undefined }, call(envelope())), {
    code: 'header_mismatch',
    message: /Mcp-Method is missing.*"method"/
  })
  t.throws(() => classifyHttpBody({ ...right, name: undefined }, call(envelope())), {
    code: 'header_mismatch',
    message: /Mcp-Name is missing.*"params\.name"/
  })
  t.throws(() => classifyHttpBody({ ...right, name: 'other' }, call(envelope())), {
    code: 'header_mismatch',
    message: /Mcp-Name.*"params\.name"/
  })
  t.throws(() => classifyHttpBody({ ...right, version: undefined }, call(envelope())), {
    code: 'header_mismatch',
    message: /MCP-Protocol-Version is missing/
  })
  t.throws(
    () =>
      classifyHttpBody(
        { ...right, version: 'v999' },
        call({ ...envelope(), 'io.modelcontextprotocol/protocolVersion': 'v999' })
      ),
    { code: 'unsupported_revision', data: { supported: ['2026-07-28'], requested: 'v999' } }
  )
  t.throws(() => classifyHttpBody(right, { jsonrpc: '2.0', id: 1, result: {} }), {
    code: 'invalid_request',
    message: /inputResponses/
  })
})

t.test('Mcp-Name repeats the URI of a resource and the id of a task', async (t) => {
  const read = (uri: unknown) => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'resources/read',
    params: { uri, _meta: envelope() }
  })
  t.match(
    classifyHttpBody(
      { version: '2026-07-28', method: 'resources/read', name: 'test://é'.replace('é', '%C3%A9') },
      read('test://%C3%A9')
    ),
    { kind: 'modern' }
  )
  t.match(
    classifyHttpBody(
      { version: '2026-07-28', method: 'resources/read', name: '=?base64?dGVzdDovL8Op?=' },
      read('test://é')
    ),
    { kind: 'modern' }
  )
  t.throws(
    () => classifyHttpBody({ version: '2026-07-28', method: 'resources/read', name: 'test://é' }, read('test://é')),
    { code: 'header_mismatch', message: /damaged/ }
  )
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    const task = { jsonrpc: '2.0', id: 1, method, params: { taskId: 't1', _meta: envelope() } }
    t.match(classifyHttpBody({ version: '2026-07-28', method, name: 't1' }, task), { kind: 'modern' })
    t.throws(() => classifyHttpBody({ version: '2026-07-28', method, name: undefined }, task), {
      code: 'header_mismatch'
    })
  }
  t.match(
    classifyHttpBody({ version: '2026-07-28', method: 'resources/read', name: undefined }, read(undefined)),
    { kind: 'modern' },
    'a body without a URI has nothing to repeat: that it has none is said later'
  )
  t.throws(
    () => classifyHttpBody({ version: '2026-07-28', method: 'resources/read', name: 'test://one' }, read(undefined)),
    { code: 'header_mismatch' },
    'but a header must not say what the body does not'
  )
})

t.test('revisions are told apart by their date, and what is no date is none of them', async (t) => {
  for (const version of ['2026-07-28', '2026-07-29', '2031-01-01'])
    t.equal(isModernVersionHeader(version), true, version)
  for (const version of [undefined, '', '2025-11-25', '2026-07-27', 'v999', '2026-07-28 ', 'DRAFT-2026-v1'])
    t.equal(isModernVersionHeader(version), false, String(version))
})
