// A replica that hangs (SIGSTOP) while it runs calls of others, and goes on later: its callers are told soon, and what it
// answers late is nobody's answer.

import t from 'tap'
import { canaryServer } from '../kit/canary-server.ts'
import { send } from '../kit/client.ts'
import { postEvents } from '../kit/events.ts'
import { post } from '../kit/server-request.ts'
import { until } from '../kit/until.ts'
import { sessionAt, startReplicas } from './rig.ts'

const web = await canaryServer(t)
const rig = await startReplicas(t, {
  upstreams: { web: { type: 'http', url: web.url } },
  endpoints: { default: { upstreams: ['web'], prefix: '' } }
})

const callOf = (name: string, canary: string) => ({ name, arguments: { canary } })
const sessionOf = (canary: string): string | undefined =>
  [...web.bySession].find(([, canaries]) => canaries.has(canary))?.[0]

t.test('a home that hangs: the outcome of its calls is unknown, soon; late answers go nowhere', async (t) => {
  const client = await sessionAt(rig.at(0))
  const hold = (node: number, canary: string) =>
    postEvents(rig.at(node), client, 'the call', 'tools/call', callOf('hold', canary))
  const another = await sessionAt(rig.at(0))
  const whole = hold(1, 'before')
  await until('the call is under way', () => web.held().includes('before'))

  rig.nodes[0]?.signal('SIGSTOP')
  const hungAt = performance.now()
  const before = await whole
  await before.ended
  const tookMs = performance.now() - hungAt
  t.ok(tookMs < 8_000, `two seconds, and what a busy machine takes on top (${Math.round(tookMs)} ms)`)
  const lost = before.type === 'application/json' ? JSON.parse(before.text()) : before.messages().at(-1)
  t.match(lost, { id: 'the call', error: { data: { reason: 'upstream_lost', outcome: 'unknown' } } })
  // The answer is on its way before the process that hangs can cancel the call.
  web.release()

  const after = hold(1, 'after')
  await until('another replica runs the next call', () => web.held().includes('after'))
  const other = await post(rig.at(2), another, {
    id: 1,
    method: 'tools/call',
    params: callOf('mirror', 'other session')
  })
  t.match(other.json, { result: { content: [{ text: 'other session' }] } })

  rig.nodes[0]?.signal('SIGCONT')
  await until('it works again', async () => {
    const { status } = await send(`${rig.nodes[0]?.url}/health/ready`, { method: 'GET' })
    return status === 200
  })
  const through = await post(rig.at(0), client, { id: 2, method: 'tools/call', params: callOf('mirror', 'through it') })
  t.match(through.json, { result: { content: [{ text: 'through it' }] } })
  t.equal(sessionOf('through it'), sessionOf('after'), 'it sends the calls of the session to their new home')
  t.same(web.held(), ['after'], 'the call of the same id is still open')
  web.release()
  const answered = await after
  await answered.ended
  t.match(answered.text(), /"text":"after"/)
  t.notMatch(answered.text(), /before/)
  for (const canary of ['before', 'after', 'other session', 'through it'])
    t.equal(web.executed.get(canary), 1, `${canary}: executed once`)
})
