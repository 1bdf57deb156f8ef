// What is declared to servers on behalf of a client: what this client declared, and nothing where a server could not
// say whom it asks.

import t from 'tap'
import { acmeGateway, keyOf, type AcmeGateway } from '../../kit/acme-gateway.ts'
import {
  capableClient,
  callUntilServerRequest,
  allCapabilities,
  isServerRequest,
  post
} from '../../kit/server-request.ts'
import { listenEvents, postEvents } from '../../kit/events.ts'
import { startUpstream, type HttpUpstream } from '../../kit/upstream.ts'
import { until } from '../../kit/until.ts'

/** What the server was told in the handshakes so far. */
const declaredTo = ({ server }: HttpUpstream): unknown[] =>
  server.received
    .filter(({ method }) => method === 'initialize')
    .map(({ params }) => (params as { capabilities: unknown }).capabilities)

async function declared(
  acme: AcmeGateway,
  capabilities: unknown,
  revision?: string,
  endpoint = 'default',
  upstream = acme.upstream
): Promise<unknown> {
  const before = declaredTo(upstream).length
  const client = await capableClient(acme.url(endpoint), keyOf.ada, capabilities, revision)
  const { json } = await client.request('tools/call', { name: endpoint === 'default' ? 'echo' : 'up__echo' })
  if (json.error !== undefined) throw new Error(JSON.stringify(json.error))
  return declaredTo(upstream).slice(before).at(-1)
}

t.test("a session's own connection declares what its client declared", async (t) => {
  const acme = await acmeGateway(t)
  await until(
    'the listing has its connection',
    () => declaredTo(acme.upstream).length > 0 || acme.gateway.warm().then(() => false)
  )
  t.same(declaredTo(acme.upstream), [{}], 'the gateway itself offers nothing')
  const experimental = { 'x/y': { a: 1 } }
  const extensions = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html'] } }
  for (const capabilities of [
    {},
    { roots: {} },
    { sampling: {} },
    { elicitation: {} },
    { elicitation: { url: {} } },
    allCapabilities,
    { ...allCapabilities, experimental, extensions }
  ]) {
    t.same(await declared(acme, capabilities), capabilities)
  }
  t.same(
    await declared(acme, { sampling: true, roots: null, elicitation: [], somethingElse: {} }),
    {},
    'what is no capability is none'
  )
})

t.test("no more than the client's revision knows", async (t) => {
  const acme = await acmeGateway(t)
  await acme.gateway.warm()
  t.same(await declared(acme, allCapabilities, '2025-06-18'), {
    sampling: {},
    elicitation: {},
    roots: { listChanged: true }
  })
  t.same(await declared(acme, allCapabilities, '2025-03-26'), { sampling: {}, roots: { listChanged: true } })
  t.same(await declared(acme, allCapabilities, '2024-11-05'), { sampling: {}, roots: { listChanged: true } })
})

t.test('on an endpoint of several servers, none is offered what would reach beyond itself', async (t) => {
  const other = await startUpstream()
  t.teardown(() => other.close())
  const first = await startUpstream()
  t.teardown(() => first.close())
  const acme = await acmeGateway(t, {
    upstreams: { up: { url: first.url }, other: { url: other.url } },
    endpoints: { both: { upstreams: ['up', 'other'] } }
  })
  await acme.gateway.warm()
  t.same(
    await declared(acme, { ...allCapabilities, experimental: {} }, undefined, 'both', first),
    { ...allCapabilities, sampling: { tools: {} } },
    'context of "this server" would be that of all of them'
  )
  const client = await capableClient(acme.url('both'), keyOf.ada)
  const asked = await callUntilServerRequest(acme.url('both'), client, 'up__sample', {
    params: { messages: [], maxTokens: 1, includeContext: 'allServers' }
  })
  t.equal(asked.serverRequest['params'].includeContext, 'none')
  await post(acme.url('both'), client, { id: asked.serverRequest['id'], result: {} })
  await asked.result()
})

for (const isolation of ['shared', 'principal']) {
  t.test(`a connection that is ${isolation} declares nothing, and its server may not ask`, async (t) => {
    const up = await startUpstream()
    t.teardown(() => up.close())
    const acme = await acmeGateway(t, {
      upstreams: { up: { url: up.url, isolation } },
      endpoints: { default: { upstreams: ['up'], prefix: '' } }
    })
    const clients = [await capableClient(acme.url(), keyOf.ada), await capableClient(acme.url(), keyOf.bob)]
    for (const client of clients) {
      const answer = await client.request('tools/call', { name: 'sample' })
      t.same(answer.messages.filter(isServerRequest), [])
      t.equal(JSON.parse(answer.json.result.content[0].text).error.code, -32601)
    }
    t.ok(declaredTo(up).length > 0)
    t.same(
      declaredTo(up).filter((capabilities) => Object.keys(capabilities as object).length > 0),
      []
    )
  })
}

t.test(
  'a server that asks for what its client does not offer is refused, and the client gets nothing of it',
  async (t) => {
    const acme = await acmeGateway(t)
    const refusals: Array<[unknown, string, string, unknown, number]> = [
      [{}, '2025-11-25', 'elicit', {}, -32601],
      [{ sampling: {} }, '2025-11-25', 'roots', {}, -32601],
      [{ sampling: {} }, '2025-11-25', 'sample', { params: { messages: [], maxTokens: 1, tools: [] } }, -32602],
      [
        { elicitation: {} },
        '2025-11-25',
        'elicit',
        { params: { mode: 'url', url: 'https://x.example', elicitationId: 'e', message: 'm' } },
        -32602
      ],
      [{ elicitation: { url: {} } }, '2025-11-25', 'elicit', {}, -32602],
      [
        { elicitation: { form: {}, url: {} } },
        '2025-06-18',
        'elicit',
        { params: { mode: 'url', url: 'https://x.example', elicitationId: 'e', message: 'm' } },
        -32602
      ],
      [
        { elicitation: {} },
        '2025-06-18',
        'elicit',
        {
          params: {
            message: 'm',
            requestedSchema: {
              type: 'object',
              properties: { many: { type: 'array', items: { type: 'string', enum: ['a'] } } }
            }
          }
        },
        -32602
      ]
    ]
    for (const [capabilities, revision, name, args, code] of refusals) {
      const client = await capableClient(acme.url(), keyOf.ada, capabilities, revision)
      const answer = await client.request('tools/call', { name, arguments: args })
      t.same(answer.messages.filter(isServerRequest), [])
      t.equal(
        JSON.parse(answer.json.result.content[0].text).error.code,
        code,
        JSON.stringify([capabilities, revision, name])
      )
    }
    const client = await capableClient(acme.url(), keyOf.ada)
    const answer = await client.request('tools/call', { name: 'ask', arguments: { method: 'tools/list' } })
    t.equal(JSON.parse(answer.json.result.content[0].text).error.code, -32601, 'nor is there any other question')
  }
)

t.test('a change of roots reaches the servers of its session only', async (t) => {
  const acme = await acmeGateway(t)
  const [ada, bob] = [await capableClient(acme.url(), keyOf.ada), await capableClient(acme.url(), keyOf.bob)]
  for (const client of [ada, bob]) await client.request('tools/call', { name: 'echo' })
  const told = () =>
    acme.upstream.seen
      .filter(({ message }) => message?.['method'] === 'notifications/roots/list_changed')
      .map(({ headers }) => headers['mcp-session-id'])
  await ada.notify('notifications/roots/list_changed')
  await until('it is told', () => told().length === 1)
  await bob.notify('notifications/roots/list_changed')
  await until('so is his', () => told().length === 2)
  t.equal(new Set(told()).size, 2, 'each its own')
  t.ok(acme.upstream.sessions.size > 2, 'and those that read lists heard nothing')
})

t.test('a server may ask as soon as the change is known: back and forth', async (t) => {
  const acme = await acmeGateway(t)
  const client = await capableClient(acme.url(), keyOf.ada)
  const stream = await listenEvents(acme.url(), client)
  const asked = await callUntilServerRequest(acme.url(), client, 'roots')
  await post(acme.url(), client, { id: asked.serverRequest['id'], result: { roots: [] } })
  await asked.result()
  await client.notify('notifications/roots/list_changed')
  const again = await postEvents(acme.url(), client, 'again', 'tools/call', { name: 'roots' })
  const question = await again.next('the question', isServerRequest)
  await post(acme.url(), client, { id: question.id, result: { roots: [{ uri: 'file:///new' }] } })
  t.match((await again.next('the result', ({ id }) => id === 'again')).result.content[0].text, /file:\/\/\/new/)
  stream.cut()
})
