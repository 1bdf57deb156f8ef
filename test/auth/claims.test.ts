import t from 'tap'
import { principalOf } from '../../src/auth/token.ts'
import { tenantId } from '../../src/protocol/messages.ts'
import { resource, trust } from '../kit/authenticator.ts'

const now = Date.UTC(2026, 0, 1)
const seconds = now / 1000
const good = { aud: resource, sub: 'ada', client_id: 'app', iat: seconds, exp: seconds + 300 }
const principal = (claims: Record<string, unknown>) =>
  principalOf({ ...good, ...claims }, 'at+jwt', {
    tenant: tenantId('acme'),
    issuer: trust('https://idp.example.com'),
    audiences: [resource],
    leewaySeconds: 30,
    now
  })
const refused = (claims: Record<string, unknown>) => {
  try {
    principal(claims)
    return false
  } catch {
    return true
  }
}

t.test('scopes come from scope, or else from scp as words or a list', async (t) => {
  const scopes = (claims: Record<string, unknown>) => [...principal(claims).scopes]
  t.same(scopes({ scope: 'a b a' }), ['a', 'b'])
  t.same(scopes({ scp: 'a b' }), ['a', 'b'])
  t.same(scopes({ scp: ['a', 'b'] }), ['a', 'b'])
  t.same(scopes({ scope: 'a', scp: ['b'] }), ['a'])
  t.same(scopes({}), [])
})

t.test('groups are the strings of groups, up to a limit', async (t) => {
  t.same(principal({ groups: ['dev', 7, null, 'ops'] }).groups, ['dev', 'ops'])
  t.same(principal({ groups: 'dev ops' }).groups, ['dev', 'ops'])
  t.same(principal({ groups: { dev: true } }).groups, [])
  t.same(principal({ roles: ['reader'] }).roles, ['reader'])
  t.same(principal({}).roles, [])
  t.equal(principal({ groups: Array.from({ length: 1000 }, (_, index) => `g${index}`) }).groups.length, 256)
})

t.test('the subject is a readable string of up to 512 characters', async (t) => {
  t.equal(principal({ sub: 'ä'.repeat(512) }).subject.length, 512)
  for (const sub of [undefined, '', 7, null, ['ada'], 'a'.repeat(513), 'a\nb', 'a\0'])
    t.ok(refused({ sub }), JSON.stringify(sub))
})

t.test('the client is client_id, or else what other providers call it', async (t) => {
  t.equal(principal({ client_id: 'app', azp: 'other' }).clientId, 'app')
  for (const claim of ['azp', 'cid', 'appid'])
    t.equal(principal({ client_id: undefined, [claim]: 'other' }).clientId, 'other')
  for (const claims of [{ client_id: undefined }, { client_id: 7, azp: 'other' }, { client_id: '' }])
    t.ok(refused(claims), JSON.stringify(claims))
})

t.test('the end of the token goes with its principal', async (t) => {
  t.equal(principal({}).expiresAt, now + 300_000)
})
