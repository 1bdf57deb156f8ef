// Calls over HTTP+SSE: answers, progress, cancellation, server requests and changes, all on the one stream of their
// session.

import type { ServerResponse } from 'node:http'
import t from 'tap'
import { createMemoryAccount, holdMemory } from '../../../src/limits/memory.ts'
import { acmeGateway, keyOf } from '../../kit/acme-gateway.ts'
import { httpSseClient, openSse, sseUrl } from '../../kit/http-sse-client.ts'
import { until } from '../../kit/until.ts'
import { isMethod } from '../../kit/upstream.ts'

const slow = { name: 'slow', _meta: { progressToken: 's' } }
const progress = ({ method }: { method?: string }): boolean => method === 'notifications/progress'

t.test('a hundred calls at once are answered each under its id, to the session that asked', async (t) => {
  const acme = await acmeGateway(t)
  const [ada, again, bob] = await Promise.all([
    httpSseClient(acme.url(), keyOf.ada),
    httpSseClient(acme.url(), keyOf.ada),
    httpSseClient(acme.url(), keyOf.bob)
  ])
  const everyone = [ada, again, bob]
  await Promise.all(
    everyone.flatMap((client, who) =>
      Array.from({ length: 100 }, async (_, n) => {
        const id = n % 2 === 0 ? n : String(n)
        const { result } = await client.request('tools/call', { name: 'echo', arguments: { who, n } }, id)
        if (result.content[0].text !== JSON.stringify({ who, n })) t.fail(`${who} ${n} got ${JSON.stringify(result)}`)
      })
    )
  )
  for (const client of everyone) {
    t.equal(client.messages.length, 101, 'one answer each, and that of initialize')
    t.equal(new Set(client.messages.map(({ id }) => JSON.stringify(id))).size, 101)
    client.close()
  }
})

t.test('progress comes before the result exists; the POST was answered long before', async (t) => {
  const acme = await acmeGateway(t, { script: { answers: 'sse' } })
  const client = await httpSseClient(acme.url(), keyOf.ada, '2025-03-26')
  t.equal((await client.post({ jsonrpc: '2.0', id: 'slow', method: 'tools/call', params: slow })).status, 202)
  t.match(await client.next('progress', progress), { params: { progressToken: 's', progress: 0 } })
  t.notOk(client.messages.some(({ id }) => id === 'slow'))
  t.match(
    (await client.request('tools/call', { name: 'echo' })).result.content,
    [{ type: 'text' }],
    'others overtake it'
  )
  acme.upstream.server.release()
  t.match((await client.next('the result', ({ id }) => id === 'slow')).result.content, [{ text: 'slow is done' }])

  await client.request(
    'tools/call',
    { name: 'progress', arguments: { steps: 5 }, _meta: { progressToken: 7 } },
    'steps'
  )
  const steps = client.messages.filter(({ params, id }) => params?.progressToken === 7 || id === 'steps')
  t.same(
    steps.map(({ params }) => params?.progress),
    [1, 2, 3, 4, 5, undefined],
    'in order, the result last'
  )
  t.equal(steps[0].params.message, 'step 1')
  client.close()
})

t.test('what the agreed revision does not know is left out', async (t) => {
  const acme = await acmeGateway(t, { script: { answers: 'sse' } })
  const client = await httpSseClient(acme.url(), keyOf.ada, '2024-11-05')
  await client.request('tools/call', { name: 'progress', arguments: { steps: 1 }, _meta: { progressToken: 'p' } })
  t.same((await client.next('progress', progress)).params, { progressToken: 'p', progress: 1, total: 1 })
  client.close()
})

t.test('a cancelled call is cancelled upstream and not answered', async (t) => {
  const acme = await acmeGateway(t, { script: { answers: 'sse' } })
  const client = await httpSseClient(acme.url(), keyOf.ada)
  await client.post({ jsonrpc: '2.0', id: 'slow', method: 'tools/call', params: slow })
  await client.next('the call to run', progress)
  t.equal((await client.notify('notifications/cancelled', { requestId: 'slow', reason: 'no more' })).status, 202)
  await until('the upstream hears of it', () =>
    acme.upstream.server.received.some(({ method }) => method === 'notifications/cancelled')
  )
  await client.request('ping')
  t.notOk(client.messages.some(({ id }) => id === 'slow'))
  client.close()
})

t.test('a server samples, elicits and asks for roots; each answer finds its way back', async (t) => {
  const acme = await acmeGateway(t, { script: { answers: 'sse' } })
  const client = await httpSseClient(acme.url(), keyOf.ada, '2025-06-18', { sampling: {}, elicitation: {}, roots: {} })
  const sampled = { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'm' }
  for (const [method, params, answer] of [
    [
      'sampling/createMessage',
      { messages: [{ role: 'user', content: { type: 'text', text: 'capital?' } }], maxTokens: 5 },
      { result: sampled }
    ],
    [
      'elicitation/create',
      { message: 'who?', requestedSchema: { type: 'object', properties: {} } },
      { result: { action: 'decline' } }
    ],
    ['roots/list', {}, { error: { code: -32000, message: 'not now' } }]
  ] as const) {
    const call = client.request('tools/call', { name: 'ask', arguments: { method, params } }, method)
    const question = await client.next(method, (message) => message.method === method)
    t.type(question.id, 'string')
    t.match(question.params, params)
    t.equal((await client.post({ jsonrpc: '2.0', id: question.id, ...answer })).status, 202)
    t.match(JSON.parse((await call).result.content[0].text), answer)
  }
  client.close()
})

t.test('a server behind stdio asks on the same stream', async (t) => {
  const acme = await acmeGateway(t, {
    upstreams: {
      up: { command: process.execPath, args: [new URL('../../kit/stdio-server.ts', import.meta.url).pathname] }
    }
  })
  const client = await httpSseClient(acme.url(), keyOf.ada, '2024-11-05', { sampling: {} })
  const call = client.request('tools/call', {
    name: 'ask',
    arguments: { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } }
  })
  const question = await client.next('the question', ({ method }) => method === 'sampling/createMessage')
  await client.post({
    jsonrpc: '2.0',
    id: question.id,
    result: { role: 'assistant', content: { type: 'text', text: 'x' }, model: 'm' }
  })
  t.match(JSON.parse((await call).result.content[0].text), { result: { model: 'm' } })
  client.close()
})

t.test('the answer to a server request counts only from the session that was asked', async (t) => {
  const acme = await acmeGateway(t, { script: { answers: 'sse' } })
  const [asked, other] = await Promise.all([
    httpSseClient(acme.url(), keyOf.ada, '2025-06-18', { sampling: {} }),
    httpSseClient(acme.url(), keyOf.ada, '2025-06-18', { sampling: {} })
  ])
  const call = asked.request('tools/call', {
    name: 'ask',
    arguments: { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } }
  })
  const { id } = await asked.next('the question', ({ method }) => method === 'sampling/createMessage')
  t.equal(
    (await other.post({ jsonrpc: '2.0', id, result: { model: 'forged' } })).status,
    400,
    'refused, like any answer to what was not asked'
  )
  await asked.post({
    jsonrpc: '2.0',
    id,
    result: { role: 'assistant', content: { type: 'text', text: 'x' }, model: 'real' }
  })
  t.match(JSON.parse((await call).result.content[0].text), { result: { model: 'real' } })
  t.same(other.messages.length, 1, 'and never asked')
  for (const client of [asked, other]) client.close()
})

t.test('changed lists and log messages are told on the stream of the session they belong to', async (t) => {
  const acme = await acmeGateway(t, { script: { answers: 'sse' } })
  const client = await httpSseClient(acme.url(), keyOf.ada)
  await client.request('tools/call', { name: 'echo' })
  await until('the upstream can be heard', () => acme.upstream.allListening())
  await client.request('tools/call', { name: 'grow', arguments: { name: 'planted' } })
  await client.next('the change', ({ method }) => method === 'notifications/tools/list_changed')
  t.ok((await client.request('tools/list')).result.tools.some(({ name }: { name: string }) => name === 'planted'))

  t.same((await client.request('logging/setLevel', { level: 'info' })).result, {})
  await client.request('tools/call', { name: 'log' })
  t.match(await client.next('a log message', ({ method }) => method === 'notifications/message'), {
    params: { level: 'info', data: 'line 1' }
  })
  client.close()
})

t.test('an initialize for whose session there is no memory is answered once, and may be sent again', async (t) => {
  const memory = createMemoryAccount(16 * 1024 * 1024)
  const acme = await acmeGateway(t, { overrides: { memory } })
  const held: ServerResponse[] = []
  acme.upstream.override(isMethod('initialize'), (response) => void held.push(response), Infinity)
  const client = await openSse(sseUrl(acme.url()), keyOf.ada)
  const params = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'a', version: '1' } }
  const initialize = (id: number) => client.post({ jsonrpc: '2.0', id, method: 'initialize', params })
  t.equal((await initialize(1)).status, 202)
  await until('the server is asked', () => held.length > 0)
  const others = Array.from({ length: 8 }, (_, n) => holdMemory(memory.share('acme', `somebody ${n}`)))
  for (const other of others) while (other.take(1_000));
  // An answer has room, and a session has none.
  others[0]?.set(others[0].bytes - 8_000)
  acme.upstream.override(isMethod('initialize'), (response) => response.writeHead(503).end(), Infinity)
  for (const response of held) response.writeHead(503).end()
  t.match(await client.next('the answer', ({ id }) => id === 1), { error: { data: { reason: 'too_many' } } })
  for (const other of others) other.set(0)
  t.equal((await initialize(2)).status, 202)
  t.match(await client.next('the answer', ({ id }) => id === 2), { result: { protocolVersion: '2024-11-05' } })
  t.equal(client.messages.filter(({ id }) => id === 1).length, 1)
  client.close()
})
