// A client of each revision before a server of the latest one, and the other way round: what is sent is what the
// client's revision knows.

import t, { type Test } from 'tap'
import { legacyClient } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import { startUpstream, isMethod, type HttpUpstream } from '../kit/upstream.ts'

const revisions = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const
const entry = {
  title: 'T',
  icons: [{ src: 'https://example.com/i.png' }],
  _meta: { 'x/y': 1 },
  'x-unknown': { kept: true }
}
const tool = {
  name: 'content',
  ...entry,
  description: 'd',
  inputSchema: { type: 'object' },
  outputSchema: { type: 'object' },
  annotations: { readOnlyHint: true },
  execution: { taskSupport: 'optional' }
}
const argument = {
  name: 'who',
  title: 'Who',
  _meta: { 'x/y': 1 },
  description: 'd',
  required: true,
  'x-unknown': { kept: true }
}
const prompt = { name: 'greet', ...entry, arguments: [argument, 'odd'] }
const resource = { uri: 'test://one', name: 'one', ...entry, annotations: { priority: 1 } }
const template = { uriTemplate: 'test://{id}', name: 'item', ...entry }

async function house(
  t: Test,
  script: Parameters<typeof startUpstream>[0]
): Promise<{ upstream: HttpUpstream; url: string }> {
  const upstream = await startUpstream(script)
  t.teardown(() => upstream.close())
  const made = await gateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } }
  })
  return { upstream, url: made.url() }
}
const left = (object: object, ...members: string[]): object =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !members.includes(name)))

t.test('lists, calls, prompts and completion', async (t) => {
  const { upstream, url } = await house(t, {
    tools: [tool],
    prompts: [prompt],
    resources: [resource],
    templates: [template]
  })
  const unknownTo = {
    '2024-11-05': {
      tool: ['annotations', 'title', 'outputSchema', '_meta', 'icons', 'execution'],
      other: ['title', '_meta', 'icons']
    },
    '2025-03-26': {
      tool: ['title', 'outputSchema', '_meta', 'icons', 'execution'],
      other: ['title', '_meta', 'icons']
    },
    '2025-06-18': { tool: ['icons', 'execution'], other: ['icons'] },
    '2025-11-25': { tool: [], other: [] }
  }
  const types = {
    '2024-11-05': ['text', 'image', 'resource', 'text', 'resource', 'hologram'],
    '2025-03-26': ['text', 'image', 'audio', 'text', 'resource', 'hologram'],
    '2025-06-18': ['text', 'image', 'audio', 'resource_link', 'resource', 'hologram'],
    '2025-11-25': ['text', 'image', 'audio', 'resource_link', 'resource', 'hologram']
  }
  upstream.override(
    isMethod('prompts/get'),
    (response, { message }) => {
      response.setHeader('content-type', 'application/json').end(
        JSON.stringify({
          jsonrpc: '2.0',
          id: message?.['id'],
          result: { messages: [{ role: 'user', content: { type: 'resource_link', uri: 'test://one', name: 'one' } }] }
        })
      )
    },
    Infinity
  )
  upstream.override(
    isMethod('completion/complete'),
    (response, { message }) => {
      response.setHeader('content-type', 'application/json').end(
        JSON.stringify({
          jsonrpc: '2.0',
          id: message?.['id'],
          result: { completion: { values: Array.from({ length: 150 }, String) } }
        })
      )
    },
    Infinity
  )

  for (const revision of [...revisions, ...revisions]) {
    const client = await legacyClient(url, key, revision)
    const ask = async (method: string, params?: unknown) => (await client.request(method, params)).json.result
    const { tool: ofTool, other } = unknownTo[revision]
    t.same((await ask('tools/list')).tools, [left(tool, ...ofTool)], revision)
    t.same((await ask('prompts/list')).prompts, [
      {
        ...left(prompt, ...other),
        arguments: [revision >= '2025-06-18' ? argument : left(argument, 'title', '_meta'), 'odd']
      }
    ])
    t.same((await ask('resources/list')).resources, [left(resource, ...other)])
    t.same((await ask('resources/templates/list')).resourceTemplates, [left(template, ...other)])
    const called = await ask('tools/call', { name: 'content' })
    t.same(
      called.content.map(({ type }: { type: string }) => type),
      types[revision]
    )
    t.equal('structuredContent' in called, revision >= '2025-06-18')
    t.equal(
      (await ask('prompts/get', { name: 'greet' })).messages[0].content.type,
      revision >= '2025-06-18' ? 'resource_link' : 'text'
    )
    const { completion } = await ask('completion/complete', {
      ref: { type: 'ref/prompt', name: 'greet' },
      argument: { name: 'a', value: '' }
    })
    t.same([completion.values.length, completion.total, completion.hasMore], [100, 150, true])
  }
})

t.test('a client of the latest revision gets a result byte for byte', async (t) => {
  const { upstream, url } = await house(t, { tools: [tool] })
  const client = await legacyClient(url, key)
  const body =
    '{"content":[{"type":"resource_link","uri":"test://one","name":"one","x":{"b":1,"a":[1e400,0.1,12345678901234567890]}}],"structuredContent":{"z":null,"a":"\\u2028"},"task":{"taskId":"no task"},"_meta":{"q":1}}'
  upstream.override(isMethod('tools/call'), (response, { message }) => {
    response
      .setHeader('content-type', 'application/json')
      .end(`{"jsonrpc":"2.0","id":${String(message?.['id'])},"result":${body}}`)
  })
  const { text } = await client.request('tools/call', { name: 'content' }, { id: 7 })
  t.equal(text, `{"jsonrpc":"2.0","id":7,"result":${body.replace('\\u2028', '\u2028')}}`)
})

t.test('a server of 2024-11-05 may complete without having declared it', async (t) => {
  const old = { revision: '2024-11-05', capabilities: { prompts: {} } }
  const params = { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'a', value: '' } }
  const { url } = await house(t, old)
  const client = await legacyClient(url, key)
  t.ok(client.initialized.json.result.capabilities.completions)
  t.same((await client.request('completion/complete', params)).json.result.completion.values, ['alpha', 'beta'])

  const unable = await house(t, {
    ...old,
    errors: { 'completion/complete': { code: -32601, message: 'no such method' } }
  })
  const answer = await (await legacyClient(unable.url, key)).request('completion/complete', params)
  t.same(answer.json.result, { completion: { values: [] } }, 'one that does not has nothing to suggest')

  const newer = await house(t, { ...old, revision: '2025-03-26' })
  const other = await legacyClient(newer.url, key)
  t.notOk(other.initialized.json.result.capabilities.completions, 'from 2025-03-26 on there is a capability')
  t.same((await other.request('completion/complete', params)).json.result, { completion: { values: [] } })
  t.notOk(newer.upstream.seen.some(isMethod('completion/complete')))
})
