// Structured output that only 2026-07-28 knows, for clients of each older revision: what the schema in the list says is
// what comes.

import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { gateway, key } from '../../kit/gateway.ts'
import type { Json } from '../../kit/server-request.ts'
import { modernRequest } from '../../kit/modern-client.ts'
import { startModern } from '../../kit/modern-server.ts'
import { legacyTransports, legacyRevisions, answeringClient } from '../../kit/answering-client.ts'

const person = {
  type: 'object',
  properties: { name: { type: 'string' }, friends: { type: 'array', items: { $ref: '#/$defs/person' } } },
  required: ['name']
}
const schemas: Record<string, { schema: Json | undefined; value: unknown; wrong?: unknown }> = {
  list: {
    schema: { type: 'array', items: { $ref: '#/$defs/person' }, $defs: { person } },
    value: [{ name: 'ada', friends: [{ name: 'bob' }] }],
    wrong: [{ friends: [] }]
  },
  number: {
    schema: { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'number' },
    value: 7,
    wrong: 'seven'
  },
  nothing: { schema: { type: 'null' }, value: null, wrong: 0 },
  either: {
    schema: { oneOf: [{ type: 'object', required: ['a'] }, { type: 'boolean' }] },
    value: { a: 1 },
    wrong: { b: 1 }
  },
  object: {
    schema: { type: 'object', properties: { a: { $ref: '#/$defs/n' } }, $defs: { n: { type: 'number' } } },
    value: { a: 1 },
    wrong: { a: 'x' }
  },
  free: { schema: undefined, value: ['anything'] },
  open: { schema: undefined, value: { any: 'thing' } }
}
const up = await startModern({
  capabilities: { tools: {} },
  tools: Object.entries(schemas).map(([name, { schema }]) => ({
    name,
    inputSchema: { type: 'object' },
    ...(schema === undefined ? {} : { outputSchema: schema })
  }))
})
t.teardown(() => up.close())
const acme = await gateway(t, {
  upstreams: { up: { type: 'http', url: up.url, era: 'modern' } },
  endpoints: { default: { upstreams: ['up'], prefix: '' }, named: { upstreams: ['up'], prefix: 'p' } }
})

/** The next call is answered with this. */
function answering(result: Json): void {
  up.override(
    ({ message }) => message?.['method'] === 'tools/call',
    (response, { message }) => {
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result: { resultType: 'complete', ...result } }))
    }
  )
}
const wrapped = new Set(['list', 'number', 'nothing', 'either'])

for (const transport of legacyTransports) {
  for (const revision of legacyRevisions) {
    t.test(`${revision} over ${transport}`, async (t) => {
      for (const endpoint of ['default', 'named']) {
        const client = await answeringClient(acme.url(endpoint), key, transport, revision)
        const { tools } = (await client.request('tools/list'))['result'] as { tools: Json[] }
        for (const [name, { schema, value, wrong }] of Object.entries(schemas)) {
          const shown = endpoint === 'named' ? `p__${name}` : name
          const listed = tools.find((tool) => tool['name'] === shown)
          answering({ content: [], structuredContent: value })
          const { result } = (await client.request('tools/call', { name: shown, arguments: {} })) as { result: Json }
          t.notOk('resultType' in result)
          if (revision < '2025-06-18') {
            t.notOk(listed?.['outputSchema'])
            t.notOk('structuredContent' in result)
            t.same(
              result['content'].map(({ text }: Json) => JSON.parse(String(text)) as unknown),
              [value]
            )
            continue
          }
          const whole = wrapped.has(name) || name === 'free'
          t.same(result['structuredContent'], whole ? { result: value } : value, name)
          if (whole)
            t.same(
              result['content'].map(({ text }: Json) => JSON.parse(String(text)) as unknown),
              [value],
              'and as text, since there was none'
            )
          if (schema === undefined) t.notOk(listed?.['outputSchema'])
          else {
            t.equal(listed?.['outputSchema'].type, 'object')
            const validate = new Ajv2020({ strict: false }).compile(listed?.['outputSchema'] as Json)
            t.ok(validate(result['structuredContent']), `${name} is what its schema says`)
            t.notOk(validate(wrapped.has(name) ? { result: wrong } : wrong), 'which says something')
          }
        }
        client.close()
      }
    })
  }
}

t.test('a client of 2026-07-28 gets all of it as it is', async (t) => {
  const { tools } = (await modernRequest(acme.url(), 'tools/list', {}, { token: key })).json.result as {
    tools: Json[]
  }
  for (const [name, { schema, value }] of Object.entries(schemas)) {
    t.same(tools.find((tool) => tool['name'] === name)?.['outputSchema'], schema)
    answering({ content: [], structuredContent: value })
    t.same((await modernRequest(acme.url(), 'tools/call', { name, arguments: {} }, { token: key })).json.result, {
      resultType: 'complete',
      content: [],
      structuredContent: value,
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'gatehouse', version: '0.0.0-test' } }
    })
  }
})

t.test('content that a revision does not know is made of what it knows', async (t) => {
  const content = [
    { type: 'audio', data: 'AA==', mimeType: 'audio/wav' },
    { type: 'resource_link', uri: 'test://one', name: 'one' }
  ]
  for (const revision of legacyRevisions) {
    const client = await answeringClient(acme.url(), key, 'Streamable HTTP', revision)
    answering({ content })
    const { result } = (await client.request('tools/call', { name: 'open', arguments: {} })) as { result: Json }
    t.same(
      result['content'].map(({ type }: Json) => String(type)),
      [revision === '2024-11-05' ? 'resource' : 'audio', revision < '2025-06-18' ? 'text' : 'resource_link']
    )
  }
})
