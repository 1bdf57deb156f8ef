// A replica that is cut off from Redis, or for which Redis is slow, while the others are not.

import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { noWord } from '../kit/canary-server.ts'
import { send } from '../kit/client.ts'
import { postEvents } from '../kit/events.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { callUntilServerRequest, post } from '../kit/server-request.ts'
import { tcpLink } from '../kit/tcp-link.ts'
import { until } from '../kit/until.ts'
import { canaries, mirror, mirrored, untilMirrored } from './held-calls.ts'
import { sessionAt, startReplicas } from './rig.ts'

const web = await canaries(t)
const link = await tcpLink(t)
const rig = await startReplicas(t, web.behind, [{ link }, {}, {}])

const refused = { status: 503, json: { error: { data: { reason: 'unavailable' } } } }
const modern = (node: number, canary: string) =>
  modernRequest(rig.at(node), 'tools/call', { name: 'mirror', arguments: { canary } }, { token: keyOf.ada })

const readiness = async (node: number): Promise<number> =>
  (await send(`${rig.nodes[node]?.url}/health/ready`, { method: 'GET' })).status

t.test('a home that is cut off from Redis: others take over; what needs no session goes on', async (t) => {
  const client = await sessionAt(rig.at(0))
  t.match(await mirror(rig.at(1), client, 'whole'), mirrored('whole'))
  const params = { name: 'hold', arguments: { canary: 'forwarded' } }
  const forwarded = postEvents(rig.at(1), client, 1, 'tools/call', params)
  await until('the call is under way', () => web.held().includes('forwarded'))
  link.cut()
  const cutAt = performance.now()
  const lost = await forwarded
  await lost.ended
  t.ok(performance.now() - cutAt < 20_000)
  t.match(lost.text(), /"outcome":"unknown"/)

  t.match(await mirror(rig.at(2), client, 'taken over'), mirrored('taken over'))
  t.equal(web.sessionOf('taken over'), web.sessionOf('whole'), 'in the session at the server')
  t.match(await mirror(rig.at(0), client, 'refused'), refused)
  t.match(await modern(0, 'modern'), mirrored('modern'))
  t.equal(await readiness(0), 503, 'a load balancer takes it out')
  t.equal((await send(`${rig.nodes[0]?.url}/health/live`, { method: 'GET' })).status, 200, 'and nobody restarts it')
  t.same([await readiness(1), await readiness(2)], [200, 200])

  link.pass()
  await until('it is ready again', async () => (await readiness(0)) === 200)
  const healed = await untilMirrored(rig.at(0), client)
  t.equal(web.sessionOf(healed), web.sessionOf('taken over'), 'at the new home')
  t.notOk(
    web.seen.some(({ method, headers }) => method === 'DELETE' && headers['mcp-session-id'] === web.sessionOf('whole'))
  )
  for (const canary of ['whole', 'forwarded', 'taken over', 'modern', healed])
    t.equal(web.executed.get(canary), 1, `${canary}: executed once`)
  t.notOk(web.executed.has('refused'))
})

t.test(
  'the process that asks a client is cut off: the answer is refused, and the call ends when it hears',
  async (t) => {
    const client = await sessionAt(rig.at(0))
    const { stream, serverRequest } = await callUntilServerRequest(rig.at(0), client, 'ask', { canary: 'asked' })
    link.cut()
    await until('it notices', async () => (await readiness(0)) === 503)
    const answer = { id: serverRequest['id'], result: { action: 'accept', content: { word: 'never' } } }
    t.match(await post(rig.at(1), client, answer), {
      status: 400,
      json: { error: { data: { reason: 'invalid_request' } } }
    })
    t.notOk(stream.closed, 'its own process still waits')
    link.pass()
    await stream.ended
    t.match(stream.messages().at(-1), { id: 'the call', result: { content: [{ text: 'asked' }, { text: noWord }] } })
    t.same(web.answered.get('asked'), [noWord], 'the server hears that there is no answer')
  }
)

t.test('Redis is slow for one replica: it serves sessions, until it is slower than a command may take', async (t) => {
  const [own, others] = [await sessionAt(rig.at(0)), await sessionAt(rig.at(1))]
  t.match(await mirror(rig.at(0), own, 'fast'), mirrored('fast'))
  link.pass(40)
  await untilMirrored(rig.at(0), others)
  for (const [node, client] of [
    [0, own],
    [1, own],
    [0, others]
  ] as const)
    await untilMirrored(rig.at(node), client)

  link.pass(3_000)
  await until('it refuses', async () => (await mirror(rig.at(0), own, `slower ${Math.random()}`)).status === 503)
  t.match(await mirror(rig.at(0), own, 'too slow'), refused)
  t.match(await mirror(rig.at(1), others, 'elsewhere'), mirrored('elsewhere'))
  t.match(await modern(0, 'modern again'), mirrored('modern again'))
  link.pass()
  await untilMirrored(rig.at(0), others)
  await untilMirrored(rig.at(0), own)
  t.notOk(web.executed.has('too slow'))
  for (const [canary, times] of web.executed) t.equal(times, 1, `${canary}: executed once`)
})
