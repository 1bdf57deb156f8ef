// Keycloak.

import type { ProviderPreset } from './preset.ts'

export const keycloak: ProviderPreset = {
  title: 'Keycloak',
  issuer: {
    example: 'https://sso.acme.example/realms/acme',
    pattern: '^https?://[^/]+(?:/[^/]+)*/realms/[^/]+$',
    form: 'https://HOST/realms/REALM, as the realm shows it at /realms/REALM/.well-known/openid-configuration'
  },
  audience: 'url',
  token: {
    requireTyp: false,
    claims: { client: 'azp', roles: ['realm_access.roles'] }
  },
  can: { resource: 'preview', registration: 'set', clientDocuments: 'preview' },
  steps: [
    'Client scopes: create one for each scope that the configuration requires, such as mcp, with "Include in token ' +
      'scope" on.',
    'In that client scope, add a mapper of type "Audience" with the URL of the endpoint as "Included Custom ' +
      'Audience": {urls}. Keycloak does not look at the parameter `resource`, unless it is started with ' +
      '--features=resource-indicators (an experiment since 26.6): then it takes only what is the attribute ' +
      '`resource_url` of a client that the token is for, so use "Included Client Audience" there.',
    'Realm settings > Client registration > Anonymous access: let hosts register from where they do ("Trusted ' +
      'Hosts"), and allow the client scope ("Allowed Client Scopes"). Client ID metadata documents are an experiment ' +
      'since 26.6 (--features=cimd, and a client policy); before 26.8 not together with resource indicators.',
    'Client scopes: remove "roles" from the default ones of these clients, or its mapper "audience resolve": it puts ' +
      '"account" into `aud`, and a token for two resources is refused. Where it must stay, give `otherAudiences`.',
    'Groups: add a mapper of type "Group Membership" with the claim name groups, with "Full group path" off.'
  ],
  facts: [
    'Access tokens have `typ: JWT` in their header and `typ: Bearer` among their claims; ID tokens have `typ: ID`, ' +
      'and are refused.',
    'Roles of the realm are the roles of policies. Those of a client: `claims: { roles: ' +
      '["resource_access.CLIENT.roles"] }`.'
  ],
  example: `issuers:
  - provider: keycloak
    issuer: https://sso.acme.example/realms/acme
requiredScopes: [mcp]`,
  behindLogin: {
    steps: [
      'Clients: create an OpenID Connect client with "Client authentication" and "Standard flow" on, {redirect} ' +
        'under ' +
        '"Valid redirect URIs" and {signedOut} under "Valid post logout redirect URIs". Its secret is under ' +
        '"Credentials".',
      'Client scopes of it: offline_access stays among the optional ones. People need the realm role offline_access, ' +
        'which is among the default roles, but not those of imported people.',
      'Groups: add a mapper of type "Group Membership" with the claim name groups, "Full group path" off and "Add to ' +
        'ID token" on. Roles: one of type "User Realm Role" with the claim name roles.'
    ],
    example: `login:
  provider:
    issuer: https://sso.acme.example/realms/acme
    clientId: gatehouse
    clientSecret: "\${CLIENT_SECRET}"`
  },
  sources: [
    'https://www.keycloak.org/securing-apps/mcp-authz-server',
    'https://www.keycloak.org/docs/latest/server_admin/index.html#_audience',
    'https://www.keycloak.org/securing-apps/client-registration'
  ]
}
