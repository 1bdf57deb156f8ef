// Server requests as the client of an endpoint gets them.

import t from 'tap'
import type { Endpoint } from '../../src/config/snapshot.ts'
import { endpointName, type Revision, RpcError, tenantId, upstreamName } from '../../src/protocol/messages.ts'
import { shapeServerRequest } from '../../src/relay/client/server-messages.ts'

const endpoint = (...names: string[]): Endpoint => ({
  name: endpointName('default'),
  tenant: tenantId('acme'),
  path: '/t/acme/mcp',
  members: names.map((name) => ({ upstream: upstreamName(name), prefix: name })),
  separator: '__',
  instructions: undefined,
  policy: undefined
})

t.test('URIs in sampling messages lead back through the endpoint', async (t) => {
  const asked = { revision: '2025-11-25', capabilities: { sampling: { tools: {} } } } as const
  const params = (link: string, embedded: string) => ({
    maxTokens: 7,
    messages: [
      { role: 'user', content: { type: 'resource_link', uri: link, name: 'n' } },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            toolUseId: 'a',
            content: [
              { type: 'resource_link', uri: link, name: 'n' },
              { type: 'resource', resource: { uri: embedded, text: link } }
            ]
          },
          { type: 'text', text: link }
        ]
      }
    ]
  })
  const own = params('file:///a', 'ui://app/b')
  const shape = (at: Endpoint) =>
    shapeServerRequest({ method: 'sampling/createMessage', params: own }, upstreamName('one'), at, asked).params
  t.same(shape(endpoint('one')), own, 'of a single upstream they are as they were')
  const shown = shape(endpoint('one', 'two'))
  const expected = params('gatehouse://one/file:///a', 'ui://one/app/b')
  const texts = JSON.parse(
    JSON.stringify(expected).replaceAll('"text":"gatehouse://one/file:///a"', '"text":"file:///a"')
  )
  t.same(shown, texts, 'texts stay')
  t.same(
    shapeServerRequest(
      { method: 'sampling/createMessage', params: { ...own, includeContext: 'allServers' } },
      upstreamName('one'),
      endpoint('one', 'two'),
      asked
    ).params,
    { ...texts, includeContext: 'none' }
  )
})

t.test('several blocks of content in one message are as many messages to clients that know one', async (t) => {
  const [text, image, audio] = [
    { type: 'text', text: 'a' },
    { type: 'image', data: 'AA==', mimeType: 'image/png' },
    { type: 'audio', data: 'AA==', mimeType: 'audio/wav' }
  ]
  const shape = (revision: Revision, ...messages: unknown[]) =>
    shapeServerRequest(
      { method: 'sampling/createMessage', params: { maxTokens: 7, messages } },
      upstreamName('one'),
      endpoint('one'),
      { revision, capabilities: { sampling: {} } }
    ).params?.['messages']
  const both = { role: 'user', content: [text, image], 'x-kept': 1 }
  for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18'] as const) {
    t.same(
      shape(revision, both, { role: 'assistant', content: text }),
      [
        { ...both, content: text },
        { ...both, content: image },
        { role: 'assistant', content: text }
      ],
      revision
    )
    if (revision === '2024-11-05') t.throws(() => shape(revision, { role: 'user', content: audio }), RpcError)
    else t.same(shape(revision, { role: 'user', content: audio }), [{ role: 'user', content: audio }])
    t.throws(
      () => shape(revision, { role: 'user', content: [{ type: 'tool_result', toolUseId: 'a', content: [] }] }),
      RpcError
    )
  }
  t.same(shape('2025-11-25', both), [both])
})

t.test('a server that asks for more than was declared is told what is missing', (t) => {
  const ask =
    (method: string, params: Record<string, unknown>, revision: Revision, capabilities: Record<string, unknown>) =>
    () =>
      shapeServerRequest({ method, params }, upstreamName('one'), endpoint('one'), { revision, capabilities })
  const page = { mode: 'url', elicitationId: 'e', message: 'm', url: 'https://up.example/' }
  const form = { message: 'm', requestedSchema: { type: 'object', properties: {} } }
  const tools = { messages: [], maxTokens: 1, tools: [] }
  for (const [method, params, revision, capabilities, missing] of [
    ['elicitation/create', page, '2025-11-25', { elicitation: {} }, 'elicitation.url'],
    ['elicitation/create', page, '2025-06-18', { elicitation: { url: {} } }, 'elicitation.url'],
    ['elicitation/create', form, '2025-11-25', { elicitation: { url: {} } }, 'elicitation.form'],
    ['sampling/createMessage', tools, '2025-11-25', { sampling: {} }, 'sampling.tools']
  ] as const)
    t.throws(ask(method, params, revision, capabilities), {
      name: 'RpcError',
      message: new RegExp(`did not declare.*${revision}.*"${missing}"`)
    })
  t.same(ask('elicitation/create', page, '2025-11-25', { elicitation: { url: {} } })().params, page)
  t.same(ask('elicitation/create', form, '2025-11-25', { elicitation: {} })().params, form)
  t.same(ask('sampling/createMessage', tools, '2025-11-25', { sampling: { tools: {} } })().params, tools)
  t.end()
})

t.test('an elicitation is of form or URL mode, and only URL mode has a URL', async (t) => {
  const shape = (params: Record<string, unknown>, revision: Revision = '2025-11-25') =>
    shapeServerRequest(
      { method: 'elicitation/create', params: { message: 'm', ...params } },
      upstreamName('one'),
      endpoint('one'),
      { revision, capabilities: { elicitation: { form: {}, url: {} } } }
    ).params
  const requestedSchema = { type: 'object', properties: {} }
  for (const mode of ['URL', ['url'], 7, null, ''])
    t.throws(() => shape({ mode, url: 'javascript:alert(1)', requestedSchema }), RpcError, String(mode))
  t.same(shape({ mode: 'url', url: 'https://example.com/', elicitationId: 'a' }), {
    message: 'm',
    mode: 'url',
    url: 'https://example.com/',
    elicitationId: 'a'
  })
  for (const mode of [{}, { mode: 'form' }])
    t.same(shape({ ...mode, url: 'javascript:alert(1)', requestedSchema, 'x-kept': 1 }), {
      message: 'm',
      ...mode,
      requestedSchema,
      'x-kept': 1
    })
  t.same(shape({ mode: 'form', url: 'javascript:alert(1)', requestedSchema }, '2025-06-18'), {
    message: 'm',
    requestedSchema
  })
})
