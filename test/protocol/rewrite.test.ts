// The only hands inside requests and results: they change what they must, share the rest, and leave the original alone.

import fc from 'fast-check'
import t from 'tap'
import type { JsonObject } from '../../src/protocol/messages.ts'
import {
  rewriteReadResult,
  withUri,
  rewriteMessages,
  rewriteTool,
  rewriteToolResult,
  withParam
} from '../../src/protocol/translate/rewrite.ts'
import { runs } from '../kit/runs.ts'

const same = (uri: string) => uri
const marked = (uri: string) => `up:${uri}`
const frozen = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) frozen(member)
    Object.freeze(value)
  }
  return value
}
const anyObject = fc.dictionary(fc.string(), fc.jsonValue()) as fc.Arbitrary<JsonObject>

t.test('nothing to map: the very same object comes back, whatever it holds', async () => {
  const rewriters: Array<(value: JsonObject) => JsonObject> = [
    (value) => rewriteToolResult(value, same),
    (value) => rewriteMessages(value, same),
    (value) => rewriteReadResult(value, same),
    (value) => rewriteTool(value, 'x', same),
    (value) => withUri(value, 'uri', same)
  ]
  const member = fc.constantFrom('content', 'messages', 'contents', 'uri', '_meta', 'type', 'resource')
  fc.assert(
    fc.property(fc.dictionary(member, fc.jsonValue()), anyObject, (known, rest) => {
      const value = frozen({ ...rest, ...known, name: 'x' })
      return rewriters.every((rewrite) => rewrite(value) === value)
    }),
    { numRuns: runs(1_000) }
  )
})

t.test('URIs of links and embedded resources are mapped, in tools and prompts; everything else stays', async (t) => {
  const link = { type: 'resource_link', uri: 'a', name: 'n', icons: [{ src: 'b' }], x: 1 }
  const embedded = {
    type: 'resource',
    resource: { uri: 'c', text: 'resource_link a', nested: { uri: 'd' } },
    annotations: {}
  }
  const others = [
    { type: 'text', text: 'a', uri: 'a' },
    { type: 'hologram', uri: 'a' },
    null,
    7,
    'a',
    [link],
    { type: 'resource', resource: 'a' },
    { type: 'resource_link', uri: 7 }
  ]
  const expected = [
    { ...link, uri: 'up:a' },
    { ...embedded, resource: { ...embedded.resource, uri: 'up:c' } },
    ...others
  ]

  const tool = frozen({
    content: [link, embedded, ...others],
    structuredContent: { uri: 'a' },
    isError: true,
    _meta: { uri: 'a' }
  })
  const result = rewriteToolResult(tool, marked)
  t.same(result, { ...tool, content: expected })
  t.equal(result['structuredContent'], tool.structuredContent, 'shared, not copied')

  const prompt = frozen({
    messages: [{ role: 'user', content: link, x: 1 }, { role: 'user', content: [embedded] }, { role: 'user' }, null],
    description: 'a'
  })
  t.same(rewriteMessages(prompt, marked), {
    ...prompt,
    messages: [
      { role: 'user', content: expected[0], x: 1 },
      { role: 'user', content: [expected[1]] },
      { role: 'user' },
      null
    ]
  })

  const nested = {
    type: 'tool_result',
    toolUseId: 'a',
    content: [link, embedded, ...others],
    structuredContent: { uri: 'a' }
  }
  const sampling = frozen({
    messages: [
      { role: 'user', content: [nested, link] },
      { role: 'user', content: nested },
      { role: 'user', content: { type: 'tool_result', content: 'a' } }
    ],
    maxTokens: 7,
    systemPrompt: 'a'
  })
  t.same(
    rewriteMessages(sampling, marked),
    {
      ...sampling,
      messages: [
        { role: 'user', content: [{ ...nested, content: expected }, expected[0]] },
        { role: 'user', content: { ...nested, content: expected } },
        sampling.messages[2]
      ]
    },
    'also in results of tools that a server shows a model'
  )

  const read = frozen({ contents: [{ uri: 'a', text: 'a' }, { text: 'no uri' }, null], ttlMs: 1 })
  t.same(rewriteReadResult(read, marked), {
    contents: [{ uri: 'up:a', text: 'a' }, { text: 'no uri' }, null],
    ttlMs: 1
  })
})

t.test('entries of lists get their public name and URI; an MCP App keeps its view', async (t) => {
  const tool = frozen({
    name: 'draw',
    title: 'Draw',
    inputSchema: { properties: { uri: { type: 'string' } } },
    _meta: { ui: { resourceUri: 'ui://app/x', csp: {} }, 'ui/resourceUri': 'ui://app/x', other: 'ui://app/x' }
  })
  t.same(rewriteTool(tool, 'up__draw', marked), {
    ...tool,
    name: 'up__draw',
    _meta: { ui: { resourceUri: 'up:ui://app/x', csp: {} }, 'ui/resourceUri': 'up:ui://app/x', other: 'ui://app/x' }
  })
  t.same(rewriteTool(frozen({ name: 'x', _meta: 7 }), 'y', marked), { name: 'y', _meta: 7 })
  t.same(withUri(frozen({ uri: 'a', name: 'a' }), 'uri', marked), { uri: 'up:a', name: 'a' })
  t.same(withUri(frozen({ uriTemplate: 'a/{b}', uri: 'a' }), 'uriTemplate', marked), {
    uriTemplate: 'up:a/{b}',
    uri: 'a'
  })
})

t.test('a request gets one member replaced and keeps the others, hostile keys included', async (t) => {
  const request = frozen({
    method: 'tools/call',
    params: JSON.parse(
      '{"name":"up__x","arguments":{"__proto__":1},"__proto__":{"name":"y"},"_meta":{"a":1}}'
    ) as JsonObject
  })
  const next = withParam(request, 'name', 'x')
  t.equal(
    JSON.stringify(next),
    '{"method":"tools/call","params":{"name":"x","arguments":{"__proto__":1},"__proto__":{"name":"y"},"_meta":{"a":1}}}'
  )
  t.equal(request.params['name'], 'up__x')
  t.same(withParam({ method: 'm' }, 'name', 'x'), { method: 'm', params: { name: 'x' } })
  t.same(
    withParam(
      { method: 'completion/complete', params: { ref: { type: 'ref/prompt' }, argument: { name: 'a' } } },
      'ref',
      { type: 'ref/prompt', name: 'x' }
    ).params,
    { ref: { type: 'ref/prompt', name: 'x' }, argument: { name: 'a' } }
  )
})
