// A replica that hangs (SIGSTOP) while it runs calls of others, and goes on later: its callers are told soon, and what it
// answers late is nobody's answer. Where all stand still, nobody has hung.

import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { postEvents } from '../kit/events.ts'
import { callUntilServerRequest, post } from '../kit/server-request.ts'
import { until } from '../kit/until.ts'
import { canaries, mirror, mirrored, untilMirrored } from './held-calls.ts'
import { sessionAt, startReplicas } from './rig.ts'

const web = await canaries(t)
const rig = await startReplicas(t, web.behind)

t.test('a home that hangs: the outcome of its calls is unknown, soon; late answers go nowhere', async (t) => {
  const client = await sessionAt(rig.at(0))
  const hold = (node: number, canary: string) =>
    postEvents(rig.at(node), client, 'the call', 'tools/call', { name: 'hold', arguments: { canary } })
  const another = await sessionAt(rig.at(0))
  const whole = hold(1, 'before')
  await until('the call is under way', () => web.held().includes('before'))

  rig.nodes[0]?.signal('SIGSTOP')
  const hungAt = performance.now()
  const before = await whole
  await before.ended
  const tookMs = performance.now() - hungAt
  t.ok(tookMs < 20_000, `two seconds, and what a busy machine takes on top (${Math.round(tookMs)} ms)`)
  const lost = before.type === 'application/json' ? JSON.parse(before.text()) : before.messages().at(-1)
  t.match(lost, { id: 'the call', error: { data: { reason: 'upstream_lost', outcome: 'unknown' } } })
  // The answer is on its way before the process that hangs can cancel the call.
  web.release()

  const after = hold(1, 'after')
  await until('another replica runs the next call', () => web.held().includes('after'))
  t.match(await mirror(rig.at(2), another, 'other session'), mirrored('other session'))

  rig.nodes[0]?.signal('SIGCONT')
  const through = await untilMirrored(rig.at(0), client)
  t.equal(web.sessionOf(through), web.sessionOf('after'), 'it sends the calls of the session to their new home')
  t.same(web.held(), ['after'], 'the call of the same id is still open')
  web.release()
  const answered = await after
  await answered.ended
  t.match(answered.text(), /"text":"after"/)
  t.notMatch(answered.text(), /before/)
  for (const canary of ['before', 'after', 'other session', through])
    t.equal(web.executed.get(canary), 1, `${canary}: executed once`)
})

t.test(
  'the process that asks a client hangs while the answer is given elsewhere: the answer waits for it',
  async (t) => {
    const client = await sessionAt(rig.at(1))
    const { stream, serverRequest } = await callUntilServerRequest(rig.at(1), client, 'ask', { canary: 'asked' })
    rig.nodes[1]?.signal('SIGSTOP')
    const answer = post(rig.at(2), client, {
      id: serverRequest['id'],
      result: { action: 'accept', content: { word: 'late' } }
    })
    t.match(await mirror(rig.at(2), client, 'moved'), mirrored('moved'), 'it counts as gone')
    rig.nodes[1]?.signal('SIGCONT')
    t.equal((await answer).status, 202)
    await stream.ended
    t.match(stream.messages().at(-1), { id: 'the call', result: { content: [{ text: 'asked' }, { text: 'late' }] } })
    t.same(web.answered.get('asked'), ['late'], 'once')
  }
)

t.test('the whole machine stands still for longer than a command may take: no call fails', async (t) => {
  const clients = await Promise.all([0, 1, 2].map((node) => sessionAt(rig.at(node))))
  const stop = new AbortController()
  const said: unknown[] = []
  const callers = clients.map(async (client, at) => {
    for (let n = 0; !stop.signal.aborted; n++) {
      const canary = `still ${at} ${n}`
      const { status, json } = await mirror(rig.at((at + 1) % 3), client, canary)
      said.push(status === 200 && json?.result?.content?.[0]?.text === canary ? 'answered' : { status, json })
    }
  })
  const untilMore = (): Promise<unknown> => {
    const before = said.length
    return until('calls go on', () => said.length > before + 12)
  }
  for (let stalls = 0; stalls < 3; stalls++) {
    await untilMore()
    for (const node of rig.nodes) node.signal('SIGSTOP')
    rig.store.pause()
    // As long as it takes: time that nobody has.
    await wait(1_200)
    for (const node of rig.nodes) node.signal('SIGCONT')
    rig.store.resume()
  }
  await untilMore()
  stop.abort()
  await Promise.all(callers)
  t.same(
    said.filter((each) => each !== 'answered'),
    []
  )
})
