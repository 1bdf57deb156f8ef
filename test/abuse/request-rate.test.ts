// Attack: one caller, or all of one tenant, send requests without a pause.

import { once } from 'node:events'
import t from 'tap'
import { legacyClient, send, type Answer, type LegacyClient } from '../kit/client.ts'
import { dial, readRawResponse } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'
import { attacked, keys } from './kit.ts'

const ofCaller = 'requestsPerSecondPerPrincipal'
const ofTenant = 'requestsPerSecondPerTenant'
/** Five times as many may come at once. */
const slow = { [ofCaller]: 2, [ofTenant]: 3 }
const refused = (limit: string): object => ({
  status: 429,
  headers: {
    'retry-after': '1',
    'ratelimit-policy': new RegExp(`^"${limit}";q=\\d+;w=1$`),
    ratelimit: `"${limit}";r=0;t=1`
  },
  json: { id: null, error: { data: { reason: 'rate_limited', limit }, message: new RegExp(`limits\\.${limit}`) } }
})

/** Sends until a request is refused, and gives what refused it. */
async function flood(client: LegacyClient): Promise<Answer> {
  for (let n = 0; n < 100; n++) {
    const answer = await client.request('ping')
    if (answer.status !== 200) return answer
  }
  throw new Error('nothing was refused')
}

t.test('a caller who asks too often is refused, then its tenant, and nobody else', async (t) => {
  const gateway = await attacked(t, { limits: slow })
  const attacker = await legacyClient(gateway.url, keys.attacker)
  t.match(await attacker.request('ping'), { status: 200 }, 'what comes at once after a pause is answered')
  t.match(await flood(attacker), refused(ofCaller))
  // It has 10 at once itself, of which the tenant has no more than 5 left.
  const colleague = await legacyClient(gateway.url, keys.colleague)
  t.match(await flood(colleague), refused(ofTenant))
  const neighbour = await legacyClient(gateway.neighbourUrl, keys.neighbour)
  t.match(await neighbour.request('ping'), { status: 200 })
  await until('the caller may ask again', async () => (await attacker.request('ping')).status === 200)
  const said = (): unknown[] =>
    gateway.log().flatMap(({ msg, limit }) => (String(msg).startsWith('too many requests a second') ? [limit] : []))
  await until('the log says it of each', () => said().length >= 2)
  t.same(said(), [ofCaller, ofTenant], 'once')
})

t.test('it is refused before its body is read', async (t) => {
  const gateway = await attacked(t, { limits: slow })
  const client = await legacyClient(gateway.url, keys.attacker)
  await flood(client)
  const { host, port } = new URL(gateway.origin)
  // More than may come at once, however long it is since the flood: of those let in the body is waited for.
  const sockets = Array.from({ length: 30 }, () => dial(Number(port)))
  const answers = sockets.map((socket) => once(socket, 'data') as Promise<[Buffer]>)
  for (const answer of answers) answer.catch(() => {})
  for (const socket of sockets)
    socket.write(
      `POST /t/acme/mcp HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${keys.attacker}\r\n` +
        'Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n'
    )
  const [answer] = await Promise.race(answers)
  for (const socket of sockets) socket.destroy()
  t.equal(readRawResponse(answer.toString()).status, 429)
})

t.test('each message of a batch counts', async (t) => {
  const gateway = await attacked(t, { limits: slow })
  const { headers } = await legacyClient(gateway.url, keys.attacker, '2025-03-26')
  const batch = (size: number): Promise<Answer> =>
    send(gateway.url, {
      headers,
      body: JSON.stringify(Array.from({ length: size }, (_, id) => ({ jsonrpc: '2.0', id, method: 'ping' })))
    })
  t.match(await batch(3), { status: 200 })
  t.match(await batch(50), refused(ofCaller))
})

t.test('a neighbour does not notice a flood', async (t) => {
  // The neighbour itself sends no more than 50 a second.
  const gateway = await attacked(t, { limits: { [ofCaller]: 60, [ofTenant]: 60 } })
  const neighbour = await gateway.neighbour()
  const client = await legacyClient(gateway.url, keys.attacker)
  let refusals = 0
  const floods = Array.from({ length: 20 }, async () => {
    while (refusals < 100) if ((await client.request('ping')).status === 429) refusals++
  })
  await Promise.all(floods)
  const { meanwhile, failures, p99Ms } = await neighbour.stop()
  t.same(failures, [])
  t.ok(meanwhile > 0 && p99Ms < 5_000)
})
