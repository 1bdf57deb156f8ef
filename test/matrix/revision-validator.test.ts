// The validators of the matrix see what came after their revision, and nothing else.

import t from 'tap'
import type { Revision } from '../../src/protocol/messages.ts'
import { revisionValidator } from './revision-validator.ts'

const revisions: readonly Revision[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28']

/** Which revisions have nothing against it. */
const known = (faults: (revision: Revision) => string[]): Revision[] =>
  revisions.filter((revision) => faults(revision).length === 0)
const from = (first: Revision): Revision[] => revisions.filter((revision) => revision >= first)
const legacyFrom = (first: Revision): Revision[] => from(first).filter((revision) => revision !== '2026-07-28')

/** As both eras would send it. */
const resultFor = (revision: Revision, result: object): object =>
  revision === '2026-07-28' ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private', ...result } : result
const callResultFor = (revision: Revision, result: object): object =>
  revision === '2026-07-28' ? { resultType: 'complete', ...result } : result

t.test('members of tools', async (t) => {
  const listed = (members: object): Revision[] =>
    known((revision) =>
      revisionValidator(revision).result(
        'tools/list',
        resultFor(revision, { tools: [{ name: 'x', inputSchema: { type: 'object', $schema: 'kept' }, ...members }] })
      )
    )
  t.same(listed({}), revisions)
  t.same(listed({ annotations: {} }), from('2025-03-26'))
  t.same(listed({ title: 'X' }), from('2025-06-18'))
  t.same(listed({ icons: [] }), from('2025-11-25'))
  t.same(listed({ execution: {} }), legacyFrom('2025-11-25'))
  t.same(listed({ outputSchema: { type: 'object' } }), from('2025-06-18'))
  t.same(listed({ outputSchema: { type: 'array' } }), from('2026-07-28'))
})

t.test('results', async (t) => {
  const got = (result: object): Revision[] =>
    known((revision) => revisionValidator(revision).result('tools/call', callResultFor(revision, result)))
  t.same(got({ content: [] }), revisions)
  t.same(got({ content: [{ type: 'audio', data: '', mimeType: 'audio/wav' }] }), from('2025-03-26'))
  t.same(got({ content: [{ type: 'resource_link', uri: 'a:b', name: 'x' }] }), from('2025-06-18'))
  t.same(got({ content: [], structuredContent: {} }), from('2025-06-18'))
  t.same(got({ content: [], structuredContent: [] }), from('2026-07-28'))
  t.same(
    known((revision) => revisionValidator(revision).result('tools/call', { resultType: 'complete', content: [] })),
    from('2026-07-28'),
    'the type of a result'
  )
  t.same(
    known((revision) => revisionValidator(revision).result('tools/call', { content: [] })),
    legacyFrom('2024-11-05'),
    'which is not optional there'
  )
  t.same(
    known((revision) =>
      revisionValidator(revision).result('tools/call', { resultType: 'input_required', requestState: 'x' })
    ),
    from('2026-07-28')
  )
  t.same(
    known((revision) =>
      revisionValidator(revision).result(
        'tools/call',
        callResultFor(revision, {
          content: [],
          _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'x', version: '1' } }
        })
      )
    ),
    from('2026-07-28')
  )
  t.same(
    known((revision) => revisionValidator(revision).result('ping', { more: 1 })).filter(
      (revision) => revision !== '2026-07-28'
    ),
    [],
    'an empty result is empty'
  )
})

t.test('methods, in each direction', async (t) => {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {}
  }
  const request =
    (method: string, params: object = {}) =>
    (revision: Revision): string[] =>
      revisionValidator(revision).fromClient({
        jsonrpc: '2.0',
        id: 1,
        method,
        params: { ...params, ...(revision === '2026-07-28' && { _meta: meta }) }
      })
  t.same(known(request('tools/list')), revisions)
  t.same(known(request('resources/subscribe', { uri: 'a:b' })), legacyFrom('2024-11-05'))
  t.same(known(request('tasks/result', { taskId: 'x' })), ['2025-11-25'])
  t.same(known(request('server/discover')), ['2026-07-28'])
  t.same(known(request('tools/call', { name: 'x', task: {} })), ['2025-11-25'])
  t.same(
    known((revision) =>
      revisionValidator(revision).fromClient({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: meta } })
    ),
    ['2026-07-28'],
    'the envelope'
  )

  const asked =
    (method: string, params: object) =>
    (revision: Revision): string[] =>
      revisionValidator(revision).fromServer({ jsonrpc: '2.0', id: 1, method, params })
  t.same(known(asked('roots/list', {})), legacyFrom('2024-11-05'))
  t.same(
    known(asked('elicitation/create', { message: 'who?', requestedSchema: { type: 'object', properties: {} } })),
    legacyFrom('2025-06-18')
  )
  t.same(
    known(asked('elicitation/create', { mode: 'url', elicitationId: 'x', message: 'go', url: 'https://example.com' })),
    ['2025-11-25']
  )
  const told =
    (method: string, params: object) =>
    (revision: Revision): string[] =>
      revisionValidator(revision).fromServer({ jsonrpc: '2.0', method, params })
  t.same(known(told('notifications/progress', { progressToken: 1, progress: 1 })), revisions)
  t.same(known(told('notifications/progress', { progressToken: 1, progress: 1, message: 'm' })), from('2025-03-26'))
  t.same(known(told('notifications/elicitation/complete', { elicitationId: 'x' })), ['2025-11-25'])
})

t.test('error codes', async (t) => {
  const got =
    (code: number, data?: unknown) =>
    (revision: Revision): string[] =>
      revisionValidator(revision).error({ code, message: 'm', ...(data !== undefined && { data }) })
  t.same(known(got(-32_602)), revisions)
  t.same(known(got(-32_002)), legacyFrom('2024-11-05'))
  t.same(known(got(-32_021)), from('2026-07-28'))
  t.same(known(got(-32_042, { elicitations: [] })), ['2025-11-25'])
})
