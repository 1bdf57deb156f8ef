// authentik.

import type { ProviderPreset } from './preset.ts'

export const authentik: ProviderPreset = {
  title: 'authentik',
  issuer: {
    example: 'https://sso.acme.example/application/o/gatehouse/',
    pattern: '^https?://[^/]+(?:/[^/]+)*/application/o/[^/]+/$|^https?://[^/]+/$',
    form: 'https://HOST/application/o/APPLICATION/ with the slash at its end, as `iss` has it'
  },
  audience: 'audiences',
  token: {
    requireTyp: false,
    claims: { client: 'azp', groups: ['groups'] },
    accessTokenClaim: 'uid'
  },
  can: { resource: 'no', registration: 'no', clientDocuments: 'no' },
  steps: [
    'Applications: create one with an OAuth2/OpenID provider for the gateway, and choose a signing key: without one ' +
      'tokens are signed with the client secret (HS256), and are refused.',
    'Its client id is the value for `audiences`: tokens name it in `aud`, whatever `resource` says.',
    'Issuer mode: "Each provider has a different issuer", so that no other application issues tokens under this name.',
    'Subject mode: keep "Based on the User\'s hashed ID".',
    'Scope mappings: add one that returns `{"scope": "mcp"}` with the scopes that the configuration requires, with ' +
      '"Include claims in id_token" on: access tokens name no scopes by themselves. Or use `auth.login`.',
    'Groups are in the scope mapping "profile".'
  ],
  facts: [
    'Access tokens are like ID tokens with two more claims, `azp` and `uid`. What has no `uid` is taken for an ID ' +
      'token, and refused.',
    'Hosts share the one client of the provider: they cannot register by themselves.'
  ],
  example: `issuers:
  - provider: authentik
    issuer: https://sso.acme.example/application/o/gatehouse/
    audiences: [k3JhWmS0xQ8vT1bYp5nR]`,
  behindLogin: {
    issuer: '^https?://[^/]+(?:/[^/]+)*/application/o/[^/]+/$',
    steps: [
      'Applications: create one with an OAuth2/OpenID provider of the client type "Confidential", the strict ' +
        'redirect ' +
        'URI {redirect} and a signing key.',
      'Scopes: select openid, email, profile and offline_access. Groups are in the scope profile.'
    ],
    example: `login:
  provider:
    issuer: https://sso.acme.example/application/o/gatehouse/
    clientId: gatehouse
    clientSecret: "\${CLIENT_SECRET}"`
  },
  sources: [
    'https://docs.goauthentik.io/add-secure-apps/providers/oauth2/',
    'https://github.com/goauthentik/authentik/blob/main/authentik/providers/oauth2/id_token.py'
  ]
}
