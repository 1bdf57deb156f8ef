// Attack: two tenants have the same server behind them, and one hopes to share what the other has there: connections,
// sessions, credentials, a breaker that it has tripped, a list that it has seen. Instead: each has its own.

import t from 'tap'
import { adminGateway, globexKey } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { key as apiKey } from '../kit/gateway.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

t.test('the same URL in two tenants is two upstreams', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const as = (secret: string) => ({ type: 'http', url: upstream.url, headers: { 'X-Api-Key': secret } })
  const made = await adminGateway(t, {
    upstreams: { up: { ...as('of-acme'), isolation: 'shared' } },
    tenants: {
      globex: {
        auth: { keys: [{ name: 'gus', key: globexKey }] },
        upstreams: { up: { ...as('of-globex'), isolation: 'shared' } }
      }
    }
  })
  const [ada, gus] = await Promise.all([
    legacyClient(made.url(), apiKey),
    legacyClient(made.url('default', 'globex'), globexKey)
  ])
  const call = async (client: typeof ada) =>
    (await client.request('tools/call', { name: 'up__echo', arguments: { text: 'x' } })).json
  t.match(await call(ada), { result: {} })
  t.match(await call(gus), { result: {} })
  const calls = upstream.seen.filter(({ message }) => message?.method === 'tools/call')
  t.same(
    calls.map(({ headers }) => headers['x-api-key']),
    ['of-acme', 'of-globex'],
    'each comes with its own credential'
  )
  const sessions = new Set(calls.map(({ headers }) => headers['mcp-session-id']))
  t.equal(sessions.size, 2, 'and on a session of its own')
  const stop = await made.call('PUT', '/v1/tenants/acme/kills/upstreams/up')
  t.equal(stop.status, 201)
  await until('acme has it no more', async () => (await call(ada)).error !== undefined)
  t.match(await call(gus), { result: {} }, 'the other tenant goes on')
  t.match((await made.call('GET', '/v1/tenants/globex/upstreams/up')).json, { state: 'connected' })
})
