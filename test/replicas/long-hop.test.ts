// Attack: callers of one tenant have long answers and long progress sent from one replica to another, more than Redis
// holds for who reads them. Few of it is on its way at a time, progress is left out, and a neighbour notices nothing.

import { Redis } from 'ioredis'
import t from 'tap'
import { withCompiledCode } from '../kit/compiled-code.ts'
import { legacyClient } from '../kit/client.ts'
import { postEvents } from '../kit/events.ts'
import { sessionAt, startReplicas } from './rig.ts'

const mebibyte = 1024 * 1024
const long = {
  command: process.execPath,
  args: [new URL('../kit/long-answers-server.ts', import.meta.url).pathname]
}
const neighbourKey = 'gh_hop_key_of_neighbour_0123456789'
const rig = await startReplicas(
  t,
  {
    upstreams: withCompiledCode({ long }),
    endpoints: { default: { upstreams: ['long'], prefix: '' } },
    limits: { memoryBytes: 3_000 * mebibyte },
    tenants: {
      other: { auth: { keys: [{ name: 'neighbour', key: neighbourKey }] }, upstreams: withCompiledCode({ long }) }
    }
  },
  [{}, {}]
)
const redis = new Redis(rig.store.url)
t.teardown(() => redis.disconnect())
// Less than by default, so that less does it.
await redis.config('SET', 'client-output-buffer-limit', 'pubsub 16mb 8mb 60')

const cutOff = (): unknown[] =>
  rig.nodes.flatMap((node) => node.log()).filter(({ msg }) => String(msg).includes('messages of Redis are cut off'))

/** Calls of another tenant, each of which asks the store and crosses from replica to replica. */
async function neighbour(): Promise<{ stop(): Promise<string[]> }> {
  const client = await legacyClient(rig.at(0, 't/other/mcp'), neighbourKey)
  const failures: string[] = []
  const stop = new AbortController()
  const call = async (): Promise<void> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'long__long' } })
    const answer = await fetch(rig.at(1, 't/other/mcp'), {
      method: 'POST',
      headers: client.headers as Record<string, string>,
      body
    })
    const text = await answer.text()
    if (!text.includes('"result"')) failures.push(text.slice(0, 300))
  }
  await call()
  const running = (async () => {
    while (!stop.signal.aborted) await call()
  })()
  return {
    async stop() {
      stop.abort()
      await running
      return failures
    }
  }
}

t.test('long answers that cross at once arrive whole, and cost a neighbour nothing', async (t) => {
  const chars = 7 * mebibyte
  const calls = 10
  const client = await sessionAt(rig.at(0))
  const others = await neighbour()
  const answers = await Promise.all(
    Array.from({ length: calls }, async (_, id) => {
      const call = await postEvents(rig.at(1), client, `long ${id}`, 'tools/call', {
        name: 'long',
        arguments: { chars }
      })
      await call.ended
      // What is answered soon enough comes without a stream.
      return call.type?.startsWith('application/json') === true ? JSON.parse(call.text()) : call.messages().at(-1)
    })
  )
  for (const [id, answer] of answers.entries())
    t.equal(answer?.result?.content?.[0]?.text?.length, chars, `${id}: ${JSON.stringify(answer?.error)}`)
  t.same(await others.stop(), [])
  t.same(cutOff(), [])
})

t.test('long progress is told or left out, and costs a neighbour nothing', async (t) => {
  const progress = 100
  const client = await sessionAt(rig.at(0))
  const others = await neighbour()
  const call = await postEvents(rig.at(1), client, 'noisy', 'tools/call', {
    name: 'long',
    arguments: { progress },
    _meta: { progressToken: 'p' }
  })
  await call.ended
  const messages = call.messages()
  t.match(messages.at(-1), { id: 'noisy', result: {} })
  t.ok(messages.length > 1, `${messages.length - 1} of ${progress} are told`)
  t.same(await others.stop(), [])
  t.same(cutOff(), [])
})
