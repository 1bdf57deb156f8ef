// Tools as an endpoint changes them: other names and texts, and arguments that the gateway fills in. What is shown and
// what is sent agree, in both eras.

import t from 'tap'
import { legacyClient, withoutRequestId } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import type { Json } from '../kit/mcp-server.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { startModern } from '../kit/modern-server.ts'
import { startUpstream } from '../kit/upstream.ts'

const string = { type: 'string' }
const echo = {
  name: 'echo',
  title: 'Echo',
  description: 'Says it again.',
  annotations: { title: 'Echo', readOnlyHint: false, openWorldHint: true },
  inputSchema: {
    type: 'object',
    properties: { text: string, owner: string, limit: { type: 'integer', description: 'how many' } },
    required: ['text', 'owner', 'limit']
  }
}
const change = {
  rename: 'repeat',
  title: 'Repeat',
  description: 'Repeats what it is told.',
  annotations: { readOnlyHint: true },
  fixed: { owner: 'acme' },
  defaults: { limit: 10 }
}

/** Requests of both eras, at a gateway of one tool of a legacy server. */
async function setUp(t: Parameters<typeof gateway>[0], tools: Json, endpoint: Json = {}) {
  const [one, two] = [await startUpstream({ tools: [echo, { name: 'pid', inputSchema: {} }] }), await startUpstream({})]
  for (const each of [one, two]) t.teardown(() => each.close())
  const acme = await gateway(t, {
    upstreams: { one: { type: 'http', url: one.url }, two: { type: 'http', url: two.url } },
    endpoints: { default: { upstreams: ['one', 'two'], allow: { tools: ['one/*', 'two/echo'] }, tools, ...endpoint } }
  })
  const session = await legacyClient(acme.url(), key)
  const requests: Record<string, (method: string, params?: Json) => Promise<{ text: string; json: Json }>> = {
    '2025-11-25': (method, params = {}) => session.request(method, params, { id: 7 }),
    '2026-07-28': (method, params = {}) => modernRequest(acme.url(), method, params, { id: 7, token: key })
  }
  const sent = (): unknown[] =>
    one.seen.flatMap(({ message }) => (message?.['method'] === 'tools/call' ? [message['params']] : []))
  return { acme, one, requests: Object.entries(requests), sent }
}

t.test('a tool has the name, the texts and the annotations that the endpoint gives it', async (t) => {
  const { requests, sent } = await setUp(t, { 'one/echo': change })
  for (const [revision, request] of requests) {
    const { tools } = (await request('tools/list')).json['result'] as { tools: Json[] }
    t.same(
      tools.map(({ name }) => name),
      ['repeat', 'one__pid', 'two__echo'],
      revision
    )
    t.match(tools[0], {
      title: 'Repeat',
      description: 'Repeats what it is told.',
      annotations: { title: 'Repeat', readOnlyHint: true, openWorldHint: true }
    })
    t.match(tools[2], { name: 'two__echo', description: 'the echo tool' }, 'that of another server is as it was')
    const call = (name: string, args: Json = { text: 'hello' }) => request('tools/call', { name, arguments: args })
    t.match((await call('repeat')).json, { result: { content: [{}] } })
    const [hidden, unknown] = [(await call('one__echo')).text, (await call('one__none')).text].map(withoutRequestId)
    t.equal(hidden, unknown?.replace('one__none', 'one__echo'))
  }
  t.match(sent(), [{ name: 'echo' }, { name: 'echo' }])
})

t.test(
  'fixed arguments are hidden and filled in, default ones are shown and filled in where they are absent',
  async (t) => {
    const { requests, sent } = await setUp(t, { 'one/echo': change })
    for (const [revision, request] of requests) {
      const { tools } = (await request('tools/list')).json['result'] as { tools: Json[] }
      t.same(
        tools[0]?.['inputSchema'],
        {
          type: 'object',
          properties: { text: string, limit: { type: 'integer', description: 'how many', default: 10 } },
          required: ['text']
        },
        revision
      )
      const call = (args?: Json) => request('tools/call', { name: 'repeat', ...(args && { arguments: args }) })
      for (const args of [undefined, { text: 'a' }, { text: 'b', limit: 3 }])
        t.match((await call(args)).json, { result: {} })
      for (const name of ['owner', 'Owner']) {
        const message = new RegExp(`The argument "${name}" of this tool is set by the gateway`)
        t.match((await call({ text: 'c', [name]: 'other' })).json, { error: { code: -32602, message } })
      }
    }
    const expected = [{}, { text: 'a' }, { text: 'b', limit: 3 }].map((args) => ({ limit: 10, ...args, owner: 'acme' }))
    t.same(
      sent().map((params) => (params as Json)['arguments']),
      [...expected, ...expected]
    )
  }
)

t.test('a fixed argument that the server wants in a header is there, and clients know of no such header', async (t) => {
  const inputSchema = {
    type: 'object',
    properties: {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      zone: { type: 'string', 'x-mcp-header': 'Zone' }
    },
    required: ['region', 'zone']
  }
  const one = await startModern({ tools: [{ name: 'echo', inputSchema }] })
  t.teardown(() => one.close())
  const acme = await gateway(t, {
    upstreams: { one: { type: 'http', url: one.url } },
    endpoints: { default: { upstreams: ['one'], tools: { 'one/echo': { fixed: { region: 'eu' } } } } }
  })
  const call = (args: Json, headers: Record<string, string>) =>
    modernRequest(acme.url(), 'tools/call', { name: 'one__echo', arguments: args }, { token: key, headers })
  t.match((await call({ zone: 'b' }, { 'mcp-param-zone': 'b' })).json, { result: {} })
  t.match((await call({ zone: 'b' }, {})).json, { error: {} }, 'a header that clients know of is still wanted')
  const session = await legacyClient(acme.url(), key)
  t.match((await session.request('tools/call', { name: 'one__echo', arguments: { zone: 'c' } })).json, { result: {} })
  t.match(
    one.seen.filter(({ message }) => message?.['method'] === 'tools/call').map(({ headers }) => headers),
    [
      { 'mcp-param-region': 'eu', 'mcp-param-zone': 'b' },
      { 'mcp-param-region': 'eu', 'mcp-param-zone': 'c' }
    ]
  )
})

t.test('tools stand in the order of the endpoint, and those beyond its number are unknown', async (t) => {
  const { requests } = await setUp(t, {}, { order: ['two/*', 'one/pid'], maxTools: 2 })
  for (const [revision, request] of requests) {
    const { tools } = (await request('tools/list')).json['result'] as { tools: Json[] }
    t.same(
      tools.map(({ name }) => name),
      ['two__echo', 'one__pid'],
      revision
    )
    t.match((await request('tools/call', { name: 'one__pid' })).json, { result: {} })
    t.match((await request('tools/call', { name: 'one__echo' })).json, {
      error: { message: 'Unknown tool: one__echo' }
    })
  }
})
