// Any authorization server that issues access tokens as RFC 9068 and RFC 8707 say.

import type { ProviderPreset } from './preset.ts'

export const generic: ProviderPreset = {
  title: 'any provider that follows the standards',
  issuer: { example: 'https://idp.example.com', pattern: '.', form: 'a URL' },
  audience: 'url',
  token: {},
  can: { resource: 'set', registration: 'set', clientDocuments: 'set' },
  steps: [
    'Issue access tokens as JWTs of RFC 9068: `typ: at+jwt`, with `iss`, `sub`, `client_id`, `aud`, `iat`, `exp` and ' +
      '`scope`, signed by ES256, Ed25519 (also named EdDSA), PS256 or RS256 with a key of its key set.',
    'Name the URL of the endpoint in `aud`, and nothing else, where the client asks for it by `resource` (RFC 8707): ' +
      '{urls}.',
    'Let hosts register, by client ID metadata documents or dynamic registration (RFC 7591), with PKCE.',
    'Put groups and roles of people into the claims `groups` and `roles`.'
  ],
  facts: ['This is what holds without `provider`, too.'],
  example: `issuers:
  - provider: generic
    issuer: https://idp.example.com
requiredScopes: [mcp]`,
  behindLogin: {
    steps: [
      'Register the gateway as a confidential web client with the redirect URI {redirect}, and {signedOut} as the ' +
        'URI ' +
        'for after logout.',
      'Allow it the authorization code flow, refresh tokens, and the scopes openid, profile, email and offline_access.',
      'Put groups and roles of people into ID tokens, or what userinfo answers, under the names `groups` and ' +
        '`roles`; ' +
        'or name others under `groupsClaim` and `rolesClaim`.'
    ],
    example: `login:
  provider:
    issuer: https://idp.example.com
    clientId: gatehouse
    clientSecret: "\${CLIENT_SECRET}"`
  },
  sources: [
    'https://www.rfc-editor.org/rfc/rfc9068',
    'https://www.rfc-editor.org/rfc/rfc8707',
    'https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization'
  ]
}
