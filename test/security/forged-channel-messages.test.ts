// Attack: whoever may publish at Redis, and cannot read or write its keys, sends messages on the channels of the gateway:
// answers for others, changes that there were none, and what no process ever writes. What is delivered goes to those
// whom a process of the gateway has named, and to nobody else.

import { Redis } from 'ioredis'
import t from 'tap'
import { jsonHeaders, legacyClient, send } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import { redis } from '../kit/redis.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const otherKey = 'gh_key_of_another_tenant_0123456789'

t.test(
  'nothing that is published opens, ends, changes or tells anything, and true changes reach their tenant',
  async (t) => {
    const [mine, theirs] = [await startUpstream(), await startUpstream()]
    for (const each of [mine, theirs]) t.teardown(() => each.close())
    const store = await redis(t)
    const made = await gateway(t, {
      upstreams: { up: { type: 'http', url: mine.url } },
      tenants: {
        other: {
          auth: { keys: [{ name: 'eve', key: otherKey }] },
          upstreams: { up: { type: 'http', url: theirs.url } }
        }
      },
      store: store.url
    })
    const direct = new Redis(store.url)
    t.teardown(() => direct.disconnect())
    const [ada, eve] = [await legacyClient(made.url(), key), await legacyClient(made.url('default', 'other'), otherKey)]
    const [ofAda, ofEve] = [await ada.listen(), await eve.listen()]
    t.teardown(() => [ofAda, ofEve].forEach((each) => each.close()))
    // What is read for the first time after this would be a change that there was.
    for (const each of [ada, eve]) await each.request('tools/list')
    const channels = (await direct.pubsub('CHANNELS', 'gatehouse:*')) as string[]
    t.ok(channels.length >= 4, channels.join(' '))
    const said = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })
    const forged = [
      '',
      ' ',
      '=',
      '= ',
      `=${'x'.repeat(100_000)}`,
      '-1 acme',
      '1e9 acme x',
      '99999999999999999999 acme',
      '0 __proto__ x',
      '0 nobody gatehouse:session:x',
      'NaN',
      '\0\r\n*',
      said,
      JSON.stringify({ kind: 'notify', session: 'x', tenant: 'acme', message: said }),
      JSON.stringify([null, { toString: 0 }]),
      'A'.repeat(1_000_000)
    ]
    for (const channel of channels)
      for (const message of forged) t.ok((await direct.publish(channel, message)) >= 1, `${channel} is heard`)
    t.match((await ada.request('tools/call', { name: 'up__echo', arguments: {} })).json, { result: {} })
    t.match((await eve.request('tools/call', { name: 'up__echo', arguments: {} })).json, { result: {} })
    t.same([ofAda.messages, ofEve.messages], [[], []], 'nobody was told anything')
    const init = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } }
    const stranger = await send(made.url(), {
      headers: { ...jsonHeaders, authorization: `Bearer ${otherKey}` },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: init })
    })
    t.equal(stranger.status, 401, 'no key came into another tenant')
    t.notOk(made.log.some(({ level }) => Number(level) >= 60))

    // The positive control: what is true is told, to those of the tenant whose upstream changed.
    await ada.request('tools/call', { name: 'up__grow', arguments: { name: 'grown' } })
    await until('the change is told', () => ofAda.messages.length > 0)
    t.match(ofAda.messages[0], { method: 'notifications/tools/list_changed' })
    t.same(ofEve.messages, [], 'eve of the other tenant is not told')
  }
)
