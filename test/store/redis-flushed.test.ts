// Redis is emptied while its connections hold: what it held is gone for clients, too, and everything begins again by
// itself. Two gateways, so that the one that opened the session is not the only one asked.

import { Redis } from 'ioredis'
import t from 'tap'
import { legacyClient, send } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import { redis } from '../kit/redis.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

t.test('sessions answer 404 at every process after FLUSHALL, and new ones are served', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const { url: store } = await redis(t)
  const options = { upstreams: { up: { type: 'http', url: upstream.url } }, store }
  const [first, second] = [await gateway(t, options), await gateway(t, options)]
  const { headers } = await legacyClient(first.url(), key)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'up__echo' } })
  const statuses = async () =>
    await Promise.all([first, second].map(async ({ url }) => (await send(url(), { headers, body })).status))
  t.same(await statuses(), [200, 200], 'the control: both processes serve it at first')

  const direct = new Redis(store)
  await direct.flushall()
  direct.disconnect()
  await until('neither knows the session', async () => (await statuses()).every((status) => status === 404))
  for (const { url } of [first, second]) {
    const again = await legacyClient(url(), key)
    t.match((await again.request('tools/call', { name: 'up__echo', arguments: {} })).json, { result: {} })
  }
})
