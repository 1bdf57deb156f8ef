// Attack: one caller opens sessions without end, and closes none.

import t from 'tap'
import { acmeGateway, credentials, initializeBody, keyOf } from '../kit/acme-gateway.ts'
import { jsonHeaders, legacyClient, send } from '../kit/client.ts'
import { until } from '../kit/until.ts'

for (const kind of credentials) {
  t.test(
    `a caller with ${kind} at its limit of sessions gets no further one, and others are not affected`,
    async (t) => {
      const acme = await acmeGateway(t, { limits: { sessionsPerPrincipal: 3 } })
      const token = await acme.bearer(kind)
      const headers = { ...jsonHeaders, authorization: `Bearer ${token}` }
      const [first, ...rest] = [
        await legacyClient(acme.url(), token),
        await legacyClient(acme.url(), token),
        await legacyClient(acme.url(), token)
      ]
      const fourth = await send(acme.url(), { headers, body: initializeBody() })
      t.equal(fourth.status, 429)
      t.match(fourth.headers['retry-after'], /^[1-9]\d*$/)
      t.match(fourth.json, { id: 1, error: { data: { reason: 'too_many' } } })
      t.notOk(fourth.headers['mcp-session-id'])
      for (const client of [first, ...rest]) t.equal((await client.request('ping')).status, 200)
      t.equal((await legacyClient(acme.url(), await acme.bearer(kind, 'bob'))).initialized.status, 200)

      await first.end()
      t.equal(
        (await send(acme.url(), { headers, body: initializeBody() })).status,
        200,
        'one that is ended is given up'
      )
      const racing = await Promise.all(
        Array.from({ length: 20 }, () => send(acme.url(), { headers, body: initializeBody() }))
      )
      t.ok(
        racing.every(({ status }) => status === 429),
        'also for many at once'
      )
    }
  )
}

t.test('a hundred abandoned sessions are gone after their idle time, and so is what they held', async (t) => {
  // Longer than a machine stands still while they are opened.
  const acme = await acmeGateway(t, { limits: { sessionIdleMs: 12_000 } })
  const left = await Promise.all(
    Array.from({ length: 100 }, async () => {
      const client = await legacyClient(acme.url(), keyOf.ada)
      await client.request('tools/call', { name: 'echo' })
      return client
    })
  )
  t.equal(
    new Set(acme.upstream.seen.map(({ headers }) => headers['mcp-session-id'])).size,
    102,
    'each had a connection of its own; besides, the listing, and initialize without an id'
  )
  await until('only the connection of the listing is left', () => acme.upstream.sessions.size === 1)
  for (const client of left.slice(0, 5)) t.equal((await client.request('ping')).status, 404)
  t.equal((await legacyClient(acme.url(), keyOf.ada)).initialized.status, 200)
})
