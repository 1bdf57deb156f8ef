// Requests of 2026-07-28 at whichever replica the load balancer picks: nothing that one of them gave out is only its
// own, and none needs the store on its way.

import t, { type Test } from 'tap'
import { gateway, key } from '../kit/gateway.ts'
import type { Json } from '../kit/mcp-server.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { startModern } from '../kit/modern-server.ts'
import { redis } from '../kit/redis.ts'
import { tasksExtension } from '../kit/modern-tasks.ts'

const capabilities = { elicitation: { form: {} }, extensions: { [tasksExtension]: {} } }
const answered = { user_name: { action: 'accept', content: { name: 'Ada' } } }

interface Replicas {
  readonly store: Awaited<ReturnType<typeof redis>>
  /** The result of a request at the next replica in turn. */
  ask(method: string, params?: Json): Promise<Json>
}

async function replicas(t: Test): Promise<Replicas> {
  const upstream = await startModern()
  t.teardown(() => upstream.close())
  const store = await redis(t)
  const options = {
    store: store.url,
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } }
  }
  const houses = [await gateway(t, options), await gateway(t, options)]
  let turn = 0
  return {
    store,
    async ask(method, params = {}) {
      const url = houses[turn++ % houses.length]?.url() ?? ''
      const { json, text } = await modernRequest(url, method, params, { id: turn, capabilities, token: key })
      const { result } = json as { result?: Json }
      if (result === undefined) throw new Error(text)
      return result
    }
  }
}

async function visit(t: Test, { ask }: Replicas): Promise<void> {
  t.match(await ask('server/discover'), { supportedVersions: ['2026-07-28'] })
  t.match(await ask('tools/list'), { tools: [{ name: 'echo' }] })
  t.same(await ask('tools/list'), await ask('tools/list'), 'each shows the same')

  const call = { name: 'ask', arguments: { rounds: 2 } }
  const first = await ask('tools/call', call)
  const second = await ask('tools/call', { ...call, requestState: first['requestState'], inputResponses: answered })
  t.match([first, second], [{ resultType: 'input_required' }, { resultType: 'input_required' }])
  t.match(await ask('tools/call', { ...call, requestState: second['requestState'], inputResponses: answered }), {
    resultType: 'complete',
    content: [{ text: /Ada/ }]
  })

  const { taskId } = await ask('tools/call', { name: 'task' })
  t.match(await ask('tasks/get', { taskId }), { status: 'working' })
  t.match(await ask('tasks/get', { taskId }), { status: 'working' }, 'at the one that gave the id, and at the other')
  await ask('tasks/cancel', { taskId })
  t.match(await ask('tasks/get', { taskId }), { status: 'cancelled' })
}

t.test('whatever a replica gives out is good at the other', async (t) => {
  const all = await replicas(t)
  // An odd number of requests, then everything again: each request is seen by each replica.
  await visit(t, all)
  await all.ask('server/discover')
  await visit(t, all)
})

t.test('while the store is away, all of it goes on', async (t) => {
  const all = await replicas(t)
  await visit(t, all)
  await all.store.stop()
  await visit(t, all)
})
