// Requests of several sessions, endpoints and callers on one connection, as a proxy sends them: what the gateway
// remembers of a connection never lends one the session of another, nor a session that has ended.

import { Agent, request } from 'node:http'
import t from 'tap'
import { acmeGateway, keyOf } from '../../kit/acme-gateway.ts'
import { jsonHeaders, legacyClient } from '../../kit/client.ts'

t.test('each request on a connection is judged by its own session, endpoint and caller', async (t) => {
  const acme = await acmeGateway(t)
  const idOf = async (who: 'ada' | 'bob', endpoint?: string): Promise<string> => {
    const { headers } = await legacyClient(acme.url(endpoint), keyOf[who])
    return String(headers['mcp-session-id'])
  }
  const [one, two, files, bobs] = [await idOf('ada'), await idOf('ada'), await idOf('ada', 'files'), await idOf('bob')]
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const ports = new Set<unknown>()
  const ping = (id: string, who: 'ada' | 'bob' = 'ada', endpoint?: string, method = 'POST'): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const headers = { ...jsonHeaders, authorization: `Bearer ${keyOf[who]}`, 'mcp-session-id': id }
      const sent = request(acme.url(endpoint), { agent, method, headers }, (response) => {
        ports.add(sent.socket?.localPort)
        response.resume().on('end', () => resolve(response.statusCode))
      })
      sent.on('error', reject).end(method === 'POST' ? '{"jsonrpc":"2.0","id":1,"method":"ping"}' : '')
    })

  for (const [id, who, endpoint, status] of [
    [one, 'ada', undefined, 200],
    [two, 'ada', undefined, 200],
    [one, 'ada', undefined, 200],
    [one, 'ada', 'files', 404],
    [one, 'bob', undefined, 404],
    [bobs, 'bob', undefined, 200],
    [bobs, 'ada', undefined, 404],
    [files, 'ada', 'files', 200],
    [files, 'ada', undefined, 404],
    [one, 'ada', undefined, 200]
  ] as const)
    t.equal(await ping(id, who, endpoint), status)
  t.equal(await ping(one, 'ada', undefined, 'DELETE'), 204)
  t.equal(await ping(one), 404)
  t.equal(await ping(two), 200)
  t.equal(ports.size, 1)
})
