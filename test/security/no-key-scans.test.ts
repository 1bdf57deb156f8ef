// Attack: names that a tenant chose become patterns of keys, or a list of keys is asked for that grows with everybody's.
// Instead: Redis is never asked to list or scan keys, whatever callers and administrators do.

import t from 'tap'
import { adminGateway, adminKeys } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { key as apiKey } from '../kit/gateway.ts'
import { redis } from '../kit/redis.ts'
import { redisCommand } from '../kit/redis-groups.ts'
import { startUpstream } from '../kit/upstream.ts'

t.test('Redis is never asked to list or scan keys', async (t) => {
  const [store, upstream] = await Promise.all([redis(t), startUpstream()])
  t.teardown(() => upstream.close())
  const up = { type: 'http', url: upstream.url }
  const made = await adminGateway(t, { upstreams: { up }, store: store.url, top: { audit: {} } })
  const client = await legacyClient(made.url(), apiKey)
  await client.request('tools/list')
  await client.request('tools/call', { name: 'up__echo', arguments: { pattern: '*' } })
  const document = { auth: {}, upstreams: { up } }
  t.equal((await made.call('PUT', '/v1/tenants/initech', { body: document })).status, 201)
  const { json } = await made.call('GET', '/v1/tenants/acme/sessions')
  const [session] = (json as { items: Array<{ id: string }> }).items
  for (const path of ['', '/sessions', '/usage', '/audit', '/kills', '/endpoints', '/upstreams', '/keys'])
    t.equal((await made.call('GET', `/v1/tenants/acme${path}`)).status, 200, path)
  t.equal((await made.call('GET', '/v1/versions?tenant=*', { key: adminKeys.platform })).status, 200)
  t.equal((await made.call('DELETE', `/v1/tenants/acme/sessions/${session?.id}`)).status, 204)
  t.equal((await made.call('DELETE', '/v1/tenants/initech', { headers: { 'If-Match': '*' } })).status, 204)
  const stats = String(await redisCommand(store, 'INFO', 'commandstats'))
  t.match(stats, /cmdstat_set/, 'the control')
  t.notMatch(stats, /cmdstat_(?:keys|scan|sscan|hscan|zscan|flush\w*|randomkey|sort)\b/)
})
