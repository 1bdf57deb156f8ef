// Progress of a task comes after the answer to the request that made the task, with the token of that request.

import t from 'tap'
import { never, recordingClient } from '../kit/connector.ts'
import { testRpcClient } from '../kit/rpc-client.ts'
import type { JsonObject } from '../../src/protocol/messages.ts'

const progress = (progressToken: unknown) => ({
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken, progress: 1 }
})

/** A call that has been answered; its token at the server is its id. */
async function answered({ rpc, sent }: ReturnType<typeof testRpcClient>, params: JsonObject, result: JsonObject) {
  const client = recordingClient()
  const call = rpc.request({ method: 'tools/call', params: { name: 'work', ...params } }, client, never)
  const id = sent.at(-1)?.['id']
  rpc.receive({ jsonrpc: '2.0', id, result })
  await call
  return { client, id }
}

const asked = { task: {}, _meta: { progressToken: 'mine' } }

t.test('the client is told with its own token until the task expires', async (t) => {
  for (const [ttl, lasts] of [
    [5_000, 5_000],
    [null, 3_600_000]
  ] as const) {
    const still = testRpcClient()
    const { client, id } = await answered(still, asked, { task: { taskId: 't', ttl } })
    still.clock.advance(lasts - 1)
    still.rpc.receive(progress(id))
    t.same(client.notified, [{ method: 'notifications/progress', params: { progressToken: 'mine', progress: 1 } }])
    still.clock.advance(1)
    still.rpc.receive(progress(id))
    t.equal(client.notified.length, 1)
  }
})

t.test('a client that asked for no task, got none, or gave no token is told nothing after its answer', async (t) => {
  for (const [params, result] of [
    [{ ...asked, task: undefined }, { task: { taskId: 't' } }],
    [asked, { content: [] }],
    [{ task: {} }, { task: { taskId: 't' } }]
  ] as const) {
    const still = testRpcClient()
    const { client, id } = await answered(still, params, result)
    still.rpc.receive(progress(id))
    t.same(client.notified, [])
  }
})

t.test('only the newest tasks are remembered', async (t) => {
  const still = testRpcClient()
  const made = []
  for (let n = 0; n < 257; n++) made.push(await answered(still, asked, { task: { taskId: `t${n}` } }))
  for (const { id } of made) still.rpc.receive(progress(id))
  t.same(
    made.map(({ client }) => client.notified.length),
    [0, ...Array.from({ length: 256 }, () => 1)]
  )
})
