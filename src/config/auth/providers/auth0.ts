// Auth0.

import type { ProviderPreset } from './preset.ts'

export const auth0: ProviderPreset = {
  title: 'Auth0',
  issuer: {
    example: 'https://acme.eu.auth0.com/',
    pattern: '^https://[^/]+/$',
    form: 'https://DOMAIN/ with the slash at its end, as `iss` has it'
  },
  audience: 'url',
  token: {
    requireTyp: false,
    claims: { roles: ['permissions'] },
    // Named beside the API where the scope openid was asked for.
    audienceBeside: 'userinfo'
  },
  can: { resource: 'set', registration: 'set', clientDocuments: 'preview' },
  steps: [
    'Applications > APIs: create an API whose identifier is the URL of the endpoint: {urls}. An identifier cannot be ' +
      'changed later. Choose the RFC 9068 profile for its tokens if nothing else depends on the other one.',
    'Permissions: add the scopes that the configuration requires, such as mcp. With RBAC on and "Add Permissions in ' +
      'the Access Token", permissions are the roles of policies.',
    'Settings > Advanced: switch on "Resource Parameter Compatibility Profile": without it the `resource` that hosts ' +
      'send is not looked at, and they get a token for userinfo. Switch on "Include Issuer in Authorization ' +
      'Responses", ' +
      'too (RFC 9207).',
    'Settings > Advanced: switch on "OIDC Dynamic Application Registration", so that hosts can register, and promote ' +
      'a connection to domain level, so that they can sign people in. Or import a host by the URL of its client ID ' +
      'metadata document; that hosts come by such a URL unasked is early access.',
    'Groups: an action of the login flow can add a claim under a name that is a URL; name it under claims.groups.'
  ],
  facts: [
    'The default profile has `typ: JWT` and `azp`, that of RFC 9068 `at+jwt` and `client_id`; both are accepted.',
    '`permissions` has all that a person may do at the API, whatever the application asked for; `scope` has what the ' +
      'application was given. So scopes are read from `scope` only, and permissions are roles.',
    'Without an audience Auth0 issues an opaque token for userinfo, which is refused.'
  ],
  example: `issuers:
  - provider: auth0
    issuer: https://acme.eu.auth0.com/
    claims: { groups: ["https://acme.example/groups"] }
requiredScopes: [mcp]`,
  behindLogin: {
    issuer: '^https://[^/]+\\.auth0\\.com/$',
    steps: [
      'Applications: create a "Regular Web Application" with {redirect} among "Allowed Callback URLs" and ' +
        '{signedOut} ' +
        'among "Allowed Logout URLs".',
      'Advanced Settings > Grant Types: leave Authorization Code and Refresh Token on.',
      'Groups: an action of the login flow can add a claim to ID tokens under a name that is a URL; name it under ' +
        '`groupsClaim`.'
    ],
    example: `login:
  provider:
    issuer: https://acme.eu.auth0.com/
    clientId: gatehouse
    clientSecret: "\${CLIENT_SECRET}"
    groupsClaim: https://acme.example/groups`
  },
  sources: [
    'https://auth0.com/docs/secure/tokens/access-tokens/access-token-profiles',
    'https://auth0.com/ai/docs/mcp/guides/resource-param-compatibility-profile',
    'https://auth0.com/docs/get-started/applications/dynamic-client-registration',
    'https://auth0.com/docs/get-started/auth0-overview/create-applications/cimd-overview'
  ]
}
