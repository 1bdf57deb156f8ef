// Attack: the tasks of a tenant are found by whoever comes under its name after it was removed: in tasks/list, and by
// the id of a task whose result the gateway keeps.

import t, { type Test } from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { configOf, gateway, type TestGatewayOptions } from '../kit/gateway.ts'
import { startModern } from '../kit/modern-server.ts'
import { isMethod, startUpstream } from '../kit/upstream.ts'

/** Two tenants, so that one of them can go. */
async function acme(t: Test, upstream: object) {
  const options: TestGatewayOptions = {
    upstreams: { up: upstream },
    endpoints: { default: { upstreams: ['up'], prefix: '' } },
    auth: { keys: [{ name: 'ada', key: keyOf.ada }] },
    tenants: { other: { auth: { keys: [{ name: 'eve', key: keyOf.bob }] }, upstreams: {} } }
  }
  const whole = configOf(options) as { tenants: Record<string, unknown> }
  const { acme: _removed, ...others } = whole.tenants
  const { url, reload } = await gateway(t, options)
  return {
    session: () => legacyClient(url(), keyOf.ada),
    keep: () => reload(whole),
    makeAgain() {
      reload({ ...whole, tenants: others })
      reload(whole)
    }
  }
}

/** A server whose sessions all have the same tasks. */
async function taskServer(t: Test) {
  const requests = { tools: { call: {} } }
  const upstream = await startUpstream({ capabilities: { tools: {}, tasks: { list: {}, cancel: {}, requests } } })
  t.teardown(() => upstream.close())
  const tasks: object[] = []
  const answer = (method: string, resultOf: () => object): void =>
    upstream.override(
      isMethod(method),
      (response, { message }) =>
        response
          .setHeader('Content-Type', 'application/json')
          .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result: resultOf() })),
      Infinity
    )
  answer('tasks/list', () => ({ tasks }))
  answer('tools/call', () => {
    const now = new Date().toISOString()
    const taskId = `task-${tasks.length + 1}`
    tasks.push({ taskId, status: 'working', createdAt: now, lastUpdatedAt: now, ttl: 60_000 })
    return { task: tasks.at(-1) }
  })
  return { type: 'http', url: upstream.url }
}

t.test('a tenant that was removed and made again lists none of the tasks of the one before', async (t) => {
  const { session, keep, makeAgain } = await acme(t, await taskServer(t))
  const listed = async (): Promise<string[]> => {
    const { request } = await session()
    return (await request('tasks/list')).json.result.tasks.map(({ taskId }: { taskId: string }) => taskId)
  }
  const make = async (): Promise<string> => {
    const { request } = await session()
    return (await request('tools/call', { name: 'echo', arguments: {}, task: { ttl: 60_000 } })).json.result.task.taskId
  }
  const before = await make()
  keep()
  t.same(await listed(), [before], 'positive control: another session of the same tenant')
  makeAgain()
  t.same(await listed(), [])
  const after = await make()
  t.same(await listed(), [after], 'its own are there')
})

t.test('nor does it get the results that the gateway keeps', async (t) => {
  const upstream = await startModern()
  t.teardown(() => upstream.close())
  const { session, keep, makeAgain } = await acme(t, { type: 'http', url: upstream.url })
  const resultOf = async (taskId: string) => (await (await session()).request('tasks/result', { taskId })).json
  const { json } = await (
    await session()
  ).request('tools/call', { name: 'echo', arguments: { text: 'kept' }, task: { ttl: 60_000 } })
  const { taskId } = json.result.task
  keep()
  t.match(await resultOf(taskId), { result: { content: [{ type: 'text', text: /kept/ }] } }, 'positive control')
  makeAgain()
  t.match(await resultOf(taskId), { error: { code: -32602, message: /Unknown task/ } })
})
