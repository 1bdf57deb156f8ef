// What an endpoint leaves out of results, and how long they and the list of tools may be: in both eras, at servers of
// both.

import t, { type Test } from 'tap'
import { legacyClient } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import type { Json } from '../kit/mcp-server.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { startModern } from '../kit/modern-server.ts'
import { startUpstream } from '../kit/upstream.ts'

const tool = (name: string, outputSchema?: Json): Json => ({
  name,
  inputSchema: { type: 'object' },
  ...(outputSchema && { outputSchema })
})
const outputSchema = {
  type: 'object',
  required: ['arguments', 'meta'],
  properties: {
    arguments: { type: 'object', required: ['name', 'secret'], properties: { name: {}, secret: {} } },
    meta: { type: 'object' }
  }
}
const tools = [tool('echo', outputSchema), tool('big'), tool('fail'), tool('say')]

type Ask = (method: string, params?: Json) => Promise<Json>
type Line = Readonly<Record<string, unknown>>

async function doors(t: Test, endpoint: Json): Promise<ReadonlyArray<readonly [string, Ask, readonly Line[]]>> {
  const [old, modern] = [await startUpstream({ tools }), await startModern({ tools })]
  for (const each of [old, modern]) t.teardown(() => each.close())
  const acme = await gateway(t, {
    upstreams: { old: { type: 'http', url: old.url }, modern: { type: 'http', url: modern.url } },
    endpoints: { default: { upstreams: ['old', 'modern'], ...endpoint } }
  })
  const session = await legacyClient(acme.url(), key)
  const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
  return [
    ['a session', async (method, params = {}) => (await session.request(method, params)).json, acme.log],
    [
      '2026-07-28',
      async (method, params = {}) =>
        (await modernRequest(acme.url(), method, params, { token: key, capabilities })).json,
      acme.log
    ]
  ]
}

const args = { name: 'Ada', secret: 'canary-of-the-result', list: [{ id: 1, inner: 'canary-of-the-result' }] }
const omit = ['$.secret', '$.arguments.secret', '$.list[*].inner', '$.arguments.list[*].inner']

t.test('parts of results are left out, wherever the server repeats them, and the schema says so', async (t) => {
  for (const [era, ask] of await doors(t, { tools: { 'old/echo': { omit }, 'modern/echo': { omit } } })) {
    for (const upstream of ['old', 'modern']) {
      const { result } = await ask('tools/call', { name: `${upstream}__echo`, arguments: args })
      t.notMatch(JSON.stringify(result), /canary/, `${era}, ${upstream}`)
      t.match(result, { structuredContent: { arguments: { name: 'Ada', list: [{ id: 1 }] } } })
      t.same(JSON.parse((result as Json & { content: [{ text: string }] }).content[0].text), {
        name: 'Ada',
        list: [{ id: 1 }]
      })
    }
    const listed = (await ask('tools/list'))['result'] as { tools: Json[] }
    for (const { name, outputSchema: shown } of listed.tools)
      t.same(shown, undefined, `${String(name)}: what is left is held against no schema that wants more`)
  }
})

t.test('what cannot be looked through is refused, and what stands around JSON hides nothing in it', async (t) => {
  const change = { omit: ['$.customer.email'] }
  const withEcho = (echo: string) => `{"customer":{"name":"Ada","email":"canary-of-the-result"},"echo":${echo}}`
  for (const [era, ask] of await doors(t, { tools: { 'old/say': change, 'modern/say': change } })) {
    for (const upstream of ['old', 'modern']) {
      const say = (text: string) => ask('tools/call', { name: `${upstream}__say`, arguments: { text } })
      for (const [what, text] of [
        ['nested 70 deep', withEcho('['.repeat(70) + ']'.repeat(70))],
        ['of 250,001 values', withEcho(`[${'0,'.repeat(250_000)}0]`)]
      ] as const) {
        const { error, result } = await say(text)
        t.match(error, { data: { reason: 'upstream_protocol', upstream }, message: /for parts of it to be left/ }, what)
        t.equal(result, undefined, `${era}, ${upstream}: JSON ${what}`)
      }
      for (const text of [`\ufeff${withEcho('1')}`, `\u00a0${withEcho('1')}\u2003`, withEcho('[[[[]]]]')])
        t.match(
          (await say(text)).result,
          { content: [{ text: /^\{"customer":\{"name":"Ada"\},"echo":/ }] },
          `${era}, ${upstream}: ${JSON.stringify(text.slice(0, 4))}`
        )
      t.match((await say('[note] canary')).result, { content: [{ text: '[note] canary' }] }, 'what is no JSON is said')
    }
  }
})

t.test('a schema in which the way is plain is shown without the part', async (t) => {
  const change = { omit: ['$.arguments.secret'] }
  for (const [, ask] of await doors(t, { tools: { 'old/echo': change, 'modern/echo': change } })) {
    const listed = (await ask('tools/list'))['result'] as { tools: Json[] }
    for (const each of listed.tools.filter(({ name }) => String(name).endsWith('echo')))
      t.match(each['outputSchema'], {
        properties: { arguments: { required: ['name'], properties: { secret: undefined } } }
      })
  }
})

t.test('the tool next to it keeps all', async (t) => {
  for (const [era, ask] of await doors(t, { tools: { 'old/echo': { omit } } })) {
    const { result } = await ask('tools/call', { name: 'modern__echo', arguments: args })
    t.match(JSON.stringify(result), /canary.*canary/, era)
  }
})

t.test('of a result that is too long the caller is told, and gets nothing', async (t) => {
  const endpoint = { maxResultBytes: 2_000, tools: { 'old/big': { maxResultBytes: 5_000 } } }
  for (const [era, ask, log] of await doors(t, endpoint)) {
    const big = async (upstream: string, bytes: number) =>
      (await ask('tools/call', { name: `${upstream}__big`, arguments: { bytes } }))['result'] as Json
    for (const [upstream, fits, tooLong, max] of [
      ['old', 4_000, 5_000, 5_000],
      ['modern', 1_000, 2_000, 2_000]
    ] as const) {
      t.match(await big(upstream, fits), { isError: undefined, content: [{ text: 'x'.repeat(fits) }] }, era)
      const told = await big(upstream, tooLong)
      t.equal(told['isError'], true, `${era}, ${upstream}`)
      t.match(JSON.stringify(told), new RegExp(`The result has \\d+ bytes, more than the ${max} that`))
      t.notMatch(JSON.stringify(told), /xxx/)
      const line = log.findLast(({ msg }) => msg === 'call')
      t.match(line, { outcome: 'result_too_large', code: undefined, error: /^The result has/ }, era)
      if (era === '2026-07-28') t.equal(told['resultType'], 'complete')
    }
    // A long one is written in steps.
    t.equal((await big('modern', 1_000_000))['isError'], true)
    for (const [method, params] of [
      ['prompts/get', { name: 'old__greet', arguments: { who: 'x'.repeat(2_000) } }],
      ['resources/read', { uri: `gatehouse://old/test://item/${'x'.repeat(2_000)}` }]
    ] as const)
      t.match(await ask(method, params), {
        error: { data: { reason: 'result_too_large', maxBytes: 2_000 }, message: /more than the 2000/ }
      })
    t.match(await ask('prompts/get', { name: 'old__greet', arguments: { who: 'x' } }), { result: { messages: Array } })
  }
})

t.test('a tool whose results are changed is not run as a task, whose results nobody would change', async (t) => {
  const change = { maxResultBytes: 5_000 }
  const [old, modern] = [await startUpstream({}), await startModern({})]
  for (const each of [old, modern]) t.teardown(() => each.close())
  const acme = await gateway(t, {
    upstreams: { modern: { type: 'http', url: modern.url } },
    endpoints: {
      default: { upstreams: ['modern'], prefix: '', tools: { 'modern/task': change } },
      free: { upstreams: ['modern'], prefix: '' }
    }
  })
  const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
  const call = (endpoint?: string) =>
    modernRequest(acme.url(endpoint), 'tools/call', { name: 'task' }, { token: key, capabilities })
  t.match((await call('free')).json, { result: { resultType: 'task' } })
  t.match((await call()).json, { error: { data: { reason: 'upstream_protocol' } } })
  const session = await legacyClient(acme.url(), key)
  const listed = (await session.request('tools/list')).json.result.tools as Json[]
  t.same(listed.find(({ name }) => name === 'task')?.['execution'], undefined)
  t.match(listed.find(({ name }) => name === 'echo')?.['execution'], { taskSupport: 'optional' })
})

t.test('a catalog that is too long ends with the last tool that fits; the rest is unknown', async (t) => {
  const many = Array.from({ length: 20 }, (_, n) => ({ ...tool(`tool${n}`), description: 'x'.repeat(100) }))
  const upstream = await startUpstream({ tools: many })
  t.teardown(() => upstream.close())
  const acme = await gateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '', order: ['up/tool7'], maxCatalogBytes: 1_024 } }
  })
  const session = await legacyClient(acme.url(), key)
  const listed = (await session.request('tools/list')).json.result.tools as Json[]
  const names = listed.map(({ name }) => name)
  t.equal(names[0], 'tool7')
  t.ok(names.length > 3 && names.length < 9 && JSON.stringify(listed).length <= 1_026, names.join())
  t.match((await session.request('tools/call', { name: 'tool7' })).text, /Unknown tool: tool7/)
  const before = upstream.seen.length
  t.match((await session.request('tools/call', { name: 'tool19' })).json.error, { data: { reason: 'invalid_params' } })
  t.equal(upstream.seen.length, before, 'the upstream is not asked')
})
