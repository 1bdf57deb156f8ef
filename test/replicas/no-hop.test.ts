// Which calls of a session need no other replica than the one that they came to: counted are the messages that replicas
// send each other.

import t from 'tap'
import { Redis } from 'ioredis'
import { post } from '../kit/server-request.ts'
import { canaryServer } from '../kit/canary-server.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { countMessages } from './lending.ts'
import { sessionAt, startReplicas } from './rig.ts'

const [kept, free] = [await canaryServer(t), await startUpstream({ sessions: false })]
t.teardown(() => free.close())
const upstreams = { kept: { type: 'http', url: kept.url }, free: { type: 'http', url: free.url } }
const rig = await startReplicas(t, { upstreams }, [{}, {}])
const { messagesOf } = await countMessages(t, rig.store.url)
const said = new Redis(rig.store.url)
t.teardown(() => said.disconnect())

t.test(
  'a call at a server over HTTP that gives no session runs where it comes; one with a session at its home',
  async (t) => {
    const [client, elsewhere] = [await sessionAt(rig.at(0)), await sessionAt(rig.at(1))]
    const call = (node: number, name: string, args: object = {}, of = client) =>
      post(rig.at(node), of, {
        id: `${name} ${Math.random()}`,
        method: 'tools/call',
        params: { name, arguments: args }
      })
    // Each replica has read the lists, and knows what its servers are: they are, each, read for those who come to it.
    for (const [node, of] of [client, elsewhere].entries())
      await until('the tool is known', async () => {
        const { json } = await call(node, 'free__echo', { text: 'a' }, of)
        return json?.result !== undefined
      })
    await elsewhere.end()
    const none = await messagesOf(async () => {
      for (let n = 0; n < 10; n++)
        t.match(await call(n % 2, 'free__echo', { text: String(n) }), { json: { result: {} } })
    })
    t.equal(none, 0, 'no message to another replica')
    const some = await messagesOf(async () => {
      t.match(await call(1, 'kept__mirror', { canary: 'b' }), { json: { result: {} } }, 'the control')
    })
    t.ok(some >= 2, `${some} messages`)
  }
)

/** Commands that Redis was sent, by name, but for those of this test. */
async function commands(): Promise<Map<string, number>> {
  const text = await said.info('commandstats')
  return new Map(
    [...text.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)].flatMap(([, name = '', calls]) =>
      name === 'info' ? [] : [[name, Number(calls)] as const]
    )
  )
}

t.test('no command to Redis stands on the path of a warm call', async (t) => {
  const client = await sessionAt(rig.at(0))
  const call = () =>
    post(rig.at(0), client, {
      id: `warm ${Math.random()}`,
      method: 'tools/call',
      params: { name: 'free__echo', arguments: {} }
    })
  const calls = 200
  const sentDuring = async (work: () => Promise<unknown>): Promise<Map<string, number>> => {
    const before = await commands()
    await work()
    const sent = [...(await commands())].map(([name, count]) => [name, count - (before.get(name) ?? 0)] as const)
    return new Map(sent.filter(([, count]) => count > 0))
  }
  for (let n = 0; n < 10; n++) await call()
  // What replicas say of themselves goes on meanwhile, by the second and not by the call.
  await until('none comes with each call, nor with every other one', async () => {
    const warm = await sentDuring(async () => {
      for (let n = 0; n < calls; n++) t.match(await call(), { json: { result: {} } })
    })
    t.comment(JSON.stringify([...warm]))
    return [...warm.values()].every((count) => count < calls / 2)
  })
  const opened = await sentDuring(async () => {
    for (let n = 0; n < 20; n++) await (await sessionAt(rig.at(0))).end()
  })
  t.ok(
    [...opened.values()].some((count) => count >= 20),
    'the control: to open a session asks Redis'
  )
})
