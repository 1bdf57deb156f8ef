import t from 'tap'
import { createFetch } from '../../src/egress/fetch.ts'
import { testAuthenticator, outcome, resource, tenantWith, trust } from '../kit/authenticator.ts'
import { tenantId } from '../../src/protocol/messages.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'

const now = Date.now()

t.test('a reload forgets verdicts and keeps the keys of issuers that stay', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  const before = tenantWith({ issuers: [trust(idp.issuer)] })
  const same = tenantWith({ issuers: [trust(idp.issuer)] })
  const strict = tenantWith({ issuers: [trust(idp.issuer, { algorithms: ['RS256'] })] })
  const gone = tenantWith({})
  const setup = testAuthenticator(t, before)
  const token = await idp.sign()
  t.equal(outcome(await setup.present(token, before)), 'ada')
  setup.authenticator.reload([same])
  t.equal(outcome(await setup.present(token, same)), 'ada')
  t.equal(idp.keySetRequests(), 1)
  setup.authenticator.reload([strict])
  t.equal(outcome(await setup.present(token, strict)), 401)
  setup.authenticator.reload([gone])
  t.equal(outcome(await setup.present(token, gone)), 401)
  setup.authenticator.reload([same])
  t.equal(outcome(await setup.present(token, same)), 'ada')
  t.equal(idp.keySetRequests(), 2, 'an issuer that was away is asked anew')
})

t.test('a verdict ends with a change of its tenant, and outlives those of others', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  const tenant = tenantWith({ issuers: [trust(idp.issuer)] })
  const setup = testAuthenticator(t, tenant)
  const token = await idp.sign()
  const first = await setup.present(token)
  t.equal(await setup.present(token), first)
  const globex = { ...tenantWith({ issuers: [] }), id: tenantId('globex') }
  setup.authenticator.reload([tenant, globex])
  t.equal(await setup.present(token), first)
  const changed = { ...tenant }
  setup.authenticator.reload([changed, globex])
  const second = await setup.present(token, changed)
  t.not(second, first)
  t.same(second, first)
  setup.authenticator.reload([tenant])
  t.not(await setup.present(token), first, 'one that was away meanwhile begins anew')
})

t.test('a fault in the machinery is no refusal', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  let broken = true
  const real = createFetch()
  const setup = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)] }), {
    fetch: async (url, init) => {
      if (broken) throw new TypeError('no network')
      return await real(url, init)
    }
  })
  const token = await idp.sign()
  t.equal(outcome(await setup.present(token)), 503)
  broken = false
  setup.clock.advance(5000)
  t.equal(outcome(await setup.present(token)), 'ada')
})

t.test('refusals are not remembered: what was refused for want of a key is accepted once there is one', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  const setup = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  const token = await idp.sign()
  idp.published = []
  t.equal(outcome(await setup.present(token)), 401)
  idp.published = [idp.key.jwk]
  setup.clock.advance(60_000)
  t.equal(outcome(await setup.present(token)), 'ada')
})
