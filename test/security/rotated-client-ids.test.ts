// Attack: one person gets tokens for ever new client ids, each of which would have limits of its own.

import t from 'tap'
import { acmeGateway, initializeBody } from '../kit/acme-gateway.ts'
import { jsonHeaders, legacyClient, send } from '../kit/client.ts'
import { isCall } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'

t.test('the sessions of one person are counted together, whatever client they are of', async (t) => {
  const acme = await acmeGateway(t, { limits: { sessionsPerPrincipal: 3 } })
  const open = async (client: number, who: 'ada' | 'bob' = 'ada') => {
    const token = await acme.bearer('JWT', who, { client_id: `client-${client}` })
    const headers = { ...jsonHeaders, authorization: `Bearer ${token}` }
    return await send(acme.url(), { headers, body: initializeBody() })
  }
  const statuses: number[] = []
  for (let client = 0; client < 12; client++) statuses.push((await open(client)).status)
  t.same(statuses, [200, 200, 200, ...Array.from({ length: 9 }, () => 429)])
  t.equal((await open(0, 'bob')).status, 200, 'another person has sessions of its own')
})

t.test('so are calls in flight, over all sessions; another person is not affected', async (t) => {
  const acme = await acmeGateway(t, { limits: { callsPerPrincipal: 3, callsPerTenant: 5 } })
  acme.upstream.override(isCall('slow'), () => {}, Infinity)
  const stop = new AbortController()
  const waiting: Array<Promise<unknown>> = []
  const began = (): number => acme.upstream.seen.filter(isCall('slow')).length
  const call = async (client: number, who: 'ada' | 'bob', sub: string = who) => {
    const token = await acme.bearer('JWT', who, { client_id: `client-${client}`, sub })
    return (await legacyClient(acme.url(), token)).request('tools/call', { name: 'slow' }, { signal: stop.signal })
  }
  for (const client of [1, 2, 3]) {
    waiting.push(call(client, 'ada').catch(() => {}))
    await until('it is at the upstream', () => began() === client)
  }
  t.match((await call(4, 'ada')).json, {
    error: { message: /limits\.callsPerPrincipal/, data: { reason: 'too_many' } }
  })
  for (const client of [1, 2]) {
    waiting.push(call(client, 'bob').catch(() => {}))
    await until('it is at the upstream', () => began() === 3 + client)
  }
  t.match((await call(1, 'bob', 'eve')).json, {
    error: { message: /limits\.callsPerTenant/, data: { reason: 'too_many' } }
  })
  stop.abort()
  await Promise.all(waiting)
})
