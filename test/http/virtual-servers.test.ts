// An endpoint as a virtual server: which of its upstreams' tools, prompts and resources it offers, and under which names.
// What is not offered is as unknown as what nobody has, in both eras, however it is asked for.

import t from 'tap'
import { legacyClient, withoutRequestId } from '../kit/client.ts'
import { configOf, gateway, key } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import type { Json } from '../kit/mcp-server.ts'
import { type Teardown, until } from '../kit/until.ts'
import { type HttpUpstream, startUpstream } from '../kit/upstream.ts'

const files = {
  tools: ['echo', 'pid', 'pid_all'].map((name) => ({ name, inputSchema: { type: 'object' } })),
  prompts: [{ name: 'greet' }, { name: 'secret' }],
  resources: ['doc://open/1', 'doc://secret/1'].map((uri) => ({ uri, name: uri })),
  templates: ['doc://open/{id}', 'doc://secret/{id}', 'log://{day}'].map((uriTemplate) => ({
    uriTemplate,
    name: uriTemplate
  })),
  capabilities: { tools: {}, prompts: {}, resources: { subscribe: true }, completions: {} }
}

type Request = (method: string, params?: Json) => Promise<{ readonly text: string; readonly json: Json }>

/** Both eras: a session of 2025-11-25, and requests of 2026-07-28. */
async function clients(url: string): Promise<Record<string, Request>> {
  const session = await legacyClient(url, key)
  return {
    '2025-11-25': (method, params = {}) => session.request(method, params, { id: 7 }),
    '2026-07-28': (method, params = {}) => modernRequest(url, method, params, { id: 7, token: key })
  }
}

async function filesAnd(t: Teardown, endpoint: Json, other: Json = {}) {
  const [one, two] = [await startUpstream(files), await startUpstream({ ...files, ...other })]
  for (const each of [one, two]) t.teardown(() => each.close())
  const acme = await gateway(t, {
    upstreams: { files: { type: 'http', url: one.url }, other: { type: 'http', url: two.url } },
    endpoints: {
      default: { upstreams: ['files', 'other'], ...endpoint },
      alone: { upstreams: ['files'], prefix: '', ...endpoint }
    }
  })
  return { acme, one, two }
}

const namesIn = ({ json }: { readonly json: Json }, member: string, name = 'name'): unknown[] =>
  ((json['result'] as Json)[member] as Json[]).map((entry) => entry[name])

/** What reached an upstream of a method, by one member of its params. */
const reached = ({ seen }: HttpUpstream, method: string, member: string): unknown[] =>
  seen.flatMap(({ message }) => (message?.['method'] === method ? (message['params'] as Json)[member] : []))

t.test(
  'a tool that is denied, or not allowed, is listed nowhere and answers exactly like an unknown one',
  async (t) => {
    const rules = {
      allow: { tools: ['files/*', 'o*/echo'] },
      deny: { tools: ['*/pid*'], prompts: ['files/secret'] }
    }
    const { acme, one, two } = await filesAnd(t, rules)
    for (const [revision, request] of Object.entries(await clients(acme.url()))) {
      t.same(namesIn(await request('tools/list'), 'tools'), ['files__echo', 'other__echo'], revision)
      t.same(namesIn(await request('prompts/list'), 'prompts'), ['files__greet', 'other__greet', 'other__secret'])
      const call = (name: string) => request('tools/call', { name, arguments: {} })
      const prompt = (name: string) => request('prompts/get', { name })
      const textOf = async (asked: ReturnType<typeof call>, was: string, is: string) =>
        withoutRequestId((await asked).text.replace(was, is))
      const unknown = 'files__never_was'
      for (const name of ['files__pid', 'other__pid_all'])
        t.equal(await textOf(call(name), name, unknown), await textOf(call(unknown), '', ''), `${revision} ${name}`)
      const secret = 'files__secret'
      t.equal(await textOf(prompt(secret), secret, unknown), await textOf(prompt(unknown), '', ''))
      const ref = { type: 'ref/prompt', name: 'files__secret' }
      t.match((await request('completion/complete', { ref, argument: { name: 'x', value: '' } })).json, {
        error: { message: 'Unknown prompt: files__secret' }
      })
      t.match((await call('files__echo')).json, { result: {} }, 'the positive control')
      t.match((await prompt('files__greet')).json, { result: {} })
    }
    for (const each of [one, two]) {
      t.same(new Set(reached(each, 'tools/call', 'name')), new Set(each === one ? ['echo'] : []))
      t.same(new Set(reached(each, 'prompts/get', 'name')), new Set(each === one ? ['greet'] : []))
    }
  }
)

t.test('a resource that is not offered is reached by no spelling of its URI', async (t) => {
  const { acme, one } = await filesAnd(t, {
    deny: { resources: ['files/doc://secret/*'], templates: ['files/log://*'] }
  })
  for (const [endpoint, wrap] of [
    ['default', (uri: string) => `gatehouse://files/${uri}`],
    ['alone', (uri: string) => uri]
  ] as const) {
    for (const [revision, request] of Object.entries(await clients(acme.url(endpoint)))) {
      const own = (list: unknown[]): unknown[] => list.filter((uri) => !String(uri).startsWith('gatehouse://other/'))
      t.same(own(namesIn(await request('resources/list'), 'resources', 'uri')), [wrap('doc://open/1')])
      const templates = await request('resources/templates/list')
      t.same(own(namesIn(templates, 'resourceTemplates', 'uriTemplate')), [wrap('doc://open/{id}')])
      const none = wrap('doc://secret/never-was')
      const unknown = withoutRequestId((await request('resources/read', { uri: none })).text)
      for (const uri of [
        'doc://secret/1',
        'doc://secret/2',
        'doc://open/../secret/1',
        'doc://open/%2e%2E/secret/1',
        'doc://%73ecret/1',
        'DOC://secret/1',
        'doc://secret/1#x',
        'doc://secret//1',
        'doc://secret/{id}',
        'log://2026'
      ]) {
        const { text } = await request('resources/read', { uri: wrap(uri) })
        t.equal(withoutRequestId(text), unknown.replaceAll(none, wrap(uri)), `${revision} ${endpoint} ${uri}`)
        if (revision === '2025-11-25')
          t.match((await request('resources/subscribe', { uri: wrap(uri) })).json, { error: {} }, `subscribe to ${uri}`)
      }
      for (const uri of [wrap('doc://secret/{id}'), wrap('log://{day}')]) {
        const completed = await request('completion/complete', {
          ref: { type: 'ref/resource', uri },
          argument: { name: 'id', value: '' }
        })
        t.match(completed.json, { error: { message: 'Unknown resource', data: { uri } } }, `${revision} ${endpoint}`)
      }
      for (const uri of ['doc://open/1', 'doc://open/2'])
        t.match((await request('resources/read', { uri: wrap(uri) })).json, { result: { contents: [{}] } }, uri)
    }
  }
  t.same(new Set(reached(one, 'resources/read', 'uri')), new Set(['doc://open/1', 'doc://open/2']))
  t.same(reached(one, 'resources/subscribe', 'uri'), [])
})

t.test('a bare URI leads only to an upstream of which the resource is offered', async (t) => {
  const { acme, one, two } = await filesAnd(t, { deny: { resources: ['files/*'] } })
  for (const request of Object.values(await clients(acme.url())))
    t.match((await request('resources/read', { uri: 'doc://secret/1' })).json, { result: { contents: [{}] } })
  t.same(reached(one, 'resources/read', 'uri'), [])
  t.same(reached(two, 'resources/read', 'uri'), ['doc://secret/1', 'doc://secret/1'])
})

t.test('a reload takes a tool from those who are connected', async (t) => {
  const { acme, one, two } = await filesAnd(t, {})
  const both = await clients(acme.url())
  for (const request of Object.values(both))
    t.match((await request('tools/call', { name: 'files__pid' })).json, { result: {} })
  acme.reload(
    configOf({
      upstreams: { files: { type: 'http', url: one.url }, other: { type: 'http', url: two.url } },
      endpoints: { default: { upstreams: ['files', 'other'], deny: { tools: ['files/pid'] } } }
    })
  )
  for (const request of Object.values(both))
    t.match((await request('tools/call', { name: 'files__pid' })).json, { error: { code: -32602 } })
})

t.test('of a name that two members without a prefix have, the first one has it, and the log names both', async (t) => {
  const { acme, one, two } = await filesAnd(
    t,
    { prefix: '' },
    { tools: [...files.tools, { name: 'more', inputSchema: {} }] }
  )
  for (const request of Object.values(await clients(acme.url()))) {
    t.same(namesIn(await request('tools/list'), 'tools'), ['echo', 'pid', 'pid_all', 'more'])
    t.match((await request('tools/call', { name: 'echo' })).json, { result: {} })
  }
  t.same(reached(one, 'tools/call', 'name'), ['echo', 'echo'])
  t.same(reached(two, 'tools/call', 'name'), [])
  await until('the clash is logged', () =>
    acme.log.some(
      ({ names, msg }) =>
        String(msg).startsWith('two upstreams claim the same name') &&
        (names as Json[]).some(({ has, hasNot }) => has === 'files/echo' && hasNot === 'other/echo')
    )
  )
})

t.test('the log names a clash once, however often the lists change', async (t) => {
  const { acme } = await filesAnd(
    t,
    { prefix: '' },
    { tools: [...files.tools, { name: 'grow', inputSchema: { type: 'object' } }] }
  )
  const session = await legacyClient(acme.url(), key)
  for (const name of ['first', 'second', 'third']) {
    await session.request('tools/call', { name: 'grow', arguments: { name } })
    await until('it is listed', async () => namesIn(await session.request('tools/list'), 'tools').includes(name))
  }
  const clashes = acme.log.filter(({ msg }) => String(msg).startsWith('two upstreams claim the same name'))
  t.ok(clashes.length > 0)
  t.equal(new Set(clashes.map(({ names }) => JSON.stringify(names))).size, clashes.length)
})
