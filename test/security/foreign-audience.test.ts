// Cases 7 and 8: a token for another deployment, or for others too.

import t from 'tap'
import { desk, outcome, resource, tenantWith, trust } from '../kit/desk.ts'
import { forge } from '../kit/forge.ts'

const elsewhere = 'https://mcp.other.example/t/acme/mcp'

t.test('the audience is the URL of the endpoint, letter by letter', async (t) => {
  const idp = await forge(t, { resource, now: Date.now() })
  const room = desk(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  const bad = [elsewhere, `${resource}/`, `${resource}#`, `${resource}?`, resource.toUpperCase(), resource.replace('https', 'http'), resource.replace('.com', '.com:443'), 'mcp', 'acme', '', undefined, null, 7, {}, [],
    [[resource]], { 0: resource }]
  for (const aud of bad) t.equal(outcome(await room.present(await idp.sign({ aud }))), 401, JSON.stringify(aud))
  t.equal(outcome(await room.present(await idp.sign({ aud: resource }))), 'ada')
  t.equal(outcome(await room.present(await idp.sign({ aud: [resource] }))), 'ada')
})

t.test('a token for this resource and others is refused, unless the operator names the others', async (t) => {
  const idp = await forge(t, { resource, now: Date.now() })
  const strict = desk(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  const lenient = desk(t, tenantWith({ issuers: [trust(idp.issuer, { audiences: ['account'] })] }))
  const both = await idp.sign({ aud: [resource, 'account'] })
  t.equal(outcome(await strict.present(both)), 401)
  t.equal(outcome(await lenient.present(both)), 'ada')
  t.equal(outcome(await lenient.present(await idp.sign({ aud: [resource, 'account', elsewhere] }))), 401)
  t.equal(outcome(await lenient.present(await idp.sign({ aud: [resource, 7] }))), 401)
})

t.test('a token that was good at one endpoint is judged anew at the next', async (t) => {
  const idp = await forge(t, { resource, now: Date.now() })
  const tenant = tenantWith({ issuers: [trust(idp.issuer)] })
  const room = desk(t, tenant)
  const token = await idp.sign()
  t.equal(outcome(await room.present(token)), 'ada')
  t.equal(outcome(await room.present(token, tenant, elsewhere)), 401)
  t.equal(outcome(await room.present(token, tenant, `${resource}\n`)), 401)
  t.equal(outcome(await room.present(token)), 'ada')
})
