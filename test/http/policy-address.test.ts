// Conditions on the time and on the address of a client, and for reads of resources: in both eras, on what is sent.

import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import type { Json } from '../kit/mcp-server.ts'
import { modernListen } from '../kit/modern-listen.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { startModern } from '../kit/modern-server.ts'
import { until } from '../kit/until.ts'

const rule = (name: string, effect: string, kinds: string[], when: string, names?: string[]) => ({
  name,
  effect,
  what: { kinds, ...(names && { names }) },
  when
})
const refused = (rule: string) => ({ error: { code: -32602, data: { reason: 'refused_by_policy', rule } } })

async function doors(acme: { url(): string }) {
  const session = await legacyClient(acme.url(), keyOf.ada)
  return [
    [
      'a session',
      async (method: string, params: Json, headers: Record<string, string> = {}) =>
        (await session.request(method, params, { headers })).json
    ],
    [
      '2026-07-28',
      async (method: string, params: Json, headers: Record<string, string> = {}) =>
        (await modernRequest(acme.url(), method, params, { token: keyOf.ada, headers })).json
    ]
  ] as const
}

t.test('a call is judged by the address of its client; a header says it only where its proxy is trusted', async (t) => {
  const policy = {
    default: 'allow',
    rules: [rule('office', 'deny', ['tool'], '!address.inNetwork("203.0.113.0/24")', ['echo'])]
  }
  const [direct, behind] = [
    await acmeGateway(t, { policy }),
    await acmeGateway(t, { policy, top: { trustedProxies: ['127.0.0.0/8', '::1/128'] } })
  ]
  const call = { name: 'echo', arguments: {} }
  const from = (address: string) => ({ 'x-forwarded-for': address })
  for (const [era, ask] of await doors(direct)) {
    t.match(await ask('tools/call', call), refused('office'), era)
    t.match(await ask('tools/call', call, from('203.0.113.7')), refused('office'), `${era}: forged`)
    t.match(await ask('tools/call', { name: 'pid' }), { result: {} }, 'what it is not about')
  }
  for (const [era, ask] of await doors(behind)) {
    t.match(await ask('tools/call', call, from('203.0.113.7')), { result: {} }, era)
    t.match(await ask('tools/call', call, from('198.51.100.1')), refused('office'), era)
    t.match(await ask('tools/call', call, from('203.0.113.7, 198.51.100.1')), refused('office'), `${era}: forged`)
    t.match(await ask('tools/call', call), refused('office'), `${era}: it is not known`)
  }
  const lines = behind.log.filter(({ msg, tool }) => msg === 'call' && tool === 'echo')
  t.same(new Set(lines.map(({ address }) => address)), new Set(['203.0.113.7', '198.51.100.1', undefined]))
})

t.test('a read of a resource is judged by its own URI, also of one that no list shows', async (t) => {
  const acme = await acmeGateway(t, {
    policy: {
      default: 'deny',
      rules: [
        rule('own', 'allow', ['resource'], 'name == "test://item/" + principal.key'),
        rule('one', 'allow', ['resource'], 'now.getFullYear() > 2000', ['test://one']),
        rule('never', 'deny', ['resource'], 'now.getFullYear() > 2000', ['test://two']),
        {
          name: 'listed',
          effect: 'allow',
          what: { kinds: ['template', 'resource'], names: ['test://item/{id}', 'test://two'] }
        }
      ]
    }
  })
  for (const [era, ask] of await doors(acme)) {
    const read = (uri: string) => ask('resources/read', { uri })
    t.match(await read('test://item/ada'), { result: { contents: [{ uri: 'test://item/ada' }] } }, era)
    t.match(await read('test://one'), { result: {} }, era)
    const before = acme.upstream.seen.length
    t.match(await read('test://item/bob'), refused('default'), era)
    t.match(await read('test://two'), refused('never'), era)
    t.match(await read('test://x/../item/ada'), { error: {} }, `${era}: what may be another spelling`)
    t.equal(acme.upstream.seen.length, before, 'the upstream is not asked')
    const { resources } = (await ask('resources/list', {}))['result'] as { resources: Json[] }
    t.same(
      resources.map(({ uri }) => uri),
      ['test://one', 'test://two'],
      'lists do not know when somebody reads'
    )
  }
})

t.test('a session cannot subscribe to what a condition refuses, and hears of it no more', async (t) => {
  const acme = await acmeGateway(t, {
    policy: {
      default: 'allow',
      rules: [rule('one', 'deny', ['resource'], 'principal.key != "ada"', ['test://one'])]
    }
  })
  const [ada, bob] = [await legacyClient(acme.url(), keyOf.ada), await legacyClient(acme.url(), keyOf.bob)]
  t.match((await ada.request('resources/subscribe', { uri: 'test://one' })).json, { result: {} })
  t.match((await bob.request('resources/subscribe', { uri: 'test://one' })).json, refused('one'))
  t.match((await bob.request('resources/unsubscribe', { uri: 'test://one' })).json, { result: {} })
})

t.test('a listen stream names what may be read, and tells of it only while it may', async (t) => {
  const modern = await startModern()
  t.teardown(() => modern.close())
  const acme = await acmeGateway(t, {
    upstreams: { up: { type: 'http', url: modern.url } },
    policy: {
      default: 'allow',
      rules: [rule('two', 'deny', ['resource'], 'now.getFullYear() > 2000', ['test://two'])]
    }
  })
  const stream = await modernListen(
    acme.url(),
    { resourceSubscriptions: ['test://one', 'test://two'] },
    { token: keyOf.ada }
  )
  const acknowledged = await stream.next(({ method }) => method === 'notifications/subscriptions/acknowledged')
  t.same(acknowledged.params.notifications, { resourceSubscriptions: ['test://one'] })
  await until('the upstream is listened to', () => modern.server.listens.size > 0)
  modern.server.updated('test://two')
  modern.server.updated('test://one')
  await stream.next(({ method }) => method === 'notifications/resources/updated')
  t.same(stream.said(), ['notifications/resources/updated test://one'])
  stream.close()
})
