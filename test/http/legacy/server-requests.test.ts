// What a server asks its client while a call runs: out on the stream of the call, back to the very request of the
// server.

import t from 'tap'
import { acmeGateway, keyOf, type AcmeGateway } from '../../kit/acme-gateway.ts'
import {
  capableClient,
  callUntilServerRequest,
  isServerRequest,
  post,
  scriptedStdio
} from '../../kit/server-request.ts'
import { listenEvents, openEvents, postEvents } from '../../kit/events.ts'
import { startUpstream } from '../../kit/upstream.ts'
import { until } from '../../kit/until.ts'

/** Endpoints: `default` has the server under its own names, `both` has it and another one. */
async function acme(t: Parameters<typeof acmeGateway>[0], transport: 'http' | 'stdio'): Promise<AcmeGateway> {
  const [up, other] = [await startUpstream(), await startUpstream()]
  t.teardown(() => Promise.all([up.close(), other.close()]))
  return await acmeGateway(t, {
    upstreams: { up: transport === 'http' ? { url: up.url } : scriptedStdio, other: { url: other.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' }, both: { upstreams: ['up', 'other'] } }
  })
}

for (const transport of ['http', 'stdio'] as const) {
  for (const endpoint of ['default', 'both']) {
    t.test(
      `over ${transport}, on an endpoint with ${endpoint === 'both' ? 'two servers' : 'one'}: sampling, elicitation and roots`,
      async (t) => {
        const made = await acme(t, transport)
        const url = made.url(endpoint)
        const client = await capableClient(url, keyOf.ada)
        const tool = (name: string): string => (endpoint === 'both' ? `up__${name}` : name)

        const tools = [{ name: 'calc', inputSchema: { type: 'object' }, extra: 1 }]
        const sample = await callUntilServerRequest(url, client, tool('sample'), {
          params: {
            messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
            maxTokens: 5,
            tools,
            toolChoice: { mode: 'auto' },
            _meta: { 'x/y': 1 }
          }
        })
        t.match(sample.serverRequest, {
          jsonrpc: '2.0',
          method: 'sampling/createMessage',
          params: {
            messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
            tools,
            toolChoice: { mode: 'auto' },
            _meta: { 'x/y': 1 }
          }
        })
        const sampled = {
          role: 'assistant',
          model: 'm',
          content: [{ type: 'tool_use', id: 't', name: 'calc', input: {} }],
          stopReason: 'toolUse',
          unknown: { kept: true }
        }
        const posted = await post(url, client, { id: sample.serverRequest['id'], result: sampled })
        t.equal(posted.status, 202)
        t.equal(posted.text, '')
        t.same((await sample.result())['result'], sampled)

        const elicit = await callUntilServerRequest(url, client, tool('elicit'))
        t.equal(
          elicit.serverRequest['params'].message,
          endpoint === 'both' ? '[up] who?' : 'who?',
          'who asks is said where it could be several'
        )
        await post(url, client, {
          id: elicit.serverRequest['id'],
          result: { action: 'accept', content: { name: 'ada' } }
        })
        t.same((await elicit.result())['result'], { action: 'accept', content: { name: 'ada' } })

        const roots = await callUntilServerRequest(url, client, tool('roots'))
        t.equal(roots.serverRequest['method'], 'roots/list')
        await post(url, client, {
          id: roots.serverRequest['id'],
          result: { roots: [{ uri: 'file:///home/ada', name: 'home' }] }
        })
        t.same((await roots.result())['result'], { roots: [{ uri: 'file:///home/ada', name: 'home' }] })

        const ids = [sample, elicit, roots].map(({ serverRequest: question }) => String(question['id']))
        t.equal(new Set(ids).size, 3)
        t.ok(
          ids.every((id) => !id.startsWith('ask-')),
          'under ids of ours'
        )
      }
    )
  }
}

t.test("declines, cancels and errors of the client are the server's to judge", async (t) => {
  const made = await acmeGateway(t)
  const client = await capableClient(made.url(), keyOf.ada)
  for (const result of [{ action: 'decline' }, { action: 'cancel' }]) {
    const asked = await callUntilServerRequest(made.url(), client, 'elicit')
    await post(made.url(), client, { id: asked.serverRequest['id'], result })
    t.same((await asked.result())['result'], result)
  }
  const error = { code: -1, message: 'User rejected sampling request', data: { kept: true } }
  const asked = await callUntilServerRequest(made.url(), client, 'sample')
  await post(made.url(), client, { id: asked.serverRequest['id'], error })
  t.same((await asked.result())['error'], error)
})

t.test('progress of the client about a server request reaches the server with its token', async (t) => {
  const made = await acmeGateway(t)
  const client = await capableClient(made.url(), keyOf.ada)
  const asked = await callUntilServerRequest(made.url(), client, 'sample', {
    params: { messages: [], maxTokens: 1, _meta: { progressToken: 77 } }
  })
  const token = asked.serverRequest['params']._meta.progressToken
  t.not(token, 77, 'two servers may choose the same')
  await client.notify('notifications/progress', { progressToken: token, progress: 1, total: 2, message: 'thinking' })
  await client.notify('notifications/progress', { progressToken: 77, progress: 2 })
  await post(made.url(), client, { id: asked.serverRequest['id'], result: {} })
  await asked.result()
  const reported = () => made.upstream.server.received.filter(({ method }) => method === 'notifications/progress')
  await until('the server has it', () => reported().length > 0)
  t.same(
    reported().map(({ params }) => params),
    [{ progressToken: 77, progress: 1, total: 2, message: 'thinking' }]
  )
})

t.test(
  'a server that takes its server request back: the client is told which, and answers after that reach nobody',
  async (t) => {
    const made = await acmeGateway(t)
    const client = await capableClient(made.url(), keyOf.ada)
    const asked = await callUntilServerRequest(made.url(), client, 'elicit')
    await client.request('tools/call', { name: 'withdraw' })
    const told = await asked.stream.next('the withdrawal', ({ method }) => method === 'notifications/cancelled')
    t.same(told.params, { requestId: asked.serverRequest['id'], reason: 'never mind' })
    t.equal(
      (await post(made.url(), client, { id: asked.serverRequest['id'], result: { action: 'accept' } })).status,
      202
    )
    await client.request('ping')
    t.equal(made.upstream.server.answers.size, 0)
    asked.stream.cut()
  }
)

t.test('when the call is over, so is its server requests', async (t) => {
  const made = await acmeGateway(t)
  const client = await capableClient(made.url(), keyOf.ada)
  const cancelled = await callUntilServerRequest(made.url(), client, 'elicit')
  await client.notify('notifications/cancelled', { requestId: 'the call' })
  await cancelled.stream.ended
  t.match(
    cancelled.stream.messages().at(-1),
    { method: 'notifications/cancelled', params: { requestId: cancelled.serverRequest['id'] } },
    'the dialog can be closed'
  )
  await until('the server knows', () => made.upstream.server.answers.size === 1)

  // The server answers without waiting for what it asked.
  const impatient = await postEvents(made.url(), client, 'impatient', 'tools/call', {
    name: 'elicit',
    arguments: { impatient: true }
  })
  await impatient.ended
  const [question, withdrawal, final] = impatient.messages()
  t.ok(isServerRequest(question))
  t.match(withdrawal, { method: 'notifications/cancelled', params: { requestId: question.id } })
  t.equal(final.id, 'impatient')
})

t.test('a server request of a task is open when the call that brought it is over', async (t) => {
  const made = await acmeGateway(t)
  const client = await capableClient(made.url(), keyOf.ada)
  const params = { message: 'who?', _meta: { 'io.modelcontextprotocol/related-task': { taskId: 'a task' } } }
  const stream = await postEvents(made.url(), client, 'brief', 'tools/call', {
    name: 'elicit',
    arguments: { impatient: true, params }
  })
  await stream.ended
  const [question, final] = stream.messages()
  t.ok(isServerRequest(question))
  t.equal(final.id, 'brief')
  await post(made.url(), client, { id: question.id, result: { action: 'accept' } })
  await until('the answer arrives', () => made.upstream.server.answers.size === 1)
  t.match([...made.upstream.server.answers.values()], [{ result: { action: 'accept' } }])
})

t.test('a caller that takes no stream is asked on the stream of its session', async (t) => {
  const made = await acmeGateway(t)
  const client = await capableClient(made.url(), keyOf.ada)
  const jsonOnly = (id: string) =>
    client.request('tools/call', { name: 'elicit' }, { id, headers: { accept: 'application/json' } })
  const refused = await jsonOnly('refused')
  t.match(
    JSON.parse(refused.json.result.content[0].text),
    { error: { code: -32602 } },
    'without one it cannot be asked, and the server is told so at once'
  )

  const stream = await listenEvents(made.url(), client)
  const call = jsonOnly('asked')
  const question = await stream.next('the question', isServerRequest)
  await post(made.url(), client, { id: question.id, result: { action: 'accept', content: {} } })
  t.match(JSON.parse((await call).json.result.content[0].text), { result: { action: 'accept' } })
  stream.cut()
})

t.test('a server request outside of any call goes to the stream of the session', async (t) => {
  const made = await acmeGateway(t)
  const client = await capableClient(made.url(), keyOf.ada)
  await client.request('tools/call', { name: 'echo' })
  await until('the streams of the listing and of the session are open', () => made.upstream.allListening())
  const stream = await listenEvents(made.url(), client)
  await until('it is primed', () => stream.lastId())
  const { size } = made.upstream.sessions
  made.upstream.broadcast({ jsonrpc: '2.0', id: 'outside', method: 'roots/list' })
  const question = await stream.next('the question', isServerRequest)
  t.equal(question.method, 'roots/list')
  await post(made.url(), client, { id: question.id, result: { roots: [] } })
  const answers = () =>
    made.upstream.seen.map(({ message }) => message).filter((message) => message?.['id'] === 'outside')
  await until('the server has an answer of each session', () => answers().length === size)
  t.same(
    answers()
      .map((message) => message?.['result'])
      .filter((result) => result !== undefined),
    [{ roots: [] }],
    'the sessions of the listing and the view, behind which there is no client, were not asked'
  )
  stream.cut()
})

t.test('a server request on a stream that was cut waits for the client to come back', async (t) => {
  const made = await acmeGateway(t)
  const client = await capableClient(made.url(), keyOf.ada)
  const slow = await openEvents(made.url(), {
    method: 'POST',
    headers: client.headers,
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'elicit', arguments: { count: 2 } }
    })
  })
  await slow.next('the first question', isServerRequest)
  const first = slow.events()[0]?.id
  slow.cut()
  await slow.ended
  const rest = await listenEvents(made.url(), client, first)
  await until('both questions', () => rest.messages().filter(isServerRequest).length === 2)
  for (const { id } of rest.messages()) await post(made.url(), client, { id, result: { action: 'accept' } })
  t.equal(JSON.parse((await rest.next('the result', ({ id }) => id === 1)).result.content[0].text).length, 2)
  await rest.ended
})
