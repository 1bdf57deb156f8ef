// Attack: a legacy server goes on with a cancelled call and sends a request. Over HTTP+SSE and stdio nothing says
// which call it belongs to: it must not reach the next client, who would agree to something else.

import t from 'tap'
import { key } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import {
  allCapabilities,
  answersTo,
  serverRequests,
  parkingGateway,
  replies,
  round,
  script,
  steps,
  textOf
} from '../kit/parking-gateway.ts'
import { until } from '../kit/until.ts'

t.test('a server request of a cancelled call reaches no client, and the next call gets only its own', async (t) => {
  const acme = await parkingGateway(t, {}, { ...script, deaf: true })
  const there = acme.url('stream')
  const { server } = acme.sse
  const counted = (method: string): number => server.received.filter((message) => message['method'] === method).length
  await round(there, 'tools/call', { name: 'echo', arguments: {} })
  const stop = new AbortController()
  const first = modernRequest(there, 'tools/call', steps({ wait: true }, { ask: [serverRequests.form] }), {
    token: key,
    capabilities: allCapabilities,
    signal: stop.signal
  }).catch(() => 'cancelled')
  await until('it runs', () => server.calls('steps') === 1)
  stop.abort()
  t.equal(await first, 'cancelled')
  await until('its server knows', () => counted('notifications/cancelled') === 1)
  const second = round(there, 'tools/call', steps({ wait: true }, { wait: true }))
  await until('the next one runs', () => server.calls('steps') === 2)
  server.release()
  await until('the server request has been answered', () => server.answers.size === 1)
  t.match([...server.answers.values()], [{ result: { action: 'cancel' } }])
  server.release()
  t.match((await second).result, { resultType: 'complete' })
  const connections = counted('initialize')
  const third = await round(there, 'tools/call', steps({ ask: [serverRequests.form] }))
  t.equal(Object.keys(third.inputRequests).length, 1, 'a server request of its own comes through')
  t.equal(counted('initialize'), connections, 'on a connection that is there')
  const last = await round(there, 'tools/call', {
    ...steps({ ask: [serverRequests.form] }),
    requestState: third.requestState,
    inputResponses: answersTo(third.inputRequests)
  })
  t.same(textOf(last.result), [replies.form])
})
