// What a server says on the stream of a session (GET), of which one replica hears, about calls of others.

import { randomBytes } from 'node:crypto'
import t from 'tap'
import type { LegacyClient } from '../kit/client.ts'
import { type EventStream, postEvents } from '../kit/events.ts'
import { isServerRequest, post } from '../kit/server-request.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { countMessages, tool } from './lending.ts'
import { sessionAt, startReplicas } from './rig.ts'

const tools = ['echo', 'slow', 'steps'].map((name) => ({ name, inputSchema: { type: 'object' } }))
const server = await startUpstream({ tools })
t.teardown(server.close)
const upstreams = { up: { type: 'http', url: server.url } }
const rig = await startReplicas(t, { upstreams, endpoints: { default: { upstreams: ['up'], prefix: '' } } }, [
  {},
  {},
  {}
])
const [home, guest, third] = [0, 1, 2].map((node) => rig.at(node)) as [string, string, string]
const { long, lentTo } = await countMessages(t, rig.store.url)
for (const url of [home, guest, third]) {
  const client = await sessionAt(url)
  await tool(url, client, 'echo')
  await client.end()
}

async function lent(to: readonly string[]): Promise<LegacyClient> {
  const client = await sessionAt(home)
  await tool(home, client, 'echo')
  for (const url of to) await lentTo(url, client, 'echo')
  return client
}

/** A call that waits, and the token of its progress as the server knows it. The home of its session listens by then. */
async function waiting(
  url: string,
  client: LegacyClient,
  id: string,
  params: { name: string; arguments?: object } = { name: 'slow' }
) {
  const stream = await postEvents(url, client, id, 'tools/call', { ...params, _meta: { progressToken: `of ${id}` } })
  await stream.next('progress on its stream', (message) => message.params?.progress === 0)
  const call = server.seen.findLast(isCall(params.name))
  const session = call?.headers['mcp-session-id']
  await until('the home listens', () =>
    server.seen.some(({ method, headers }) => method === 'GET' && headers['mcp-session-id'] === session)
  )
  return { stream, token: call?.message?.['id'] }
}

const say = (progressToken: unknown, progress: number, message = ''): void =>
  server.broadcast({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress, message } })
const heard = (stream: EventStream, progress: number) =>
  stream.next(`progress ${progress}`, ({ params }) => params?.progress === progress)

t.test('progress is told the replica that runs the call, and no other; what is too long is told nobody', async (t) => {
  const client = await lent([guest, third])
  const calls = [await waiting(guest, client, 'at a guest'), await waiting(third, client, 'at another')]
  const text = (bytes: number): string => randomBytes(bytes).toString('base64')
  for (const [n, { stream, token }] of calls.entries()) {
    say(token, 1, text(15_000))
    await heard(stream, 1)
    t.same(
      await long(15_000),
      Array.from({ length: n + 1 }, () => 1),
      'one message, to that replica'
    )
    say(token, 2, text(60_000))
    say(token, 3)
    await heard(stream, 3)
    t.notOk(stream.messages().some(({ params }) => params?.progress === 2))
  }
  t.same(await long(60_000), [])
  server.server.release()
  for (const { stream } of calls) await stream.ended
  await client.end()
})

t.test('all connections that a replica has into one session hear of their calls', async (t) => {
  const client = await lent([guest])
  const question = { method: 'elicitation/create', params: { message: 'who?' } }
  const steps = [{ progress: 0 }, { wait: true }, { ask: [question] }]
  const old = await waiting(guest, client, 'old', { name: 'steps', arguments: { steps, push: true } })
  // The ids of its requests are used up: for more it opens another connection.
  for (let n = 0; n < 16; n++) await Promise.all(Array.from({ length: 64 }, () => tool(guest, client, 'echo')))
  await lentTo(guest, client, 'echo')
  const next = await waiting(guest, client, 'new')
  for (const { stream, token } of [old, next]) {
    say(token, 1)
    await heard(stream, 1)
  }
  await post(guest, client, { method: 'notifications/cancelled', params: { requestId: 'new' } })
  await next.stream.ended
  server.server.release()
  const { id } = await old.stream.next('the question on the stream of the home', isServerRequest)
  t.equal((await post(third, client, { id, result: { action: 'accept' } })).status, 202)
  t.match(await old.stream.next('its answer', (message) => message.id === 'old'), { result: {} })
  await client.end()
})
