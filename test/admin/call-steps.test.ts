// What happens during a call, told with it to whoever looks: server requests until their responses, notifications, in
// the order and at the time in which they were; nothing of it where there was nothing.

import t from 'tap'
import { noteNotification } from '../../src/observe/call-notes.ts'
import type { CallRecord } from '../../src/observe/calls.ts'
import { adminGateway } from '../kit/admin.ts'
import { adminEvents, type AdminEvent } from '../kit/admin-events.ts'
import { answeringClient } from '../kit/answering-client.ts'
import { key as apiKey } from '../kit/gateway.ts'
import { startUpstream } from '../kit/upstream.ts'

interface Step {
  readonly kind: string
  readonly name: string
  readonly at: number
  readonly ms?: number
  readonly answer?: string
}

t.test('a call that asks its client tells how long the answer took, and what was notified', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const rig = await adminGateway(t, { upstreams: { up: { type: 'http', url: upstream.url } } })
  const stream = await adminEvents(t, rig.adminUrl, '/v1/calls')
  const client = await answeringClient(rig.url(), apiKey, 'Streamable HTTP', '2025-11-25', { elicitation: {} })
  t.teardown(() => client.close())
  const ofTool =
    (tool: string) =>
    ({ event, data }: AdminEvent): boolean =>
      event === 'call' && data['tool'] === tool

  await client.request('tools/call', { name: 'up__echo', arguments: {} })
  const plain = await stream.next('the plain call', ofTool('echo'))
  t.notOk('steps' in plain.data, 'a call without any has none')

  const call = await client.start('tools/call', { name: 'up__elicit', arguments: {} })
  const [asked] = await call.serverRequests()
  await client.answer(asked ?? {}, { action: 'accept', content: { name: 'canary-of-ada' } })
  await call.final()
  const elicited = await stream.next('the call that asks', ofTool('elicit'))
  const [step, ...others] = elicited.data['steps'] as Step[]
  t.same(others, [])
  t.match(step, { kind: 'asked', name: 'elicitation/create', at: Number, ms: Number, answer: 'accept' })
  t.ok((step?.at ?? 0) + (step?.ms ?? 0) <= Number(elicited.data['ms']) + 1)

  await client.request('tools/call', { name: 'up__progress', arguments: {}, _meta: { progressToken: 'p' } })
  const progressed = await stream.next('the call with progress', ofTool('progress'))
  const steps = progressed.data['steps'] as Step[]
  t.ok(steps.length > 0 && steps.every(({ kind, name }) => kind === 'notified' && name === 'notifications/progress'))
  t.equal(steps.length, progressed.data['notifications'])

  const declined = await client.start('tools/call', { name: 'up__elicit', arguments: {} })
  await client.answer((await declined.serverRequests())[0] ?? {}, { action: 'decline' })
  await declined.final()
  const refused = await stream.next(
    'the call that was declined',
    (event) => ofTool('elicit')(event) && (event.data['steps'] as Step[])[0]?.answer === 'decline'
  )
  t.equal((refused.data['steps'] as Step[]).length, 1)

  upstream.sessions.clear()
  await client.request('tools/call', { name: 'up__echo', arguments: {} })
  const again = await stream.next('the call that was sent again', ({ data }) => data['attempts'] === 2)
  t.match(again.data, { tool: 'echo', steps: [{ kind: 'again', name: 'session', at: Number }] })
  t.notMatch(stream.text, /canary/, 'neither what is asked nor what is answered is told')
})

t.test('of thousands of notifications few are kept, and all are counted', (t) => {
  const record: CallRecord = { startedAt: 0 }
  for (let at = 0; at < 5_000; at++) noteNotification(record, { now: () => at }, 'x'.repeat(500))
  t.equal(record.notifications, 5_000)
  t.equal(record.steps?.length, 64)
  t.match(record.steps?.[1], { kind: 'notified', name: 'x'.repeat(64), at: 1 })
  t.end()
})
