import t from 'tap'
import { principalOf } from '../../src/auth/token-claims.ts'
import type { IssuerConfig } from '../../src/config/auth/auth-config.ts'
import { tenantId } from '../../src/protocol/messages.ts'
import { resource, trust } from '../kit/authenticator.ts'

const now = Date.UTC(2026, 0, 1)
const seconds = now / 1000
const good = { aud: resource, sub: 'ada', client_id: 'app', iat: seconds, exp: seconds + 300 }
const principal = (claims: Record<string, unknown>, names: IssuerConfig['claims'] = {}, typ = 'at+jwt') =>
  principalOf({ ...good, ...claims }, typ, {
    tenant: tenantId('acme'),
    issuer: trust('https://idp.example.com', { claims: names }),
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

t.test('an issuer may call its claims by other names', async (t) => {
  const keycloak = { realm_access: { roles: ['staff'] }, resource_access: { gatehouse: { roles: ['admin'] } } }
  t.same(principal(keycloak, { roles: ['realm_access.roles', 'resource_access.gatehouse.roles'] }).roles, [
    'staff',
    'admin'
  ])
  t.same(principal(keycloak).roles, [], 'nobody is what only another claim says')
  const entraApp = { roles: ['mcp.read'], oid: 'object', sub: 'pairwise', azp: 'app-1', client_id: undefined }
  const names = { scopes: ['scp', 'roles'], subject: 'oid', client: 'azp' }
  t.match(principal(entraApp, names, 'jwt'), { subject: 'object', clientId: 'app-1', scopes: new Set(['mcp.read']) })
  t.throws(() => principal(entraApp, {}, 'jwt'), { message: /needs a "scope" or "scp" claim/ })
  t.throws(() => principal({}, names, 'jwt'), { message: /needs "oid"/ })
  const auth0 = { 'https://acme.example/groups': ['dev'], permissions: ['mcp'] }
  t.match(principal(auth0, { groups: ['https://acme.example/groups'], scopes: ['scope', 'permissions'] }), {
    groups: ['dev'],
    scopes: new Set(['mcp'])
  })
  for (const claims of [{ a: 'x' }, { a: { b: 7 } }, { a: { b: [['x']] } }, { a: null }])
    t.same(principal(claims, { groups: ['a.b', '__proto__.x', 'constructor'] }).groups, [], JSON.stringify(claims))
})
