// Tokens as each provider writes them, by its documentation (docs/providers): accepted with the preset alone, and what
// looks like them and is no access token for the gateway refused.

import t from 'tap'
import type { Tenant } from '../../src/config/snapshot.ts'
import { tenantId } from '../../src/protocol/messages.ts'
import { compiled, base, withValue } from '../config/kit.ts'
import { outcome, resource, testAuthenticator } from '../kit/authenticator.ts'
import { forgingIssuer, type ForgingIssuer } from '../kit/forging-issuer.ts'

type Claims = Record<string, unknown>
type Header = Record<string, unknown>

interface Sample {
  readonly is: string
  readonly claims: Claims
  readonly header?: Header
  /** What is known of the caller, or why it is refused. */
  readonly known: { subject: string; clientId: string; scopes: string[]; groups?: string[]; roles?: string[] } | string
}

interface Provider {
  readonly issuer: string
  /** Beside `provider` and `issuer`. */
  readonly settings?: Record<string, unknown>
  /** Of every token; undefined leaves a member of the forging issuer's tokens out. */
  readonly common: Claims
  readonly header: Header
  readonly samples: readonly Sample[]
}

const noTyp = { typ: undefined }
const jwt = { typ: 'JWT' }
const client = '99999999-8888-7777-6666-555555555555'
const directory = '11111111-2222-3333-4444-555555555555'
const oid = '00000000-0000-0000-66f3-3332eca7ea81'

const providers: Record<string, Provider> = {
  entra: {
    issuer: `https://login.microsoftonline.com/${directory}/v2.0`,
    settings: { audiences: [client], scopePrefix: `api://${client}/` },
    header: jwt,
    common: {
      aud: client,
      jti: undefined,
      client_id: undefined,
      scope: undefined,
      aio: 'AXQAi/8IAAAA',
      azp: 'host-app',
      azpacr: '0',
      oid,
      rh: '0.AAAA',
      sub: 'pairwise-of-this-app',
      tid: directory,
      uti: 'fqiBqXLPj0eQa82S-IYFAA',
      ver: '2.0'
    },
    samples: [
      {
        is: 'a person, whose roles do not widen what the application may do',
        claims: { scp: 'mcp tools.read', roles: ['Admin'], groups: ['dev'], preferred_username: 'ada@acme.example' },
        known: { subject: oid, clientId: 'host-app', scopes: ['mcp', 'tools.read'], groups: ['dev'], roles: ['Admin'] }
      },
      {
        is: 'an application for itself',
        claims: { roles: ['mcp'], azpacr: '1', idtyp: 'app', sub: oid },
        known: { subject: oid, clientId: 'host-app', scopes: ['mcp'], roles: ['mcp'] }
      },
      {
        is: 'a token for Microsoft Graph',
        claims: { scp: 'mcp', aud: '00000003-0000-0000-c000-000000000000' },
        known: 'audience'
      },
      { is: 'an ID token of the same application', claims: { azp: undefined, nonce: 'n-0S6' }, known: 'claims' },
      {
        is: 'a token of another directory',
        claims: { scp: 'mcp', iss: 'https://login.microsoftonline.com/22222222-2222-3333-4444-555555555555/v2.0' },
        known: 'issuer'
      }
    ]
  },
  okta: {
    issuer: 'https://acme.okta.com/oauth2/default',
    header: noTyp,
    common: {
      client_id: undefined,
      scope: undefined,
      ver: 1,
      jti: 'AT.0mP4JKAZX1iACIT4vbEDF7LpvDVjxypPMf0D7uX39RE',
      cid: '0oab8eb55Kb9jdMIr0g4',
      sub: 'ada@acme.example'
    },
    samples: [
      {
        is: 'a person, by the id that stays',
        claims: { uid: '00uhf3pS0rmuCFvYZ0g4', scp: ['openid', 'mcp'], groups: ['dev', 'All staff'] },
        known: {
          subject: '00uhf3pS0rmuCFvYZ0g4',
          clientId: '0oab8eb55Kb9jdMIr0g4',
          scopes: ['openid', 'mcp'],
          groups: ['dev', 'All staff']
        }
      },
      {
        is: 'an application for itself',
        claims: { sub: '0oab8eb55Kb9jdMIr0g4', scp: ['mcp'] },
        known: { subject: '0oab8eb55Kb9jdMIr0g4', clientId: '0oab8eb55Kb9jdMIr0g4', scopes: ['mcp'] }
      },
      {
        is: 'a token of the org authorization server',
        claims: { scp: ['mcp'], uid: '00u' },
        header: { typ: 'application/okta-internal-at+jwt' },
        known: 'type'
      },
      { is: 'an ID token', claims: { amr: ['pwd'], idp: '00o', at_hash: 'x', cid: undefined }, known: 'claims' }
    ]
  },
  auth0: {
    issuer: 'https://acme.eu.auth0.com/',
    header: jwt,
    common: { jti: undefined, client_id: undefined, sub: 'auth0|6553da60a54af58e29493993', azp: 'my_client_id' },
    samples: [
      {
        is: 'the Auth0 profile, with userinfo beside the API, and permissions',
        claims: {
          aud: [resource, 'https://acme.eu.auth0.com/userinfo'],
          scope: 'openid profile mcp',
          permissions: ['mcp', 'admin']
        },
        known: {
          subject: 'auth0|6553da60a54af58e29493993',
          clientId: 'my_client_id',
          scopes: ['openid', 'profile', 'mcp'],
          roles: ['mcp', 'admin']
        }
      },
      {
        is: 'the RFC 9068 profile',
        header: { typ: 'at+jwt' },
        claims: { aud: resource, client_id: 'my_client_id', azp: undefined, jti: '73WakrfVbNJBaAmhQtEeDv' },
        known: { subject: 'auth0|6553da60a54af58e29493993', clientId: 'my_client_id', scopes: ['mcp'] }
      },
      {
        is: 'an application for itself',
        claims: { sub: 'my_client_id@clients', gty: 'client-credentials' },
        known: { subject: 'my_client_id@clients', clientId: 'my_client_id', scopes: ['mcp'] }
      },
      { is: 'a token for userinfo alone', claims: { aud: ['https://acme.eu.auth0.com/userinfo'] }, known: 'audience' },
      { is: 'a token for another API, too', claims: { aud: [resource, 'https://api.acme.example'] }, known: 'audience' }
    ]
  },
  keycloak: {
    issuer: 'https://sso.acme.example/realms/acme',
    header: jwt,
    common: {
      client_id: undefined,
      typ: 'Bearer',
      azp: 'host',
      sub: 'f1b0-person',
      sid: 'c3a4',
      acr: '1',
      realm_access: { roles: ['staff', 'offline_access'] },
      resource_access: { account: { roles: ['manage-account'] } }
    },
    samples: [
      {
        is: 'a person',
        claims: { scope: 'openid mcp', groups: ['dev'] },
        known: {
          subject: 'f1b0-person',
          clientId: 'host',
          scopes: ['openid', 'mcp'],
          groups: ['dev'],
          roles: ['staff', 'offline_access']
        }
      },
      { is: 'an ID token', claims: { typ: 'ID', scope: undefined, aud: resource }, known: 'type' },
      { is: 'a refresh token', claims: { typ: 'Refresh' }, known: 'type' },
      { is: 'a token that says it is bound, and not to which key', claims: { typ: 'DPoP' }, known: 'bound' },
      {
        is: 'a token that is bound to a key, which comes without a proof',
        claims: { typ: 'DPoP', cnf: { jkt: 'of-a-key' } },
        known: 'bound'
      },
      { is: 'a token for the account console, too', claims: { aud: [resource, 'account'] }, known: 'audience' }
    ]
  },
  cognito: {
    issuer: 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbCdEfGhI',
    settings: { clients: ['xxxxxxxxxxxxexample'], scopePrefix: 'https://mcp.acme.example/' },
    header: noTyp,
    common: {
      aud: undefined,
      sub: 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee',
      client_id: 'xxxxxxxxxxxxexample',
      token_use: 'access',
      version: 2,
      'cognito:groups': ['dev'],
      username: 'ada'
    },
    samples: [
      {
        is: 'a person, whose scope is without its prefix',
        claims: { scope: 'openid https://mcp.acme.example/mcp' },
        known: {
          subject: 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee',
          clientId: 'xxxxxxxxxxxxexample',
          scopes: ['openid', 'mcp'],
          groups: ['dev']
        }
      },
      {
        is: 'a token that was asked for by `resource`, of any client of the pool',
        claims: { aud: resource, client_id: 'another', scope: 'https://mcp.acme.example/mcp' },
        known: { subject: 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee', clientId: 'another', scopes: ['mcp'] }
      },
      { is: 'a token of another client of the pool', claims: { client_id: 'somebody-else' }, known: 'audience' },
      { is: 'a token that names another audience', claims: { aud: 'https://other.example' }, known: 'audience' },
      {
        is: 'an ID token',
        claims: { token_use: 'id', aud: 'xxxxxxxxxxxxexample', client_id: undefined, scope: undefined },
        known: 'audience'
      },
      { is: 'what says of itself that it is no access token', claims: { token_use: 'id' }, known: 'type' }
    ]
  },
  authentik: {
    issuer: 'https://sso.acme.example/application/o/gatehouse/',
    settings: { audiences: ['k3JhWmS0xQ8vT1bYp5nR'] },
    header: jwt,
    common: {
      client_id: undefined,
      scope: undefined,
      jti: undefined,
      aud: 'k3JhWmS0xQ8vT1bYp5nR',
      sub: '9f86d081884c7d65',
      auth_time: 1_700_000_000,
      acr: 'goauthentik.io/providers/oauth2/default',
      amr: ['pwd'],
      nonce: 'as in the ID token',
      sid: 'a-session',
      groups: ['dev']
    },
    samples: [
      {
        is: 'a person, with a mapping for scopes',
        claims: { azp: 'k3JhWmS0xQ8vT1bYp5nR', uid: 'kP0sXfUmXNVy', scope: 'mcp' },
        known: { subject: '9f86d081884c7d65', clientId: 'k3JhWmS0xQ8vT1bYp5nR', scopes: ['mcp'], groups: ['dev'] }
      },
      { is: 'an ID token', claims: {}, known: 'claims' },
      { is: 'an ID token to which a mapping has added azp', claims: { azp: 'k3JhWmS0xQ8vT1bYp5nR' }, known: 'type' }
    ]
  },
  generic: {
    issuer: 'https://idp.example.com',
    header: { typ: 'at+jwt' },
    common: {},
    samples: [
      {
        is: 'RFC 9068',
        claims: { groups: ['dev'], roles: ['reader'] },
        known: { subject: 'ada', clientId: 'app', scopes: ['mcp'], groups: ['dev'], roles: ['reader'] }
      },
      { is: 'another type', claims: {}, header: jwt, known: 'type' }
    ]
  }
}

function tenantOf(name: string, { issuer, settings }: Provider, { jwksUri }: ForgingIssuer): Tenant {
  const entry = { provider: name, issuer, jwksUri, ...settings }
  const snapshot = compiled(withValue(['tenants', 'acme', 'auth'], { issuers: [entry] }, base()))
  return snapshot.tenants.get(tenantId('acme')) as Tenant
}

for (const [name, provider] of Object.entries(providers)) {
  t.test(`tokens of ${name}`, async (t) => {
    const now = Date.now()
    const idp = await forgingIssuer(t, { resource, now, alg: 'RS256' })
    const auth = testAuthenticator(t, tenantOf(name, provider, idp))
    for (const { is, claims, header, known } of provider.samples) {
      const token = await idp.sign(
        { iss: provider.issuer, ...provider.common, ...claims },
        { ...provider.header, ...header }
      )
      const answer = await auth.present(token)
      if (typeof known === 'string') {
        t.equal(outcome(answer), 401, is)
        t.equal(auth.reasons().at(-1), known, is)
      } else t.match(answer, { ...known, scopes: new Set(known.scopes), issuer: provider.issuer }, is)
    }
  })
}

t.test('where a provider knows no resource parameter, nobody is told to use it', async (t) => {
  const now = Date.now()
  const entra = providers['entra'] as Provider
  const idp = await forgingIssuer(t, { resource, now, alg: 'RS256' })
  const auth = testAuthenticator(t, tenantOf('entra', entra, idp))
  const present = async (claims: Claims, header: Header = jwt) =>
    await auth.present(await idp.sign({ iss: entra.issuer, ...entra.common, scp: 'mcp', ...claims }, header))
  const refused = await present({ aud: 'other' })
  t.match(refused, { message: new RegExp(`Its "aud" must be ${client}`) })
  t.notMatch(refused, { message: /resource=/ })
  t.equal(outcome(await present({})), oid)
})

t.test(
  'each organisation of an issuer with a placeholder is an issuer of its own, and only those that are listed',
  async (t) => {
    const idp = await forgingIssuer(t, { resource, now: Date.now(), alg: 'RS256' })
    const other = '22222222-2222-3333-4444-555555555555'
    const template = {
      provider: 'entra',
      issuer: 'https://login.microsoftonline.com/{tenantid}/v2.0',
      placeholderValues: [directory, other],
      jwksUri: idp.jwksUri,
      audiences: [client]
    }
    const snapshot = compiled(withValue(['tenants', 'acme', 'auth'], { issuers: [template] }, base()))
    const auth = testAuthenticator(t, snapshot.tenants.get(tenantId('acme')) as Tenant)
    const issuerOf = (id: string): string => `https://login.microsoftonline.com/${id}/v2.0`
    const present = async (iss: string) =>
      await auth.present(await idp.sign({ ...providers['entra']?.common, iss, scp: 'mcp' }, jwt))
    for (const id of [directory, other]) t.match(await present(issuerOf(id)), { issuer: issuerOf(id), subject: oid })
    for (const iss of [
      issuerOf('33333333-2222-3333-4444-555555555555'),
      template.issuer,
      issuerOf(directory.toUpperCase() + 'A')
    ])
      t.equal(outcome(await present(iss)), 401, iss)
  }
)

t.test('a token that leaves groups out is refused where rules are about groups, and nowhere else', async (t) => {
  const entra = providers['entra'] as Provider
  const idp = await forgingIssuer(t, { resource, now: Date.now(), alg: 'RS256' })
  const entry = { provider: 'entra', issuer: entra.issuer, jwksUri: idp.jwksUri, ...entra.settings }
  const rule = (who: object, when?: string) => ({
    default: 'allow',
    rules: [
      { name: 'no-contractors', effect: 'deny', who, what: { kinds: ['tool'] }, ...(when !== undefined && { when }) }
    ]
  })
  const tenantWithPolicy = (policy: unknown): Tenant => {
    const config = withValue(['tenants', 'acme', 'auth'], { issuers: [entry] }, base())
    if (policy !== undefined) withValue(['tenants', 'acme', 'policy'], policy, config)
    return compiled(config).tenants.get(tenantId('acme')) as Tenant
  }
  const auth = testAuthenticator(t, tenantWithPolicy(undefined))
  const present = async (policy: unknown, claims: Claims) =>
    outcome(
      await auth.present(
        await idp.sign({ ...entra.common, iss: entra.issuer, scp: 'mcp', ...claims }, jwt),
        tenantWithPolicy(policy)
      )
    )
  const elsewhere = {
    _claim_names: { groups: 'src1' },
    _claim_sources: { src1: { endpoint: 'https://graph.example' } }
  }
  const many = { groups: Array.from({ length: 257 }, (_, at) => `g${at}`) }
  for (const about of [rule({ groups: ['contractors'] }), rule({}, '"contractors" in principal.groups')]) {
    for (const claims of [elsewhere, { hasgroups: true }, many]) t.equal(await present(about, claims), 401)
    t.equal(await present(about, { groups: ['staff'] }), oid)
    t.equal(await present(about, {}), oid, 'a person without groups')
    for (const groups of [['a\tb'], ['z'.repeat(513)], [7], { contractors: true }])
      t.equal(await present(about, { groups }), 401, `${JSON.stringify(groups).slice(0, 20)} cannot be read`)
    t.equal(await present(about, { roles: many.groups }), oid, 'the rules are not about roles')
  }
  for (const about of [rule({ roles: ['contractor'] }), rule({}, '!("staff" in principal.roles)')]) {
    for (const roles of [many.groups, ['a\tb'], { staff: {} }]) t.equal(await present(about, { roles }), 401)
    t.equal(await present(about, { _claim_names: { roles: 'src1' } }), 401)
    t.equal(await present(about, { roles: many.groups.slice(1) }), oid)
    t.equal(await present(about, elsewhere), oid, 'the rules are not about groups')
  }
  t.equal(await present(undefined, elsewhere), oid)
  t.equal(await present(undefined, { roles: { staff: {} } }), oid)
})
