// Requests of 2026-07-28 at a server over stdio, whose `requestState` is good at the process that gave it only: the
// retry gets there, whichever replica it comes to.

import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { numberingServer } from '../kit/numbered-modern-tasks-server.ts'
import { startReplicas } from './rig.ts'

const rig = await startReplicas(t, {
  upstreams: { up: numberingServer() },
  endpoints: { default: { upstreams: ['up'], prefix: '' } }
})
const call = { name: 'confirm', arguments: { who: 'ada' } }
const inputResponses = { sure: { action: 'accept', content: {} } }

async function callAt(node: number, more: object = {}, token: string = keyOf.ada) {
  const capabilities = { elicitation: { form: {} } }
  const { json, text } = await modernRequest(rig.at(node), 'tools/call', { ...call, ...more }, { capabilities, token })
  return json ?? { text }
}

t.test('the process that asked gets the answer, whichever replica it comes to', async (t) => {
  const pids = new Set<string>()
  for (const node of [0, 1, 2]) {
    const asked = await callAt(0)
    t.match(asked, { result: { resultType: 'input_required', requestState: String } })
    const { requestState } = asked.result
    t.match(
      await callAt(node, { requestState, inputResponses }, keyOf.bob),
      { error: { data: { reason: 'invalid_state' } } },
      'it is nobody else’s'
    )
    const answered = await callAt(node, { requestState, inputResponses })
    t.match(answered, { result: { resultType: 'complete', content: [{ text: /^ada \d+$/ }] } }, `at ${node}`)
    pids.add(answered.result?.content[0].text)
  }
  t.equal(pids.size, 1)
})

t.test('where it is gone with its replica, the answer is for another process of the server to judge', async (t) => {
  const { requestState } = (await callAt(2)).result
  rig.nodes[2]?.signal('SIGKILL')
  await rig.nodes[2]?.ended
  t.match(await callAt(1, { requestState, inputResponses }), { error: { message: 'none such' } })
  t.match(await callAt(1), { result: { resultType: 'input_required' } })
})
