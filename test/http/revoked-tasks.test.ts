// Tasks at older servers whose callers a reload takes away: the server is told that nobody wants them, and the
// connections of such callers are closed. Those of everybody else go on.

import t, { type Test } from 'tap'
import { legacyClient } from '../kit/client.ts'
import { configOf, gateway, type TestGatewayOptions } from '../kit/gateway.ts'
import type { Json } from '../kit/mcp-server.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { until } from '../kit/until.ts'
import { type HttpUpstream, isCall, isMethod, startUpstream } from '../kit/upstream.ts'

const ada = { name: 'ada', key: 'gh_key_of_ada_0123456789' }
const bob = { name: 'bob', key: 'gh_key_of_bob_0123456789' }
const tasks = { extensions: { 'io.modelcontextprotocol/tasks': {} } }

/** A server whose tasks run until they are cancelled, named after who made them. */
async function taskServer(t: Test): Promise<HttpUpstream> {
  const upstream = await startUpstream({
    tools: [{ name: 'toil', inputSchema: { type: 'object' }, execution: { taskSupport: 'required' } }],
    capabilities: { tools: {}, tasks: { cancel: {}, requests: { tools: { call: {} } } } }
  })
  t.teardown(() => upstream.close())
  const now = new Date().toISOString()
  const task = (taskId: unknown, status = 'working'): Json => ({
    taskId,
    status,
    createdAt: now,
    lastUpdatedAt: now,
    ttl: 600_000
  })
  interface Params {
    readonly taskId?: string
    readonly arguments?: { readonly who?: string }
  }
  const answer = (match: Parameters<HttpUpstream['override']>[0], resultOf: (params: Params) => Json): void =>
    upstream.override(
      match,
      (response, { message }) => {
        response.setHeader('Content-Type', 'application/json')
        response.end(
          JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result: resultOf(message?.['params'] as Params) })
        )
      },
      Infinity
    )
  answer(isCall('toil'), (params) => ({ task: task(params.arguments?.who) }))
  answer(isMethod('tasks/get'), (params) => task(params.taskId))
  answer(isMethod('tasks/cancel'), (params) => task(params.taskId, 'cancelled'))
  return upstream
}

const cancelled = ({ seen }: HttpUpstream): string[] =>
  seen
    .filter(isMethod('tasks/cancel'))
    .map(({ message }) => String((message?.['params'] as Json | undefined)?.['taskId']))

async function held(t: Test) {
  const upstream = await taskServer(t)
  const options: TestGatewayOptions = {
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } },
    auth: { keys: [ada, bob] }
  }
  const acme = await gateway(t, options)
  const callOf = (who: string): Json => ({ name: 'toil', arguments: { who } })
  const ofSession = async ({ name, key }: typeof ada) => {
    const client = await legacyClient(acme.url(), key)
    const { json } = await client.request('tools/call', { ...callOf(`${name} in a session`), task: { ttl: 600_000 } })
    return { client, taskId: json.result.task.taskId as string }
  }
  const modern = async ({ name, key }: typeof ada): Promise<string> => {
    const params = callOf(`${name} without one`)
    const { json } = await modernRequest(acme.url(), 'tools/call', params, { token: key, capabilities: tasks })
    return json.result.taskId as string
  }
  const hers = await ofSession(ada)
  const his = await ofSession(bob)
  await modern(ada)
  const hisModern = await modern(bob)
  return { ...acme, upstream, options, hers, his, hisModern }
}

t.test('tasks of a caller whose key is taken away are cancelled, and nobody else loses any', async (t) => {
  const { upstream, options, reload, url, hers, his, hisModern } = await held(t)
  const before = upstream.sessions.size
  reload(configOf(options))
  t.same(cancelled(upstream), [], 'a reload that changes nothing cancels nothing')
  reload(configOf({ ...options, auth: { keys: [bob] } }))
  await until('her tasks are cancelled', () => cancelled(upstream).length === 2)
  t.same(cancelled(upstream).toSorted(), ['ada in a session', 'ada without one'])
  await until('the upstream session of her session is closed', () => upstream.sessions.size === before - 1)

  t.equal((await hers.client.request('ping')).status, 401)
  t.match((await his.client.request('tasks/get', { taskId: his.taskId })).json, { result: { status: 'working' } })
  const get = await modernRequest(
    url(),
    'tasks/get',
    { taskId: hisModern },
    {
      token: bob.key,
      capabilities: tasks
    }
  )
  t.match(get.json, { result: { status: 'working' } })
  t.equal(cancelled(upstream).length, 2)
})

t.test('tasks of a tenant that is taken away are cancelled before its connections close', async (t) => {
  const { upstream, options, reload } = await held(t)
  const config = configOf(options) as { tenants: Json }
  reload({ ...config, tenants: { other: config.tenants['acme'] } })
  await until('all tasks are cancelled', () => cancelled(upstream).length === 4)
  await until('all upstream sessions are closed', () => upstream.sessions.size === 0)
})
