// Attack: strangers send tokens with invented kids, as many as they can, to a tenant whose issuer begins to sign with a
// new key meanwhile. How much longer others wait depends on the machine: it is told, not judged.

import { Agent, request } from 'node:http'
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { assemble, forgedKey, forgingIssuer } from '../kit/forging-issuer.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { until } from '../kit/until.ts'
import { attacked, keys, type Measured } from './kit.ts'

const atOnce = 20

t.test('a flood of invented kids takes nothing from others, nor a new key from who was there before', async (t) => {
  const idp = await forgingIssuer(t, { resource: 'urn:none', now: Date.now() })
  const auth = {
    keys: [{ name: 'attacker', key: keys.attacker }],
    issuers: [{ issuer: idp.issuer, jwksUri: idp.jwksUri }]
  }
  const gateway = await attacked(t, { tenant: { auth } })
  const use = async (sub: string, key = idp.key): Promise<number> => {
    const token = await idp.sign({ aud: gateway.url, sub, client_id: 'app' }, {}, key)
    return (await modernRequest(gateway.url, 'tools/list', {}, { token })).status
  }
  t.equal(await use('ada'), 200)
  const calmly = await gateway.neighbour()
  const from = performance.now()
  await until('three seconds', () => performance.now() > from + 3_000)
  const calm = await calmly.stop()

  const agent = new Agent({ keepAlive: true, maxSockets: atOnce })
  t.teardown(() => agent.destroy())
  const seconds = Math.floor(Date.now() / 1000)
  const claims = { iss: idp.issuer, aud: gateway.url, sub: 'x', client_id: 'app', iat: seconds, exp: seconds + 300 }
  const invented = (): string => assemble({ alg: 'ES256', typ: 'at+jwt', kid: randomUUID() }, claims, 'AAAA')
  const send = (): Promise<number> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${invented()}`, 'content-type': 'application/json' }
      request(gateway.url, { method: 'POST', agent, headers }, (answer) => {
        answer.resume().once('end', () => resolve(answer.statusCode ?? 0))
      })
        .once('error', reject)
        .end('{}')
    })
  const neighbour = await gateway.neighbour()
  const begun = performance.now()
  const over = new AbortController()
  let sent = 0
  const statuses = new Set<number>()
  const flood = async (): Promise<void> => {
    for (; !over.signal.aborted; sent++) statuses.add(await send())
  }
  const all = Array.from({ length: atOnce }, flood)
  await until('keys are fetched twice', () => idp.keySetRequests() >= 2)
  const next = await forgedKey('ES256')
  idp.published.push(next.jwk)
  const published = performance.now()
  t.equal(await use('carol', next), 401, 'the control: it is not known yet, and carol was never let in')
  await until('ada is let in', async () => (await use('ada', next)) === 200)
  const knownAfter = performance.now() - published
  t.equal(await use('carol', next), 200)
  over.abort()
  await Promise.all(all)
  const measured = await neighbour.stop()
  t.ok(knownAfter < 15_000, `the new key is known after ${(knownAfter / 1000).toFixed(1)} s`)
  t.same([...statuses], [401])
  t.same(measured.failures, [])
  t.ok(idp.keySetRequests() <= 3, `${idp.keySetRequests()} requests for keys`)
  const told = ({ calls, medianMs, p99Ms }: Measured): string =>
    `${calls} calls, median ${medianMs.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`
  const rate = Math.round(sent / ((performance.now() - begun) / 1000))
  t.comment(`the neighbour, calm: ${told(calm)}; beside ${rate} such tokens a second: ${told(measured)}`)
  t.comment(`a new key is known after ${(knownAfter / 1000).toFixed(1)} s`)
})
