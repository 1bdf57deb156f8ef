// Progress of a task comes after the answer to the request that made it, under the token of that request.

import t from 'tap'
import { recordingClient } from '../kit/connection.ts'
import { stillExchange } from '../kit/exchange.ts'
import type { JsonObject } from '../../src/protocol/messages.ts'

const never = new AbortController().signal
const progress = (progressToken: unknown) => ({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 1 } })

/** A call that has been answered; its token at the server is its id. */
async function answered ({ exchange, sent }: ReturnType<typeof stillExchange>, params: JsonObject, result: JsonObject) {
  const client = recordingClient()
  const call = exchange.request({ method: 'tools/call', params: { name: 'work', ...params } }, client, never)
  const id = sent.at(-1)?.['id']
  exchange.receive({ jsonrpc: '2.0', id, result })
  await call
  return { client, id }
}

const asked = { task: {}, _meta: { progressToken: 'mine' } }

t.test('its requester hears of it with its own token, until the time of the task has run out', async (t) => {
  for (const [ttl, lasts] of [[5_000, 5_000], [null, 3_600_000]] as const) {
    const still = stillExchange()
    const { client, id } = await answered(still, asked, { task: { taskId: 't', ttl } })
    still.clock.advance(lasts - 1)
    still.exchange.receive(progress(id))
    t.same(client.notified, [{ method: 'notifications/progress', params: { progressToken: 'mine', progress: 1 } }])
    still.clock.advance(1)
    still.exchange.receive(progress(id))
    t.equal(client.notified.length, 1)
  }
})

t.test('a call that asked for no task, got none, or gave no token hears nothing after its answer', async (t) => {
  for (const [params, result] of [[{ ...asked, task: undefined }, { task: { taskId: 't' } }], [asked, { content: [] }], [{ task: {} }, { task: { taskId: 't' } }]] as const) {
    const still = stillExchange()
    const { client, id } = await answered(still, params, result)
    still.exchange.receive(progress(id))
    t.same(client.notified, [])
  }
})

t.test('the newest tasks are remembered, the oldest go on in silence', async (t) => {
  const still = stillExchange()
  const made = []
  for (let n = 0; n < 257; n++) made.push(await answered(still, asked, { task: { taskId: `t${n}` } }))
  for (const { id } of made) still.exchange.receive(progress(id))
  t.same(made.map(({ client }) => client.notified.length), [0, ...Array.from({ length: 256 }, () => 1)])
})
