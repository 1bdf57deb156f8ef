// Case 20: tokens that are large for the sake of being large.

import t from 'tap'
import { verifyToken } from '../../src/auth/token.ts'
import { clockAt, desk, outcome, resource, tenantWith, trust } from '../kit/desk.ts'
import { forge } from '../kit/forge.ts'
import { tenantId } from '../../src/protocol/ids.ts'

const now = Date.now()

t.test('a token beyond 8 KiB is refused before anything of it is read', async (t) => {
  const idp = await forge(t, { resource, now })
  const room = desk(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  for (const filling of [6500, 9000, 12_000]) t.equal(outcome(await room.present(await idp.sign({ filling: 'x'.repeat(filling) }))), 401, String(filling))
  t.same(idp.requests, [])
  t.same(room.reasons(), ['size', 'size', 'size'])
  t.equal(outcome(await room.present(await idp.sign({ filling: 'x'.repeat(5000) }))), 'ada')
})

t.test('the verifier holds the limit by itself', async (t) => {
  await t.rejects(verifyToken('x'.repeat(8193), { tenant: tenantId('acme'), issuers: new Map(), resource, leewaySeconds: 0, clock: clockAt(now) }), { cause: { reason: 'size' } })
  await t.rejects(verifyToken('x'.repeat(8192), { tenant: tenantId('acme'), issuers: new Map(), resource, leewaySeconds: 0, clock: clockAt(now) }), { cause: { reason: 'malformed' } })
})
