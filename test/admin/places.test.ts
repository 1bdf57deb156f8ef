// Connections of the admin listener: strangers that fill all places keep no operator out.

import { once } from 'node:events'
import { Agent, request } from 'node:http'
import type { Socket } from 'node:net'
import t from 'tap'
import { adminGateway, adminKeys } from '../kit/admin.ts'
import { dial } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'

/** More than there are places. */
const strangers = 400

/** The status of a request on the one connection of the agent. */
async function statusOn(agent: Agent, adminUrl: string, key: string): Promise<number | undefined> {
  const asked = request(`${adminUrl}/v1/limits`, { agent, headers: { authorization: `Bearer ${key}` } }).end()
  const [answer] = await once(asked, 'response')
  answer.resume()
  await once(answer, 'end')
  return answer.statusCode
}

t.test('strangers who take all places, silent or in the middle of a request, keep no operator out', async (t) => {
  const { adminUrl, call } = await adminGateway(t, { upstreams: {} })
  const port = Number(new URL(adminUrl).port)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  t.equal(await statusOn(agent, adminUrl, adminKeys.platform), 200)
  const [own] = Object.values(agent.freeSockets)[0] ?? []
  const sockets: Socket[] = []
  t.teardown(() => sockets.forEach((socket) => socket.destroy()))
  let closed = 0
  let usedAt = performance.now()
  for (let at = 0; at < strangers; at++) {
    const socket = dial(port).once('close', () => closed++)
    sockets.push(socket)
    await once(socket, 'connect')
    if (at % 2 === 1) socket.write('POST /v1/plans HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n')
    // The gateway closes what is idle for 10 s.
    if (performance.now() - usedAt < 2_000) continue
    t.equal(await statusOn(agent, adminUrl, adminKeys.platform), 200)
    usedAt = performance.now()
  }
  // Each new one is let in, where all places are taken.
  for (let at = 0; at < 3; at++) t.equal((await call('GET', '/v1/limits')).status, 200)
  await until('strangers gave way', () => closed >= strangers - 256)
  t.equal(await statusOn(agent, adminUrl, adminKeys.platform), 200, 'nor do they close the connection of an operator')
  t.equal(Object.values(agent.freeSockets)[0]?.[0], own, 'it is the same connection')
})

t.test('keys with many connections leave places for whoever comes next', async (t) => {
  const { adminUrl, call } = await adminGateway(t, { upstreams: {} })
  const agents: Agent[] = []
  t.teardown(() => agents.forEach((agent) => agent.destroy()))
  const statuses = new Set<number | undefined>()
  let evicted = 0
  for (const name of ['viewer', 'auditor', 'globex'] as const) {
    for (let at = 0; at < 80; at++) {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      agents.push(agent)
      statuses.add(await statusOn(agent, adminUrl, adminKeys[name]))
      const usedAt = performance.now()
      // Later it may be one that was idle for too long.
      Object.values(agent.freeSockets)[0]?.[0]?.once('close', () => {
        if (performance.now() - usedAt < 5_000) evicted++
      })
    }
  }
  t.same([...statuses], [200])
  t.equal((await call('GET', '/v1/limits')).status, 200)
  const kept = (): number => agents.filter((agent) => Object.keys(agent.freeSockets).length > 0).length
  await until('connections of those who have most are closed', () => kept() <= 224)
  t.ok(evicted < 40, 'and no more than needed')
})
