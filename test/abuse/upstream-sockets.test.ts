// One caller opens calls at an HTTP upstream that does not answer them, over as many sessions as it takes, on connections
// of its own or on the one that everybody shares: colleagues still reach that upstream, and the gateway opens no socket
// beyond its limit.

import t from 'tap'
import { eventsOf, legacyClient } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { startModern } from '../kit/modern-server.ts'
import { until } from '../kit/until.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'
import { attacked, keys, type Attacked } from './kit.ts'

const callsPerSession = 256
const ofOnePerson = 768
const ofAll = 1_024
const slow = { name: 'web__slow', arguments: {} }
const call = { name: 'web__echo', arguments: {} }
const refusal = { data: { reason: 'too_many', upstream: 'web' }, message: /was not sent: retry when/ }

/** Sessions of the attacker with as many calls as they may have. @returns how many of them were refused */
async function attack(gateway: Attacked, calls: number, signal: AbortSignal): Promise<() => number> {
  let refused = 0
  for (let opened = 0; opened < calls; opened += callsPerSession) {
    const session = await legacyClient(gateway.url, keys.attacker)
    for (let index = 0; index < callsPerSession; index++)
      session.request('tools/call', slow, { signal }).then(
        () => refused++,
        () => {}
      )
  }
  return () => refused
}

for (const isolation of ['session', 'shared']) {
  t.test(`a caller who fills an upstream with calls leaves sockets to colleagues: ${isolation}`, async (t) => {
    const upstream = await startUpstream()
    t.teardown(() => upstream.close())
    const gateway = await attacked(t, { upstreams: { web: { type: 'http', url: upstream.url, isolation } } })
    const colleague = await legacyClient(gateway.url, keys.colleague)
    t.match((await colleague.request('tools/call', call)).json, { result: { content: [{}] } })
    const neighbour = await gateway.neighbour()

    const stop = new AbortController()
    t.teardown(() => stop.abort())
    const open = (): number => upstream.seen.filter(isCall('slow')).length
    const refused = await attack(gateway, ofAll, stop.signal)
    await until('each is open or refused', () => open() + refused() === ofAll)
    t.equal(open(), ofOnePerson)
    const one = await legacyClient(gateway.url, keys.attacker)
    t.match((await one.request('tools/call', call)).json.error, refusal)
    t.match((await one.request('tools/call', { name: 'calm__echo', arguments: {} })).json, { result: {} }, 'elsewhere')
    t.match((await colleague.request('tools/call', call)).json, { result: { content: [{}] } })

    const { failures } = await neighbour.stop()
    t.same(failures, [])
  })
}

t.test('what a caller holds by sessions counts for its requests of 2026-07-28 too', async (t) => {
  const upstream = await startModern()
  t.teardown(() => upstream.close())
  const gateway = await attacked(t, { upstreams: { web: { type: 'http', url: upstream.url } } })
  const ask = async (token: string) => {
    const { json, text } = await modernRequest(gateway.url, 'tools/call', call, { token })
    return json ?? eventsOf(text).at(-1)
  }
  t.match(await ask(keys.attacker), { result: { content: [{}] } })
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  await attack(gateway, ofOnePerson, stop.signal)
  await until('all of them are open', () => upstream.server.requests('tools/call', 'slow').length === ofOnePerson)
  t.match((await ask(keys.attacker)).error, refusal)
  t.match(await ask(keys.colleague), { result: { content: [{}] } })
})

t.test('answers that servers of one tenant do not take leave descriptors to its neighbour', async (t) => {
  const descriptors = 400
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  let untaken = 0
  const ping = (id: number): string => `data: ${JSON.stringify({ jsonrpc: '2.0', id: `p${id}`, method: 'ping' })}\n\n`
  upstream.override(
    isCall('slow'),
    (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(Array.from({ length: 64 }, (_, id) => ping(id)).join(''))
    },
    Infinity
  )
  upstream.override(
    ({ method, message }) => method === 'POST' && message?.['method'] === undefined,
    () => void untaken++,
    Infinity
  )
  const names = ['one', 'two', 'three']
  const web = { type: 'http', url: upstream.url, isolation: 'session' }
  const gateway = await attacked(t, { descriptors, upstreams: Object.fromEntries(names.map((name) => [name, web])) })
  const neighbour = await gateway.neighbour()
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const { signal } = stop
  for (const key of [keys.attacker, keys.colleague])
    for (const name of names) {
      const session = await legacyClient(gateway.url, key)
      session.request('tools/call', { name: `${name}__slow`, arguments: {} }, { signal }).catch(() => {})
    }
  // Calls and GET streams of the sessions have some of the sockets of the tenant.
  await until('nearly as many are open as may be', () => untaken >= descriptors / 5)
  const calm = { name: 'calm__echo', arguments: {} }
  for (let n = 0; n < 3; n++) {
    const session = await legacyClient(gateway.neighbourUrl, keys.neighbour)
    t.match((await session.request('tools/call', calm)).json, { result: {} }, 'a process more of the neighbour starts')
  }
  t.ok(untaken <= descriptors / 4, `${untaken} are open`)
  t.same((await neighbour.stop()).failures, [])
})
