// An upgrade and the way back: replicas of another version and of this one on one Redis, under load. Run by
// `npm run upgrade`, which says where the other version is.

import t from 'tap'
import { callUntilServerRequest, post } from '../kit/server-request.ts'
import { startUpstream } from '../kit/upstream.ts'
import { canaries, mirror, mirrored } from './held-calls.ts'
import { sessionAt, startReplicas } from './rig.ts'
import { rollingLimits, rollUnderLoad } from './rolling.ts'

const script = process.env['GATEHOUSE_OTHER_VERSION']
if (script === undefined) throw new Error('Run it by: npm run upgrade -- --from REVISION')
const other = { script }

t.test('sessions of either version go on at the other one: calls, server requests and their answers', async (t) => {
  const [web, asking] = [await canaries(t), await startUpstream()]
  t.teardown(() => asking.close())
  const upstreams = { ...web.behind.upstreams, asking: { type: 'http', url: asking.url } }
  const endpoints = { default: { upstreams: ['web', 'asking'], prefix: '' } }
  const rig = await startReplicas(t, { upstreams, endpoints }, [other, {}])
  for (const home of [0, 1]) {
    const client = await sessionAt(rig.at(home))
    for (const node of [home, 1 - home, home]) {
      const canary = `home ${home}, at ${node}, ${Math.random()}`
      t.match(await mirror(rig.at(node), client, canary), mirrored(canary), canary)
      t.equal(web.executed.get(canary), 1)
    }
    t.equal(web.bySession.size, home + 1, 'in one session of its upstream')
    for (const [node, answeredAt] of [
      [0, 1],
      [1, 0]
    ] as const) {
      const call = await callUntilServerRequest(rig.at(node), client, 'elicit', {}, `home ${home}, at ${node}`)
      const answer = { id: call.serverRequest['id'], result: { action: 'accept' } }
      t.equal((await post(rig.at(answeredAt), client, answer)).status, 202)
      t.match(await call.result(), { result: { action: 'accept' } })
    }
  }
})

t.test(
  'three replicas upgraded under load and brought back: no request fails, each call is executed once',
  async (t) => {
    const web = await canaries(t)
    const rig = await startReplicas(t, { ...web.behind, limits: rollingLimits }, [other, other, other])
    const start = (place: object) => () => rig.start(place)
    const { failed, calls } = await rollUnderLoad(t, rig, web, [{}, {}, {}, other, other, other].map(start))
    t.same(failed, [])
    t.ok(calls > 100, `${calls} calls`)
  }
)
