// Progress of a task on its way to the client: after the answer to the call that made it, on the session's own stream.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { capableClient } from '../kit/server-request.ts'
import { listenEvents } from '../kit/events.ts'
import { isCall } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'

t.test("a task reports its progress under the client's token when its call is over", async (t) => {
  const made = await acmeGateway(t, {
    script: { capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } } }
  })
  const client = await capableClient(made.url(), keyOf.ada)
  const other = await capableClient(made.url(), keyOf.ada)
  let token: unknown
  made.upstream.override(isCall('echo'), (response, { message }) => {
    token = (message as { params: { _meta: { progressToken: unknown } } }).params._meta.progressToken
    const now = new Date(0).toISOString()
    const task = { taskId: 't', status: 'working', ttl: 60_000, createdAt: now, lastUpdatedAt: now }
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result: { task } }))
  })
  await other.request('tools/call', { name: 'pid' })
  const answer = await client.request('tools/call', {
    name: 'echo',
    arguments: {},
    task: {},
    _meta: { progressToken: 'mine' }
  })
  t.match(answer.json.result.task, { status: 'working' })
  t.not(token, 'mine')

  const [stream, foreign] = [await listenEvents(made.url(), client), await listenEvents(made.url(), other)]
  await until('both sessions and the listing listen to the server', () => made.upstream.streams() === 3)
  made.upstream.broadcast({
    jsonrpc: '2.0',
    method: 'notifications/progress',
    params: { progressToken: token, progress: 1, total: 2 }
  })
  const told = await stream.next('the progress', ({ method }) => method === 'notifications/progress')
  t.same(told.params, { progressToken: 'mine', progress: 1, total: 2 })
  t.same(
    foreign.messages().filter(({ method }) => method === 'notifications/progress'),
    [],
    'and nobody else'
  )
  stream.cut()
  foreign.cut()
})

t.test('of the call that made a task nothing is held while the task runs, and its user thinks', async (t) => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const heldBytes = (): number => {
    gc()
    return process.memoryUsage().heapUsed
  }
  const { upstream, url } = await acmeGateway(t, {
    script: { capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } } }
  })
  const client = await capableClient(url(), keyOf.ada)
  // All that is made with the first call is there before it is measured.
  await client.request('tools/call', { name: 'pid' })
  const long = 3_000_000
  let token: unknown
  let heldDuringCall = 0
  const before = heldBytes()
  upstream.override(isCall('echo'), (response, { message }) => {
    token = (message as { params: { _meta: { progressToken: unknown } } }).params._meta.progressToken
    heldDuringCall = heldBytes() - before
    const now = new Date(0).toISOString()
    const task = { taskId: 't', status: 'working', ttl: 3_600_000, createdAt: now, lastUpdatedAt: now }
    const requestedSchema = { type: 'object', properties: {} }
    const _meta = { 'io.modelcontextprotocol/related-task': { taskId: 't' } }
    const question = { id: 'q', method: 'elicitation/create', params: { message: 'm', requestedSchema, _meta } }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const said of [question, { id: message?.['id'], result: { task } }])
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...said })}\n\n`)
    response.end()
  })
  const params = { name: 'echo', arguments: {}, task: {} }
  const answer = await client.request('tools/call', {
    ...params,
    _meta: { progressToken: 'mine', 'example.com/x': 'x'.repeat(long) }
  })
  t.match(answer.messages, [{ method: 'elicitation/create' }, { result: { task: { status: 'working' } } }])
  upstream.seen.length = 0
  t.ok(heldDuringCall > long / 2, 'it is held while the call runs, the control')
  await until('nothing of it is held', () => heldBytes() - before < long / 4)

  const stream = await listenEvents(url(), client)
  await until('the session and the listing listen to the server', () => upstream.streams() === 2)
  const progress = { progressToken: token, progress: 1 }
  upstream.broadcast({ jsonrpc: '2.0', method: 'notifications/progress', params: progress })
  const told = await stream.next('the progress', ({ method }) => method === 'notifications/progress')
  t.same(told.params, { progressToken: 'mine', progress: 1 }, 'and the task is known')
  stream.cut()
})
