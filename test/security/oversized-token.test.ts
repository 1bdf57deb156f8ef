// Attack: tokens of many kilobytes, to make the gateway parse and verify them.

import t from 'tap'
import { verifyToken } from '../../src/auth/token.ts'
import { outcome, resource, tenantWith, testAuthenticator, trust } from '../kit/authenticator.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'
import { tenantId } from '../../src/protocol/messages.ts'

const now = Date.now()

t.test('a token beyond 8 KiB is refused before anything of it is read', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  const auth = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  for (const filling of [6500, 9000, 12_000])
    t.equal(outcome(await auth.present(await idp.sign({ filling: 'x'.repeat(filling) }))), 401, String(filling))
  t.same(idp.requests, [])
  t.same(auth.reasons(), ['size', 'size', 'size'])
  t.equal(outcome(await auth.present(await idp.sign({ filling: 'x'.repeat(5000) }))), 'ada')
})

t.test('the verifier keeps the limit by itself', async (t) => {
  const verified = (bytes: number) =>
    verifyToken('x'.repeat(bytes), {
      tenant: tenantId('acme'),
      issuers: new Map(),
      audiences: [resource],
      leewaySeconds: 0,
      now
    })
  await t.rejects(verified(8193), { cause: { reason: 'size' } })
  await t.rejects(verified(8192), { cause: { reason: 'malformed' } })
})
