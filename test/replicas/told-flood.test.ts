// Attack: what one replica tells another, and needs no answer, is more than Redis holds for who reads it: of a client, and
// of servers to the streams of their sessions. Little of it is on its way at a time, and nobody is cut off.

import { Redis } from 'ioredis'
import t from 'tap'
import { withCompiledCode } from '../kit/compiled-code.ts'
import { openEvents } from '../kit/events.ts'
import { post } from '../kit/server-request.ts'
import { until } from '../kit/until.ts'
import { sessionAt, startReplicas } from './rig.ts'

const mebibyte = 1024 * 1024
const long = {
  command: process.execPath,
  args: [new URL('../kit/long-answers-server.ts', import.meta.url).pathname]
}
const rig = await startReplicas(
  t,
  {
    upstreams: withCompiledCode({ long }),
    endpoints: { default: { upstreams: ['long'], prefix: '' } },
    limits: { memoryBytes: 3_000 * mebibyte }
  },
  [{}, {}]
)
const redis = new Redis(rig.store.url)
t.teardown(() => redis.disconnect())
// Less than by default, so that less does it.
await redis.config('SET', 'client-output-buffer-limit', 'pubsub 24mb 24mb 60')

const cutOff = (): unknown[] =>
  rig.nodes.flatMap((node) => node.log()).filter(({ msg }) => String(msg).includes('messages of Redis are cut off'))

/** A replica reads nothing meanwhile. */
async function whilePaused(node: number, run: () => Promise<unknown>): Promise<void> {
  rig.nodes[node]?.signal('SIGSTOP')
  try {
    await run()
  } finally {
    rig.nodes[node]?.signal('SIGCONT')
  }
}

/** That it reads again, and has not been cut off, shows by a call that crosses. */
async function crosses(from: number, client: Awaited<ReturnType<typeof sessionAt>>): Promise<void> {
  const call = { id: 'after', method: 'tools/call', params: { name: 'long', arguments: { chars: 3 } } }
  await until('calls cross', async () => (await post(rig.at(from), client, call)).json?.result !== undefined)
}

t.test('long notifications of a client wait for the home of its session', async (t) => {
  const client = await sessionAt(rig.at(0))
  await crosses(1, client)
  const padding = 'x'.repeat(3 * mebibyte)
  const changed = { method: 'notifications/roots/list_changed', params: { _meta: { padding } } }
  await whilePaused(0, async () => {
    for (let n = 0; n < 16; n++) t.equal((await post(rig.at(1), client, changed)).status, 202)
  })
  await crosses(1, client)
  t.same(cutOff(), [])
})

t.test('long log messages of servers wait for the replica with the streams of their sessions', async (t) => {
  const logs = 4
  const sessions = await Promise.all(
    Array.from({ length: 12 }, async () => {
      const client = await sessionAt(rig.at(0))
      const headers = { ...client.headers, accept: 'text/event-stream' }
      const stream = await openEvents(rig.at(1), { method: 'GET', headers })
      t.teardown(() => stream.cut())
      const call = (id: number, more: object) =>
        post(rig.at(0), client, {
          id,
          method: 'tools/call',
          params: { name: 'long', arguments: { chars: 3, ...more } }
        })
      t.match((await call(1, { logs: 1 })).json, { result: {} })
      await stream.next('the control', ({ method }) => method === 'notifications/message')
      const read = () => post(rig.at(0), client, { id: 9, method: 'logging/setLevel', params: { level: 'debug' } })
      return { call, read, stream }
    })
  )
  await whilePaused(1, async () => {
    await Promise.all(sessions.map(({ call }) => call(2, { logs })))
    // All that they said before has come to the home by then.
    for (const answer of await Promise.all(sessions.map(({ read }) => read()))) t.match(answer.messages, [{ id: 9 }])
  })
  for (const { stream } of sessions) {
    const heard = () => stream.messages().filter(({ method }) => method === 'notifications/message')
    await until('all come', () => heard().length === 1 + logs)
    const numbers = heard().map(({ params }) => (params as { data: { n: number } }).data.n)
    t.same(numbers, [1, 1, 2, 3, 4], 'in their order, each once')
  }
  t.same(cutOff(), [])
})
