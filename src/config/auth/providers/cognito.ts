// Amazon Cognito user pools.

import type { ProviderPreset } from './preset.ts'

export const cognito: ProviderPreset = {
  title: 'Amazon Cognito',
  issuer: {
    example: 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbCdEfGhI',
    pattern: '^https://cognito-idp\\.[a-z0-9-]+\\.amazonaws\\.com(?:\\.cn)?/[a-z0-9-]+_[A-Za-z0-9]+$',
    form: 'https://cognito-idp.REGION.amazonaws.com/POOL-ID, not the domain of its sign-in pages'
  },
  audience: 'urlOrClients',
  token: {
    requireTyp: false,
    claims: { client: 'client_id', groups: ['cognito:groups'] }
  },
  can: { resource: 'set', registration: 'no', clientDocuments: 'no' },
  steps: [
    'User pool > Branding > Domain: give the pool a domain, and a resource server whose identifier is a name of the ' +
      'gateway, with the scopes that the configuration requires, such as mcp. Give its identifier with a slash as ' +
      '`scopePrefix`.',
    'App clients: create one for each host, with the authorization code grant and these scopes.',
    'Resource binding: hosts that send `resource` get a token that names it in `aud`, with managed login on the ' +
      'plans ' +
      'Essentials and Plus: give a resource server the URL of the endpoint as its identifier: {urls}. For other ' +
      'hosts, ' +
      'put the ids of their app clients under `clients`.',
    'Groups of the user pool are the groups of policies.'
  ],
  facts: [
    'Access tokens name in `aud` the `resource` that was asked for. Without one they have no `aud`, and what says ' +
      'that ' +
      'one is for the gateway is its client: a token of any other app client of the pool is refused.',
    'A scope is the identifier of its resource server, a slash and its name; without the prefix it is as in the ' +
      'configuration.',
    '`token_use` is `access`; ID tokens have `id`, and are refused.',
    'The metadata is at the issuer, the pages for signing in at the domain of the pool.'
  ],
  example: `issuers:
  - provider: cognito
    issuer: https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbCdEfGhI
    clients: [1example23456789]
    scopePrefix: https://mcp.acme.example/
requiredScopes: [mcp]`,
  behindLogin: {
    steps: [
      'User pool > Branding > Domain: give the pool a domain.',
      'App clients: create one of type "Traditional web application" (it has a client secret) with the callback URL ' +
        '{redirect}, the authorization code grant and the scopes openid, profile and email.',
      'Groups of the user pool are in `cognito:groups`: name it under `groupsClaim`.'
    ],
    // It gives a refresh token with every code, and refuses scopes that it does not know.
    offline: {},
    example: `login:
  provider:
    issuer: https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbCdEfGhI
    clientId: gatehouse
    clientSecret: "\${CLIENT_SECRET}"
    groupsClaim: cognito:groups
    signOut: false`
  },
  sources: [
    'https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-access-token.html',
    'https://docs.aws.amazon.com/cognito/latest/developerguide/cognito-user-pools-define-resource-servers.html'
  ]
}
