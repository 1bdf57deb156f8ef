// Attack: an unsigned token whose `sub` is no text, and cannot be made one, with a key that its issuer does not
// publish. Nobody has vouched for it: it is refused like any other, and is no fault of the gateway.

import t from 'tap'
import { acmeGateway, initializeBody } from '../kit/acme-gateway.ts'
import { adminGateway, adminSection } from '../kit/admin.ts'
import { assemble, forgingIssuer } from '../kit/forging-issuer.ts'

const subjects: readonly unknown[] = [{ toString: null, valueOf: null }, { toString: 'x' }, ['ada'], 7, null, undefined]

/** Time and form are good, so that its key is looked for. */
function unsigned(iss: string, aud: string, sub: unknown): string {
  const seconds = Math.floor(Date.now() / 1000)
  const claims = { iss, aud, sub, client_id: 'app', iat: seconds, exp: seconds + 300, groups: ['platform'] }
  return assemble({ alg: 'ES256', typ: 'at+jwt', kid: 'unknown' }, claims, 'AAAA')
}

type Line = Readonly<Record<string, unknown>>
const faults = (log: readonly Line[]): readonly Line[] => log.filter(({ level }) => Number(level) >= 50)

t.test('an endpoint refuses it', async (t) => {
  const acme = await acmeGateway(t)
  const use = async (token: string): Promise<number> =>
    (await acme.exchange(acme.post(initializeBody()).replace(/Bearer [^\r]+/, `Bearer ${token}`))).status
  t.equal(await use(await acme.bearer('JWT')), 200, 'the control')
  for (const sub of subjects)
    t.equal(await use(unsigned(acme.issuer.issuer, acme.url(), sub)), 401, JSON.stringify(sub))
  const signed = await acme.issuer.sign({ aud: acme.url(), client_id: 'app', sub: subjects[0] })
  t.equal(await use(signed), 401, 'as it does where the issuer has signed it')
  t.same(faults(acme.log), [])
})

t.test('the admin API refuses it', async (t) => {
  const audience = 'https://admin.gatehouse.example'
  const idp = await forgingIssuer(t, { resource: audience, now: Date.now() })
  const oidc = {
    audience,
    issuers: [{ issuer: idp.issuer }],
    access: [{ role: 'platform-admin', groups: ['platform'] }]
  }
  const made = await adminGateway(t, { upstreams: {}, top: { admin: { ...adminSection, oidc } } })
  let from = 0
  const use = async (key: string): Promise<number> =>
    (await made.call('GET', '/v1/tenants', { key, from: `127.0.3.${++from}` })).status
  t.equal(await use(await idp.sign({ sub: 'pia', groups: ['platform'] })), 200, 'the control')
  for (const sub of subjects) t.equal(await use(unsigned(idp.issuer, audience, sub)), 401, JSON.stringify(sub))
  t.same(faults(made.log), [])
})
