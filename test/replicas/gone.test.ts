// A replica that is killed, or stops: what ran there ends with what is known of it, and its sessions go on elsewhere.

import t from 'tap'
import type { LegacyClient } from '../kit/client.ts'
import { listenEvents, postEvents } from '../kit/events.ts'
import { callUntilServerRequest, post, scriptedStdio } from '../kit/server-request.ts'
import { until } from '../kit/until.ts'
import { sessionAt, startReplicas, type Rig } from './rig.ts'

const rig = await startReplicas(t, {
  upstreams: { pipe: scriptedStdio },
  endpoints: { default: { upstreams: ['pipe'], prefix: '' } },
  // One that stops waits for its calls for longer than processes take to start elsewhere.
  limits: { drainMs: 600_000 }
})

/** At one replica. */
async function callAt(rig: Rig, node: number, client: LegacyClient, name: string, args: object = {}): Promise<string> {
  const params = { name, arguments: args }
  const { json, text } = await post(rig.at(node), client, { id: `at ${node}`, method: 'tools/call', params })
  return String(json?.result?.content?.[0]?.text ?? text)
}

const slow = { name: 'slow', _meta: { progressToken: 'p' } }

t.test('a replica that stops ends the calls of others with their answers, and its sessions move', async (t) => {
  const client = await sessionAt(rig.at(0))
  const before = await callAt(rig, 1, client, 'pid')
  const call = await postEvents(rig.at(1), client, 'the call', 'tools/call', slow)
  await call.next('progress', ({ method }) => method === 'notifications/progress')
  const own = await listenEvents(rig.at(1), client)
  await until('it is primed', () => own.lastId())
  t.match(await callAt(rig, 2, client, 'release'), 'released')
  await call.ended
  t.match(call.messages().at(-1), { id: 'the call', result: {} })

  const again = await postEvents(rig.at(1), client, 'another call', 'tools/call', slow)
  await again.next('progress', ({ method }) => method === 'notifications/progress')
  rig.nodes[0]?.signal('SIGTERM')
  await rig.nodes[0]?.logged('it stops', ({ msg }) => /stopp|drain|shut/i.test(String(msg)))
  const after = await callAt(rig, 2, client, 'pid')
  t.match(after, /^\d+$/)
  t.not(after, before, 'a process of another replica')
  t.equal(await callAt(rig, 1, client, 'pid'), after, 'one for all')
  t.notOk(again.closed, 'what runs there goes on')
  await post(rig.at(2), client, { method: 'notifications/cancelled', params: { requestId: 'another call' } })
  await again.ended
  t.equal((await rig.nodes[0]?.ended)?.code, 0)

  t.match((await client.request('ping').catch(() => undefined))?.status, undefined, 'it is gone')
  t.match(await post(rig.at(2), client, { id: 1, method: 'resources/subscribe', params: { uri: 'test://one' } }), {
    json: { result: {} }
  })
  t.equal(await callAt(rig, 1, client, 'touch'), 'touched')
  await own.next('the update', ({ method }) => method === 'notifications/resources/updated')
  own.cut()
})

t.test('a replica that is killed: the outcome of its calls is unknown, soon', async (t) => {
  const client = await sessionAt(rig.at(1))
  const before = await callAt(rig, 2, client, 'pid')
  const call = await postEvents(rig.at(2), client, 'the call', 'tools/call', slow)
  await call.next('progress', ({ method }) => method === 'notifications/progress')
  const asked = await sessionAt(rig.at(1))
  const asking = await callUntilServerRequest(rig.at(2), asked, 'elicit')
  rig.nodes[1]?.signal('SIGKILL')
  await call.ended
  await asking.stream.ended
  for (const [id, stream] of [
    ['the call', call],
    ['the call', asking.stream]
  ] as const)
    t.match(stream.messages().at(-1), { id, error: { data: { reason: 'upstream_lost', outcome: 'unknown' } } })
  const isLost = (line: Record<string, unknown>): boolean =>
    line['msg'] === 'call' && line['outcome'] === 'upstream_lost'
  await rig.nodes[2]?.logged('a lost call has its line where it came in', isLost)
  const answer = await post(rig.at(2), asked, { id: asking.serverRequest['id'], result: { action: 'accept' } })
  t.match([answer.status, answer.json], [400, { error: { data: { reason: 'invalid_request' } } }])

  const after = await callAt(rig, 2, client, 'pid')
  t.match(after, /^\d+$/)
  t.not(after, before)
  t.equal(await callAt(rig, 2, client, 'pid'), after)
})

t.test(
  'a client whose stream was at a replica that is killed comes back, and hears that the outcome is unknown',
  async (t) => {
    const client = await sessionAt(rig.at(2))
    const holder = await rig.start()
    const call = await postEvents(`${holder.url}/t/acme/mcp`, client, 'the call', 'tools/call', slow)
    await call.next('progress', ({ method }) => method === 'notifications/progress')
    call.cut()
    const waiting = await listenEvents(rig.at(2), client, call.lastId())
    await waiting.ended
    t.equal(waiting.events().at(-1)?.retry, 1000, 'the control: while the replica lives the client waits')
    holder.signal('SIGKILL')
    await holder.ended
    const rest = await listenEvents(rig.at(2), client, call.lastId())
    await rest.ended
    t.match(rest.messages().at(-1), {
      id: 'the call',
      error: { data: { reason: 'upstream_lost', outcome: 'unknown' } }
    })
  }
)

for (const [what, signal] of [
  ['is killed', 'SIGKILL'],
  ['hangs', 'SIGSTOP']
] as const)
  t.test(
    `where the home of a call ${what}, its client hears within two seconds that the outcome is unknown`,
    async (t) => {
      const waited: number[] = []
      // A busy machine makes it longer, and nothing makes it shorter: one of eight shows it.
      while (waited.length < 8 && !waited.some((ms) => ms < 2_000)) {
        const home = await rig.start()
        const client = await sessionAt(`${home.url}/t/acme/mcp`)
        const call = await postEvents(rig.at(2), client, 'the call', 'tools/call', slow)
        await call.next('progress', ({ method }) => method === 'notifications/progress')
        const since = performance.now()
        home.signal(signal)
        await call.ended
        waited.push(performance.now() - since)
        t.match(call.messages().at(-1), { id: 'the call', error: { data: { outcome: 'unknown' } } })
        home.signal('SIGKILL')
      }
      t.ok(Math.min(...waited) < 2_000, waited.map((ms) => Math.round(ms)).join(', '))
    }
  )
