// An upgrade and the way back: replicas of another version and of this one on one Redis, under load. Run by
// `npm run upgrade`, which says where the other version is.

import t from 'tap'
import { callUntilServerRequest, post } from '../kit/server-request.ts'
import type { LegacyClient } from '../kit/client.ts'
import type { Served } from '../kit/process.ts'
import { startStateful } from '../kit/stateful-server.ts'
import { until } from '../kit/until.ts'
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
  'no version goes on in a session of a server that knows nothing of the other, or ends one of the other',
  async (t) => {
    const server = await startStateful(t)
    const upstreams = { state: { type: 'http', url: server.url } }
    const endpoints = { default: { upstreams: ['state'], prefix: '' } }
    const rig = await startReplicas(t, { upstreams, endpoints }, [{}])
    const at = ({ url }: Served): string => `${url}/t/acme/mcp`
    const tool = async (url: string, client: LegacyClient, name: string, args: object = {}): Promise<string> => {
      const params = { name, arguments: args }
      const { json, text } = await post(url, client, { id: `${name} ${Math.random()}`, method: 'tools/call', params })
      return String(json?.result?.content?.[0]?.text ?? text)
    }
    for (const places of [
      [{}, other, {}],
      [other, {}, other]
    ]) {
      const homes = await Promise.all(places.map((place) => rig.start(place)))
      const client = await sessionAt(at(homes[0]!))
      for (const [turn, home] of homes.entries()) {
        // Of a call that was sent to a home which hangs since less than 100 ms, nobody knows whether it was begun.
        const found = await until('a home is known', async () => {
          const text = await tool(at(home), client, 'get')
          return text.includes('"outcome":"unknown"') ? undefined : text
        })
        t.ok(['nothing', `at ${turn - 1}`].includes(found), `turn ${turn} of ${homes.length}: ${found}`)
        t.equal(await tool(at(home), client, 'set', { value: `at ${turn}` }), `at ${turn}`)
        // One that hangs, and goes on when another one has the session.
        if (turn < homes.length - 1) home.signal('SIGSTOP')
      }
      for (const home of homes) home.signal('SIGCONT')
      const last = `at ${homes.length - 1}`
      // One that has hung for long finds its way back to Redis first.
      for (const home of homes)
        await until(`wherever it comes to: ${last}`, async () => (await tool(at(home), client, 'get')) === last)
      const ofLast = server.seen.findLast(({ message }) => message?.params?.arguments?.value === last)?.session
      const ends = server.seen.filter(({ method, session }) => method === 'DELETE' && session === ofLast)
      t.same(ends, [], 'nobody ends the session that the last home is in')
      for (const home of homes) home.signal('SIGKILL')
      await Promise.all(homes.map(({ ended }) => ended))
    }
  }
)

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
