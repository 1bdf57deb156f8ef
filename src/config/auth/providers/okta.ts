// Okta, with a custom authorization server.

import type { ProviderPreset } from './preset.ts'

export const okta: ProviderPreset = {
  title: 'Okta',
  issuer: {
    example: 'https://acme.okta.com/oauth2/default',
    pattern: '^https://[^/]+/oauth2/[A-Za-z0-9]+$',
    form:
      'https://DOMAIN/oauth2/SERVER-ID, a custom authorization server such as https://acme.okta.com/oauth2/default: ' +
      'tokens of the org authorization server (https://DOMAIN) are for Okta alone, which may change their form'
  },
  audience: 'url',
  token: {
    requireTyp: false,
    // `sub` is the name that a person signs in with, which can be given to another; applications have no `uid`.
    claims: { subject: ['uid', 'sub'], client: 'cid', scopes: ['scp'] }
  },
  idTokenSubject: 'sub',
  can: { resource: 'no', registration: 'no', clientDocuments: 'no' },
  steps: [
    'Security > API > Authorization Servers: add one for the gateway (or use "default"), with the URL of the ' +
      'endpoint as its audience: {urls}. A server has one audience: with several endpoints, give another value and ' +
      'put it under `audiences`.',
    'Scopes: add those that the configuration requires, such as mcp.',
    'Claims: add a claim "groups" for access tokens, of type Groups, with a filter, for policies.',
    'Access Policies: add a policy and a rule that let the hosts and the people in.',
    'Applications: create an application for each host, or use `auth.login`: hosts cannot register here by themselves.'
  ],
  facts: [
    'Access tokens have no `typ` header, `scp` as a list and `cid` for the client.',
    'A server has one audience: Okta does not look at the parameter `resource`.',
    'The subject is `uid`, which stays, and `sub` only for applications without a person: the `sub` of a person is ' +
      'the name that they sign in with.',
    'In ID tokens it is the other way round: their `sub` is that `uid`. `auth.signIn` knows it.',
    'Tokens of the org authorization server have the type `application/okta-internal-at+jwt` and the audience of the ' +
      'org itself. Okta says that they must be treated as opaque; the gateway refuses them.'
  ],
  example: `issuers:
  - provider: okta
    issuer: https://acme.okta.com/oauth2/default
    audiences: [api://gatehouse.acme.example]
requiredScopes: [mcp]`,
  behindLogin: {
    issuer: '^https://[^/]+\\.(?:okta|oktapreview|okta-emea)\\.com(?:/oauth2/[A-Za-z0-9]+)?$',
    steps: [
      'Applications: create an OIDC app integration of type "Web Application" with the grant types Authorization ' +
        'Code ' +
        'and Refresh Token, the sign-in redirect URI {redirect} and the sign-out redirect URI {signedOut}.',
      'Assignments: assign the people and groups that may come in.',
      'Sign On > OpenID Connect ID Token: add a groups claim named groups with a filter.',
      'The issuer may be the org authorization server, https://DOMAIN: here only its ID tokens count.'
    ],
    example: `login:
  provider:
    issuer: https://acme.okta.com
    clientId: gatehouse
    clientSecret: "\${CLIENT_SECRET}"`
  },
  sources: [
    'https://developer.okta.com/docs/concepts/auth-servers/',
    'https://developer.okta.com/docs/api/openapi/okta-oauth/guides/overview/',
    'https://support.okta.com/help/s/article/Signature-Validation-Failed-on-Access-Token',
    'https://support.okta.com/help/s/article/oidc-does-okta-support-the-resource-parameter-and-audience-switching'
  ]
}
