// Which answer the classification of 2026-07-28 gives to which request, said a second time and in another way: a table
// of rows, of which the first that fits counts. Made from the specification's words, not from the code under test.

import type { OutgoingHttpHeaders } from 'node:http'
import { envelope } from './modern-client.ts'

export const axes = {
  version: [undefined, '2026-07-28', '2025-06-18', '2027-01-01', 'v999'],
  methodHeader: ['right', undefined, 'wrong', 'in capitals'],
  nameHeader: ['right', 'in base64', undefined, 'wrong', 'in capitals', 'damaged'],
  session: [undefined, 'unknown'],
  accept: ['application/json, text/event-stream', 'image/png'],
  shape: [
    'request',
    'notification',
    'response',
    'error',
    'without jsonrpc',
    'with a null id',
    'with listed params',
    'without params',
    'text',
    'empty array',
    'legacy array',
    'array with a modern message'
  ],
  method: [
    'tools/call',
    'tools/list',
    'server/discover',
    'ping',
    'initialize',
    'resources/subscribe',
    'no/such',
    'constructor'
  ],
  meta: [
    'full',
    'without clientInfo',
    'with a log level',
    undefined,
    'no object',
    'empty',
    'without version',
    'version no text',
    'without capabilities',
    'capabilities a list',
    'clientInfo without name',
    'wrong log level',
    'of 2025-06-18',
    'of 2027-01-01',
    'of v999'
  ]
} as const

export type Case = { readonly [axis in keyof typeof axes]: (typeof axes)[axis][number] }

const key = (name: string): string => `io.modelcontextprotocol/${name}`

const metas: Record<Exclude<Case['meta'], undefined>, unknown> = {
  full: envelope(),
  'without clientInfo': without('clientInfo'),
  'with a log level': { ...envelope(), [key('logLevel')]: 'info' },
  'no object': 'text',
  empty: {},
  'without version': without('protocolVersion'),
  'version no text': { ...envelope(), [key('protocolVersion')]: 20260728 },
  'without capabilities': without('clientCapabilities'),
  'capabilities a list': { ...envelope(), [key('clientCapabilities')]: [] },
  'clientInfo without name': { ...envelope(), [key('clientInfo')]: { version: '1' } },
  'wrong log level': { ...envelope(), [key('logLevel')]: 'loud' },
  'of 2025-06-18': { ...envelope(), [key('protocolVersion')]: '2025-06-18' },
  'of 2027-01-01': { ...envelope(), [key('protocolVersion')]: '2027-01-01' },
  'of v999': { ...envelope(), [key('protocolVersion')]: 'v999' }
}

function without(name: string): unknown {
  return Object.fromEntries(Object.entries(envelope()).filter(([member]) => member !== key(name)))
}

export const requestId = 'of-the-request'
/** A tool whose name is safe in every header. */
const tool = 'echo'
/** Of the right shape, and nobody's. */
const unknownSession = 'A'.repeat(43)

export function bodyOf({ shape, method, meta }: Case): unknown {
  const own =
    method === 'tools/call'
      ? { name: tool, arguments: {} }
      : method === 'initialize'
        ? { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } }
        : {}
  const params = { ...own, ...(meta === undefined ? {} : { _meta: metas[meta] }) }
  const request = { jsonrpc: '2.0', id: requestId, method, params }
  const legacy = { jsonrpc: '2.0', id: requestId, method, params: own }
  return {
    request,
    notification: { jsonrpc: '2.0', method, params },
    response: { jsonrpc: '2.0', id: requestId, result: {} },
    error: { jsonrpc: '2.0', id: requestId, error: { code: 1, message: 'no' } },
    'without jsonrpc': { id: requestId, method, params },
    'with a null id': { ...request, id: null },
    'with listed params': { ...request, params: [] },
    'without params': { jsonrpc: '2.0', id: requestId, method },
    text: 'text',
    'empty array': [],
    'legacy array': [legacy, legacy],
    'array with a modern message': [legacy, { ...request, params: { ...own, _meta: envelope() } }]
  }[shape]
}

function methodValue(header: Case['methodHeader'], method: string): string | undefined {
  if (header === 'wrong') return method === 'tools/list' ? 'prompts/list' : 'tools/list'
  return header === 'in capitals' ? method.toUpperCase() : header && method
}

const nameValues = {
  right: tool,
  'in base64': `=?base64?${Buffer.from(tool).toString('base64')}?=`,
  wrong: 'another',
  'in capitals': tool.toUpperCase(),
  damaged: '=?base64?ZWNobw?='
}

/** Of what is looked at; `Mcp-Name` comes with every method, since it is to be ignored where it means nothing. */
export function headersOf({ version, methodHeader, nameHeader, session, accept, method }: Case): OutgoingHttpHeaders {
  const all = {
    accept,
    'mcp-protocol-version': version,
    'mcp-method': methodValue(methodHeader, method),
    'mcp-name': nameHeader && nameValues[nameHeader],
    'mcp-session-id': session === undefined ? undefined : unknownSession
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

export interface Expected {
  readonly status: number
  /** `error.data.reason`, and `error.code`; undefined where there is a result or nothing. */
  readonly reason?: string
  readonly code?: number
  readonly era: 'legacy' | 'modern'
  /** Does `tools/call` reach the upstream? */
  readonly reached?: true
}

type Row = readonly [fits: boolean, expected: Expected]

export function expectedOf(given: Case): Expected {
  const { version, methodHeader, nameHeader, accept, shape, method, meta } = given
  const modernHeader = version === '2026-07-28' || version === '2027-01-01'
  const carriesMeta = ['request', 'notification', 'without jsonrpc', 'with a null id'].includes(shape)
  const claims = carriesMeta && meta !== undefined && !['no object', 'empty', 'without version'].includes(meta)
  const wellFormed =
    claims &&
    ![
      'version no text',
      'without capabilities',
      'capabilities a list',
      'clientInfo without name',
      'wrong log level'
    ].includes(meta)
  const named = !wellFormed ? undefined : meta.startsWith('of ') ? meta.slice(3) : '2026-07-28'
  const asks = shape === 'request' || shape === 'without params'
  const refused = (status: number, code: number, reason: string): Expected => ({ status, code, reason, era: 'modern' })
  const rows: Row[] = [
    [shape === 'empty array' || shape === 'array with a modern message', refused(400, -32600, 'invalid_request')],
    [!modernHeader && !claims, legacy(given)],
    [shape === 'notification', { status: 202, era: 'modern' }],
    [!asks, refused(400, -32600, 'invalid_request')],
    [
      method === 'initialize' && named !== '2026-07-28',
      modernHeader ? refused(400, -32020, 'header_mismatch') : legacy(given)
    ],
    [!wellFormed, refused(400, -32602, 'invalid_envelope')],
    [version !== named, refused(400, -32020, 'header_mismatch')],
    [named !== '2026-07-28', refused(400, -32022, 'unsupported_revision')],
    [methodHeader !== 'right', refused(400, -32020, 'header_mismatch')],
    [
      method === 'tools/call' && nameHeader !== 'right' && nameHeader !== 'in base64',
      refused(400, -32020, 'header_mismatch')
    ],
    [!['tools/call', 'tools/list', 'server/discover'].includes(method), refused(404, -32601, 'unknown_method')],
    [accept === 'image/png', refused(406, 406, 'not_acceptable')],
    [true, { status: 200, era: 'modern', ...(method === 'tools/call' ? { reached: true } : {}) }]
  ]
  return rows.find(([fits]) => fits)?.[1] ?? { status: 0, era: 'modern' }
}

/** What a legacy client without a session, or with an unknown one, is answered. */
function legacy({ version, accept, shape, method, session }: Case): Expected {
  const refused = (status: number, code: number, reason: string): Expected => ({ status, code, reason, era: 'legacy' })
  const rows: Row[] = [
    [version !== undefined && version !== '2025-06-18', refused(400, -32600, 'unsupported_version')],
    [accept === 'image/png', refused(406, 406, 'not_acceptable')],
    [
      ['without jsonrpc', 'with a null id', 'with listed params', 'text'].includes(shape),
      refused(400, -32600, 'invalid_request')
    ],
    [shape === 'without params' && method === 'initialize', refused(200, -32602, 'invalid_params')],
    [shape === 'request' && method === 'initialize', { status: 200, era: 'legacy' }],
    [session === undefined, refused(400, -32600, 'session_required')],
    [true, refused(404, 404, 'session_unknown')]
  ]
  return rows.find(([fits]) => fits)?.[1] ?? { status: 0, era: 'legacy' }
}

/**
 * The id of a request is in every error about it; a notification, a response and what cannot be read have none to give.
 */
export const echoes = ({ shape }: Case): boolean =>
  ['request', 'without params', 'without jsonrpc', 'with listed params'].includes(shape)
