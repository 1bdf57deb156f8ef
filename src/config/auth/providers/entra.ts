// Microsoft Entra ID, formerly Azure AD.

import type { ProviderPreset } from './preset.ts'

export const entra: ProviderPreset = {
  title: 'Microsoft Entra ID',
  issuer: {
    example: 'https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0',
    pattern:
      '^https://(?:login\\.microsoftonline\\.(?:com|us)|login\\.partner\\.microsoftonline\\.cn)/' +
      '(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\\{[a-zA-Z]+\\})/v2\\.0$|^https://sts\\.windows\\.net/' +
      '(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\\{[a-zA-Z]+\\})/$',
    origin:
      '^https://(?:login\\.microsoftonline\\.(?:com|us)|login\\.partner\\.microsoftonline\\.cn|sts\\.windows\\.net)/',
    form:
      'https://login.microsoftonline.com/DIRECTORY-ID/v2.0, with the id of the directory: no token has common, ' +
      'organizations or a domain in its iss'
  },
  audience: 'audiences',
  token: {
    requireTyp: false,
    // `sub` differs for each application, and means nothing to an administrator; `roles` of a person do not say what
    // the application may do for them, those of an application do.
    claims: { subject: 'oid', scopes: ['scp'], appScopes: ['roles'] }
  },
  can: { resource: 'no', registration: 'no', clientDocuments: 'preview' },
  steps: [
    'App registrations: register an application for the gateway. Its "Application (client) ID" is the value for ' +
      '`audiences`: tokens of version 2 name it in `aud`.',
    'Manifest: set `requestedAccessTokenVersion` (`accessTokenAcceptedVersion` in the older format) to 2. With 1 or ' +
      'nothing, `iss` is https://sts.windows.net/DIRECTORY-ID/ and `aud` the Application ID URI.',
    'Expose an API: set the Application ID URI and add the scopes that the configuration requires, such as mcp. ' +
      'Their whole name is api://APPLICATION-ID/mcp: give api://APPLICATION-ID/ as `scopePrefix`.',
    'App roles: for applications without a person, add roles of the same names, with "Applications" as allowed ' +
      'members, and grant them with admin consent.',
    'Token configuration: add the groups claim, and choose "Groups assigned to the application": with more than 200 ' +
      'groups a token names none of them.',
    'Register each host as an application of its own, or use `auth.login`: hosts cannot register here. In its ' +
      'preview ' +
      'an administrator can add hosts by the URL of their client ID metadata document, which become agent identities.'
  ],
  facts: [
    'Hosts send `resource` with each request (MCP basic/authorization), and Entra answers AADSTS9010010 or ' +
      'AADSTS901002. What works with the URL alone is the login front: `auth.login` with Entra as its provider.',
    'The subject is `oid`, which is the same in all applications of a directory. `sub` is a value for one application.',
    'A token that an application gets for itself has `roles` and no `scp`: its roles count as scopes. A token for a ' +
      'person has `scp`, and only that counts: roles of the person do not widen what an application may do.',
    'Several directories: `issuer: https://login.microsoftonline.com/{tenantid}/v2.0` with the ids of those that may ' +
      'call under `placeholderValues`. Each is an issuer of its own.'
  ],
  example: `issuers:
  - provider: entra
    issuer: https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0
    audiences: [99999999-8888-7777-6666-555555555555]
    scopePrefix: api://99999999-8888-7777-6666-555555555555/
requiredScopes: [mcp]`,
  behindLogin: {
    steps: [
      'App registrations: register an application with the platform "Web" and the redirect URI {redirect}. Its ' +
        '"Application (client) ID" is `clientId`. Add {signedOut} as a second redirect URI: Entra sends browsers ' +
        'back ' +
        'to registered ones only.',
      'Certificates & secrets: make a client secret, which is `clientSecret`, and note when it ends.',
      'API permissions: add the delegated permissions openid, profile, email and offline_access of Microsoft Graph.',
      'Token configuration: add the groups claim for ID tokens, and choose "Groups assigned to the application". App ' +
        'roles of people are in `roles`.',
      'Where rules name people by the id of their directory, `subjectClaim: oid`.'
    ],
    example: `login:
  provider:
    issuer: https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0
    clientId: gatehouse
    clientSecret: "\${CLIENT_SECRET}"`
  },
  sources: [
    'https://learn.microsoft.com/en-us/entra/identity-platform/access-token-claims-reference',
    'https://learn.microsoft.com/en-us/entra/identity-platform/access-tokens',
    'https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-auth-code-flow',
    'https://learn.microsoft.com/en-us/entra/agent-id/client-id-metadata-documents'
  ]
}
