// Sessions of a tenant at all processes: listed without what opens them, and ended everywhere.

import t from 'tap'
import { adminGateway, adminKeys, type AdminGateway } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { key } from '../kit/gateway.ts'
import { redis } from '../kit/redis.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'

interface Listed {
  readonly items: ReadonlyArray<Record<string, string>>
  readonly nextCursor: string | null
}

const list = async ({ call }: AdminGateway, query = ''): Promise<Listed> =>
  (await call('GET', `/v1/tenants/acme/sessions${query}`)).json as Listed

t.test('sessions of every process are listed by every process, page by page, without their ids', async (t) => {
  const [store, upstream] = await Promise.all([redis(t), startUpstream()])
  t.teardown(() => upstream.close())
  const options = { upstreams: { up: { type: 'http', url: upstream.url } }, store: store.url }
  const [one, other] = await Promise.all([adminGateway(t, options), adminGateway(t, options)])
  t.same((await list(one)).items, [])
  const clients = [
    await legacyClient(one.url(), key),
    await legacyClient(other.url(), key),
    await legacyClient(one.url(), key)
  ]
  for (const node of [one, other]) {
    const { items } = await list(node)
    t.equal(items.length, 3)
    t.match(items[0], {
      endpoint: 'default',
      subject: 'test',
      client: 'test',
      software: 'raw 1',
      revision: '2025-11-25'
    })
    for (const { sessionId } of clients) t.notOk(JSON.stringify(items).includes(sessionId))
  }
  const first = await list(one, '?limit=2')
  const second = await list(other, `?limit=2&cursor=${first.nextCursor}`)
  t.same(
    [...first.items, ...second.items].map(({ id }) => id),
    (await list(one)).items.map(({ id }) => id)
  )
  t.equal(second.nextCursor, null)
  t.equal((await one.call('GET', '/v1/tenants/acme/sessions?cursor=unknown')).status, 400)
  await clients[0]?.end()
  t.equal((await list(other)).items.length, 2)
})

t.test(
  'a session that an administrator ends at one process is gone at the other, call in flight included',
  async (t) => {
    const [store, upstream] = await Promise.all([redis(t), startUpstream()])
    t.teardown(() => upstream.close())
    const options = { upstreams: { up: { type: 'http', url: upstream.url } }, store: store.url }
    const [one, other] = await Promise.all([adminGateway(t, options), adminGateway(t, options)])
    const [kept, ended] = [await legacyClient(one.url(), key), await legacyClient(one.url(), key)]
    upstream.override(isCall('echo'), () => {}, 1)
    const running = ended.request('tools/call', { name: 'up__echo', arguments: {} })
    await until('the call has reached its upstream', () => upstream.seen.some(isCall('echo')))
    const [newest] = (await list(other)).items
    const path = `/v1/tenants/acme/sessions/${newest?.['id']}`
    for (const [name, status] of [
      ['viewer', 403],
      ['auditor', 403],
      ['globex', 404]
    ] as const)
      t.equal((await other.call('DELETE', path, { key: adminKeys[name] })).status, status, name)
    t.equal((await ended.request('ping')).status, 200)
    const answer = await other.call('DELETE', path, { key: adminKeys.acme })
    t.same([answer.status, answer.text], [204, ''])
    t.match((await running).text, /session_unknown|session ended/i)
    t.equal((await ended.request('ping')).status, 404)
    t.equal((await kept.request('ping')).status, 200)
    t.equal((await other.call('DELETE', path)).status, 404)
    t.match(
      other.log.find(({ change }) => change !== undefined),
      {
        change: {
          actor: 'acme',
          role: 'tenant-admin',
          action: 'session.end',
          tenant: 'acme',
          before: /^[0-9a-f]{64}$/,
          address: '127.0.0.1'
        }
      }
    )
  }
)

t.test(
  'a user of Redis who may not keep the list of sessions costs nobody a session, and is told of once',
  async (t) => {
    const may = ['-zadd', '-zrem', '-zremrangebylex', '-zrevrangebylex']
    const [store, upstream] = await Promise.all([
      redis(t, [
        '--user',
        'gatehouse',
        'on',
        '>pw',
        '~*',
        '&*',
        '+@all',
        ...may,
        '--user',
        'all',
        'on',
        '>pw',
        '~*',
        '&*',
        '+@all'
      ]),
      startUpstream()
    ])
    t.teardown(() => upstream.close())
    const as = (user: string): Promise<AdminGateway> =>
      adminGateway(t, {
        upstreams: { up: { type: 'http', url: upstream.url } },
        store: store.url.replace('redis://', `redis://${user}:pw@`)
      })
    const warnings = ({ log }: AdminGateway): string[] =>
      log.map(({ msg }) => String(msg)).filter((msg) => msg.includes('the list of open sessions'))
    const [few, all] = await Promise.all([as('gatehouse'), as('all')])
    for (let n = 0; n < 30; n++) {
      const client = await legacyClient(few.url(), key)
      t.equal((await client.request('ping')).status, 200)
      await client.end()
      t.equal((await client.request('ping')).status, 404)
    }
    t.same(
      warnings(few).map((msg) => /\((.*)\)/.exec(msg)?.[1]),
      ['additions', 'removals', 'what is over']
    )
    t.equal((await few.call('GET', '/v1/tenants/acme/sessions')).status, 503)
    await legacyClient(all.url(), key)
    t.equal((await list(all)).items.length, 1, 'who may do all has the list')
    t.same(warnings(all), [])
  }
)
