// Attack: calls with long arguments at a tool that takes its time, more of them than fit into the memory. Instead, each
// is let go of when it was sent.

import t from 'tap'
import { legacyClient } from '../kit/client.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { attacked, keys } from './kit.ts'

/** Together more than the heap of the gateway has room for, and many times what one caller may hold. */
const count = 40
const text = 'x'.repeat(2_000_000)

t.test('long arguments of many calls that run at once are not held until they end', async (t) => {
  const upstream = await startUpstream({ sessions: false })
  t.teardown(upstream.close)
  const gateway = await attacked(t, { upstreams: { http: { url: upstream.url } }, heapMiB: 96 })
  const client = await legacyClient(gateway.url, keys.attacker)
  const neighbour = await gateway.neighbour()
  const calls: Array<ReturnType<typeof client.request>> = []
  for (let at = 1; at <= count; at++) {
    calls.push(client.request('tools/call', { name: 'http__slow', arguments: { text } }))
    await until('the call is at the server', () => upstream.server.calls('slow') === 1)
    // The test need not hold them either.
    upstream.server.received.length = 0
  }
  upstream.server.release()
  for (const { json } of await Promise.all(calls)) t.match(json, { result: { content: [{ text: 'slow is done' }] } })
  const measured = await neighbour.stop()
  t.comment(JSON.stringify(measured))
  t.same(measured.failures, [], 'the calls of a neighbour succeed meanwhile')
})
