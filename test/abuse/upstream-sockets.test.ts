// One caller opens calls at an HTTP upstream that does not answer them, over as many sessions as it takes: colleagues
// still reach that upstream, and the gateway opens no socket beyond its limit.

import t from 'tap'
import { legacyClient } from '../kit/client.ts'
import { until } from '../kit/until.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'
import { attacked, keys } from './kit.ts'

const callsPerSession = 256
const ofOnePerson = 768

t.test('a caller who fills an upstream with calls leaves sockets to colleagues', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const gateway = await attacked(t, { upstreams: { web: { type: 'http', url: upstream.url } } })
  const colleague = await legacyClient(gateway.url, keys.colleague)
  const call = { name: 'web__echo', arguments: {} }
  t.match((await colleague.request('tools/call', call)).json, { result: { content: [{}] } })
  const neighbour = await gateway.neighbour()

  const stop = new AbortController()
  t.teardown(() => stop.abort())
  for (let opened = 0; opened < ofOnePerson; opened += callsPerSession) {
    const session = await legacyClient(gateway.url, keys.attacker)
    for (let index = 0; index < callsPerSession; index++)
      session.request('tools/call', { name: 'web__slow', arguments: {} }, { signal: stop.signal }).catch(() => {})
  }
  await until('all of them are open', () => upstream.seen.filter(isCall('slow')).length === ofOnePerson)
  const one = await legacyClient(gateway.url, keys.attacker)
  const refused = (await one.request('tools/call', call)).json
  t.match(refused.error, { data: { reason: 'too_many', upstream: 'web' }, message: /was not sent: retry when/ })
  t.match((await one.request('tools/call', { name: 'calm__echo', arguments: {} })).json, { result: {} }, 'elsewhere')
  t.match((await colleague.request('tools/call', call)).json, { result: { content: [{}] } })

  const { failures } = await neighbour.stop()
  t.same(failures, [])
})
