// The measurement that the attacks rely on: without an attack every call succeeds, and a gateway that is gone is seen.

import t from 'tap'
import { legacyClient } from '../kit/client.ts'
import { attacked, keys, stdioServer } from './kit.ts'

t.test('a neighbour whom nobody disturbs has all its calls answered', async (t) => {
  const gateway = await attacked(t, { upstreams: { own: stdioServer() } })
  const neighbour = await gateway.neighbour()
  const client = await legacyClient(gateway.url, keys.attacker)
  t.match((await client.request('tools/call', { name: 'own__echo', arguments: {} })).json, { result: {} })
  const { calls, failures, longestMs } = await neighbour.stop()
  t.ok(calls > 0 && longestMs < 30_000)
  t.same(failures, [])
  t.ok(gateway.peakMemory() > 1_048_576)
})

t.test('what goes wrong is seen', async (t) => {
  const gateway = await attacked(t)
  const neighbour = await gateway.neighbour()
  gateway.signal('SIGKILL')
  await gateway.ended
  const { failures } = await neighbour.stop()
  t.match(failures, [/ECONNREFUSED|ECONNRESET|hang up/])
})
