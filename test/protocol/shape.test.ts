// What a client's revision does not know is converted or left out, and nothing else is touched.

import fc from 'fast-check'
import t from 'tap'
import { type JsonObject, type LegacyRevision, legacyRevisions } from '../../src/protocol/messages.ts'
import {
  shapeCapabilities,
  shapeCompletion,
  shapeEntry,
  shapeNotification,
  shapePromptResult,
  shapeTool,
  shapeToolResult
} from '../../src/protocol/translate/revision-shape.ts'
import { runs } from '../kit/runs.ts'

const [r24, r0326, r0618, r1125] = legacyRevisions
const frozen = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) frozen(member)
    Object.freeze(value)
  }
  return value
}

const revision = fc.constantFrom(...legacyRevisions)
const block = fc.oneof(
  fc.record({ type: fc.constant('text'), text: fc.string() }),
  fc.record({ type: fc.constant('image'), data: fc.base64String(), mimeType: fc.constant('image/png') }),
  fc.record({ type: fc.constant('audio'), data: fc.base64String(), mimeType: fc.constant('audio/wav') }),
  fc.record({ type: fc.constant('resource_link'), uri: fc.webUrl(), name: fc.string() }, { requiredKeys: ['type'] }),
  fc.record({ type: fc.constant('resource'), resource: fc.record({ uri: fc.webUrl(), text: fc.string() }) }),
  fc.jsonValue()
) as fc.Arbitrary<unknown>
const anyObject = fc.dictionary(fc.string(), fc.jsonValue()) as fc.Arbitrary<JsonObject>
const toolResult = fc
  .tuple(
    anyObject,
    fc.record(
      { content: fc.array(block), structuredContent: fc.jsonValue(), isError: fc.boolean(), _meta: anyObject },
      { requiredKeys: [] }
    )
  )
  .map(([rest, known]) => frozen({ ...rest, ...known }) as JsonObject)
const entry = fc
  .tuple(
    anyObject,
    fc.dictionary(
      fc.constantFrom('title', 'icons', 'annotations', 'outputSchema', 'execution', '_meta', 'x-own'),
      fc.jsonValue()
    )
  )
  .map(([rest, known]) => frozen({ ...rest, ...known, name: 'x' }) as JsonObject)

/** Content types that each revision has. */
const known: Record<LegacyRevision, readonly string[]> = {
  [r24]: ['text', 'image', 'resource'],
  [r0326]: ['text', 'image', 'audio', 'resource'],
  [r0618]: ['text', 'image', 'audio', 'resource', 'resource_link'],
  [r1125]: ['text', 'image', 'audio', 'resource', 'resource_link']
}
const newer: ReadonlySet<unknown> = new Set(['audio', 'resource_link'])
const typesOf = ({ content }: JsonObject): unknown[] =>
  (Array.isArray(content) ? (content as unknown[]) : []).map((each) =>
    typeof each === 'object' && each !== null ? (each as JsonObject)['type'] : undefined
  )

t.test('for a client of the latest revision everything is the very same object', async (t) => {
  fc.assert(
    fc.property(
      toolResult,
      entry,
      (result, listed) =>
        shapeToolResult(result, r1125) === result &&
        shapePromptResult(result, r1125) === result &&
        shapeTool(listed, r1125) === listed &&
        shapeEntry(listed, r1125) === listed &&
        shapeCapabilities(listed, r1125) === listed
    ),
    { numRuns: runs(500) }
  )
  t.pass()
})

t.test('whatever a server sends, no content type newer than the revision is left, and no block is lost', async (t) => {
  fc.assert(
    fc.property(toolResult, revision, (result, at) => {
      const shaped = shapeToolResult(result, at)
      const before = typesOf(result)
      const after = typesOf(shaped)
      const added = after.length - before.length
      return (
        !after.some((type) => newer.has(type) && !known[at].includes(String(type))) &&
        (added === 0 || (added === 1 && at < r0618)) &&
        (at >= r0618 || !('structuredContent' in shaped)) &&
        shaped['isError'] === result['isError'] &&
        shaped['_meta'] === result['_meta']
      )
    }),
    { numRuns: runs(2_000) }
  )
  t.pass()
})

t.test('shaping for a newer revision first changes nothing of what an older one gets', async (t) => {
  fc.assert(
    fc.property(toolResult, entry, revision, revision, (result, listed, a, b) => {
      const [older, later] = a < b ? [a, b] : [b, a]
      const text = (value: unknown): string => JSON.stringify(value)
      return (
        text(shapeToolResult(shapeToolResult(result, later), older)) === text(shapeToolResult(result, older)) &&
        text(shapeTool(shapeTool(listed, later), older)) === text(shapeTool(listed, older)) &&
        text(shapeEntry(shapeEntry(listed, later), older)) === text(shapeEntry(listed, older))
      )
    }),
    { numRuns: runs(1_000) }
  )
  t.pass()
})

t.test('members of a list', async (t) => {
  const tool = frozen({
    name: 'x',
    title: 'X',
    description: 'x',
    inputSchema: {},
    outputSchema: {},
    annotations: {},
    execution: {},
    icons: [],
    _meta: {},
    'x-own': 1
  })
  const { execution: _e, icons: _i, ...at0618 } = tool
  const { title: _t, outputSchema: _o, _meta: _m, ...at0326 } = at0618
  const { annotations: _a, ...at24 } = at0326
  t.same(
    [r1125, r0618, r0326, r24].map((at) => shapeTool(tool, at)),
    [tool, at0618, at0326, at24]
  )
  const resource = frozen({ uri: 'a:b', name: 'x', title: 'X', annotations: {}, size: 1, icons: [], _meta: {} })
  t.same(
    shapeEntry(resource, r24),
    { uri: 'a:b', name: 'x', annotations: {}, size: 1 },
    'annotations of resources are as old as MCP'
  )
  const prompt = frozen({
    name: 'x',
    arguments: [{ name: 'a', title: 'A', description: 'd', required: true, _meta: {}, 'x-own': 1 }, 7]
  })
  const older = { name: 'x', arguments: [{ name: 'a', description: 'd', required: true, 'x-own': 1 }, 7] }
  t.same(
    [r1125, r0618, r0326, r24].map((at) => shapeEntry(prompt, at)),
    [prompt, prompt, older, older]
  )
})

t.test('content that a revision has not keeps what can be followed', async (t) => {
  const link = { type: 'resource_link', uri: 'a:b', name: 'n', title: 'T', description: 'D' }
  const audio = { type: 'audio', data: 'YQ==', mimeType: 'audio/wav' }
  const result = frozen({ content: [link, audio], structuredContent: { a: 1 } })
  t.equal(shapeToolResult(result, r0618), result)
  t.same(
    shapeToolResult(result, r0326),
    { content: [{ type: 'text', text: 'T\nD\na:b' }, audio] },
    'text is there already, if only that of the link'
  )
  t.same(shapeToolResult(result, r24)['content'], [
    { type: 'text', text: 'T\nD\na:b' },
    { type: 'resource', resource: { uri: 'data:,audio', mimeType: 'audio/wav', blob: 'YQ==' } }
  ])
  t.same(
    shapeToolResult({ content: [], structuredContent: { a: 1 } }, r0326),
    { content: [{ type: 'text', text: '{"a":1}' }] },
    'structured content alone becomes text'
  )
  t.same(
    shapePromptResult(
      frozen({ messages: [{ role: 'user', content: link }, { role: 'user', content: audio }, 7], description: 'd' }),
      r0326
    ),
    {
      messages: [{ role: 'user', content: { type: 'text', text: 'T\nD\na:b' } }, { role: 'user', content: audio }, 7],
      description: 'd'
    }
  )
})

t.test('progress, completion and capabilities', async (t) => {
  const progress = frozen({ method: 'notifications/progress', params: { progressToken: 1, progress: 1, message: 'm' } })
  t.same(shapeNotification(progress, r24), {
    method: 'notifications/progress',
    params: { progressToken: 1, progress: 1 }
  })
  t.equal(shapeNotification(progress, r0326), progress)

  const values = (count: number): string[] => Array.from({ length: count }, (_, at) => String(at))
  const few = frozen({ completion: { values: values(100), hasMore: false } })
  t.equal(shapeCompletion(few), few)
  t.same(shapeCompletion(frozen({ completion: { values: values(101), hasMore: false }, _meta: {} })), {
    completion: { values: values(100), total: 101, hasMore: true },
    _meta: {}
  })
  t.same(shapeCompletion({ completion: { values: values(200), total: 1_000 } }), {
    completion: { values: values(100), total: 1_000, hasMore: true }
  })
  for (const odd of [{}, { completion: null }, { completion: { values: 'x' } }]) t.equal(shapeCompletion(odd), odd)

  t.same(shapeCapabilities({ tools: {}, tasks: {} }, r0618), { tools: {} })
  t.same(shapeCapabilities({ tools: {}, tasks: {} }, r1125), { tools: {}, tasks: {} })
  t.same(
    [r0326, r24].map((at) => shapeCapabilities({ completions: {} }, at)),
    [{ completions: {} }, {}],
    'clients of 2024-11-05 ask without being told that they may'
  )
})
