// Three processes with one Redis hold the token of an account when it ends: a hundred calls at once, at all of them, have
// it renewed once, and each goes on with what came of that.

import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { decodeJwt } from 'jose'
import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { authorizationServer } from '../kit/authorization-server.ts'
import { connectAccount, signedIn } from '../kit/connect-page.ts'
import { legacyClient } from '../kit/client.ts'
import { configOf } from '../kit/gateway.ts'
import { serve } from '../kit/process.ts'
import { protectedUpstream } from '../kit/protected-upstream.ts'
import { redis } from '../kit/redis.ts'
import { until } from '../kit/until.ts'

const calls = 100
const call = (n: number) => ['tools/call', { name: 'up__echo', arguments: { text: `call ${n}` } }] as const

t.test('an ended token is renewed once for a hundred calls at three processes', async (t) => {
  const server = await authorizationServer(t, { registration: true, lifetimeSeconds: 4 })
  const upstream = await protectedUpstream(t, server)
  const store = await redis(t)
  const config = configOf({
    upstreams: { up: { type: 'http', url: upstream.url, auth: { type: 'user' } } },
    auth: { keys: [{ name: 'ada', key: keyOf.ada }] },
    store: store.url,
    top: {
      vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] },
      egress: { allow: ['127.0.0.0/8'] }
    }
  })
  const made = await Promise.all([serve(t, config), serve(t, config), serve(t, config)])
  const { tab, page } = await signedIn(`${made[0].url}/t/acme/connections`, keyOf.ada)
  t.match((await connectAccount(tab, page)).html, /up is connected/)
  const clients = await Promise.all(
    made.map(({ url }) => legacyClient(`${url}/t/acme/mcp`, keyOf.ada, '2025-11-25', { elicitation: { url: {} } }))
  )
  for (const [n, client] of clients.entries()) t.ok((await client.request(...call(n))).json.result)

  // All have called with one that lives for seconds. What comes of the next renewal lives for long.
  server.lifetimeSeconds = 600
  const given = server.issued.length
  const { exp = 0 } = decodeJwt(server.issued.at(-1)?.access ?? '')
  await until('it has ended', () => Date.now() > exp * 1000)
  const executed = upstream.server.calls('echo')
  const shown = upstream.presented.length
  const answers = await Promise.all(
    Array.from({ length: calls }, async (_, n) => (await clients[n % 3]?.request(...call(n)))?.text ?? '')
  )
  t.same(
    answers.filter((text, n) => !text.includes(`call ${n}"`)),
    [],
    'each has its own answer'
  )
  t.equal(upstream.server.calls('echo') - executed, calls, 'and was executed once')
  t.equal(server.issued.length - given, 1)
  const asked = server.tokenRequests.at(-1)
  t.match(Object.fromEntries(asked ?? []), { grant_type: 'refresh_token', resource: upstream.url })
  const newest = `Bearer ${server.issued.at(-1)?.access}`
  t.same([...new Set(upstream.presented.slice(shown))], [newest], 'the upstream is shown the new one alone')

  const raw = new Redis(store.url)
  t.teardown(() => raw.disconnect())
  for (const kind of ['grant-client', 'grant-used']) {
    const keys = await raw.keys(`gatehouse:${kind}:*`)
    t.ok(keys.length > 0, kind)
    for (const key of keys) t.ok((await raw.pttl(key)) > 0, `${kind} has an end`)
  }
})
