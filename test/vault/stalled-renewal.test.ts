// A process is held up in a renewal for longer than its turn, and another one renews meanwhile: what the first one
// writes late, or is told late, changes nothing of what the other one has.

import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { authorizationServer } from '../kit/authorization-server.ts'
import { connectAccount, signedIn } from '../kit/connect-page.ts'
import { legacyClient } from '../kit/client.ts'
import { configOf } from '../kit/gateway.ts'
import { serve } from '../kit/process.ts'
import { protectedUpstream } from '../kit/protected-upstream.ts'
import { redis } from '../kit/redis.ts'
import { until } from '../kit/until.ts'

const echo = { name: 'up__echo', arguments: { text: 'hello' } }
const withPages = { elicitation: { url: {} } }

/** Two processes and a person at both, whose first process is stopped when its renewal has been answered. */
async function stalledRig(t: Test, rotates: boolean) {
  const server = await authorizationServer(t, { registration: true, rotates })
  const upstream = await protectedUpstream(t, server)
  const store = await redis(t)
  const config = configOf({
    upstreams: { up: { type: 'http', url: upstream.url, timeoutMs: 120_000, auth: { type: 'user' } } },
    auth: { keys: [{ name: 'ada', key: keyOf.ada }] },
    store: store.url,
    top: {
      vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] },
      egress: { allow: ['127.0.0.0/8'] }
    }
  })
  const [first, second] = await Promise.all([serve(t, config), serve(t, config)])
  const { tab, page } = await signedIn(`${first.url}/t/acme/connections`, keyOf.ada)
  const connect = async () => t.match((await connectAccount(tab, page)).html, /up is connected/)
  await connect()
  const clientAt = (url: string) => legacyClient(`${url}/t/acme/mcp`, keyOf.ada, '2025-11-25', withPages)
  const [one, other] = [await clientAt(first.url), await clientAt(second.url)]
  for (const client of [one, other]) t.ok((await client.request('tools/call', echo)).json.result)

  for (const token of upstream.presented) upstream.withdrawn.add(token.replace('Bearer ', ''))
  const stalled = Promise.withResolvers<void>()
  server.beforeTokens = async () => {
    first.signal('SIGSTOP')
    stalled.resolve()
  }
  const late = one.request('tools/call', echo)
  await stalled.promise
  return { server, upstream, first, one, other, late, connect }
}

t.test('a process that is held up in a renewal undoes nothing of the one that took its turn', async (t) => {
  // The old refresh token is good for both: only the order of what they write decides.
  const { server, upstream, first, one, other, late } = await stalledRig(t, false)
  const given = server.issued.length
  t.ok((await other.request('tools/call', echo)).json.result, 'the other one waits for the end of the turn, and renews')
  t.equal(server.issued.length, given + 1)
  const newest = `Bearer ${server.issued.at(-1)?.access}`

  first.signal('SIGCONT')
  t.ok((await late).json.result, 'the call that was held up goes on with what the other one has got')
  for (const client of [one, other]) {
    t.ok((await client.request('tools/call', echo)).json.result)
    t.equal(upstream.presented.at(-1), newest)
  }
  t.equal(server.revocations, 0, 'nothing is given back: the provider could end what the other one has')
  t.equal(server.issued.length, given + 1)
})

t.test(
  'tokens that come too late for an account that counts as lost are given back, and nobody has them',
  async (t) => {
    // The old refresh token is good once: to the other process it is refused.
    const { server, upstream, first, one, other, late, connect } = await stalledRig(t, true)
    t.match((await other.request('tools/call', echo)).json.error, { code: -32042 })
    t.equal(server.revocations, 0)
    first.signal('SIGCONT')
    t.match((await late).json.error, { code: -32042 })
    await until('they are given back', () => server.revocations === 1)
    await connect()
    for (const client of [one, other]) {
      await until(
        'it is called again',
        async () => (await client.request('tools/call', echo)).json.result !== undefined
      )
      t.equal(upstream.presented.at(-1), `Bearer ${server.issued.at(-1)?.access}`)
    }
    t.equal(server.revocations, 1)
  }
)
