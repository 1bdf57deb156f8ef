// The schema of `auth` of an HTTP upstream: what the gateway shows the server of who calls.

import { accountProviderNames } from '../auth/account-providers.ts'
import { choice, closedObject, defaulted, formatted, list, scopes } from './parts.ts'
import { Type } from './type.ts'

/** Where its tokens come from, and for what; the same for every kind that gets tokens. */
const tokenSource = {
  issuer: Type.Optional(
    formatted(
      'issuer',
      'The authorization server, where the upstream names several or none. Not given: the one that the upstream names.'
    )
  ),
  clientId: Type.String({ minLength: 1, maxLength: 2_048, description: 'Of the client registered for the gateway.' }),
  clientSecret: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 4_096,
      description: 'Of the same client, preferably as `${NAME}` or `${file:PATH}`.'
    })
  ),
  scopes: scopes('Scopes to ask for. Not given: those that the upstream wants.'),
  resource: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 2_048,
      description:
        'What the token is for (RFC 8707). Not given: what the upstream calls itself. `none`: it is not said, for ' +
        'authorization servers that refuse the parameter.'
    })
  )
}

/** How a client proves by a key who it is, instead of by a secret. */
const clientKey = {
  privateKey: Type.Optional(
    formatted(
      'private-key',
      'A private key in PEM (PKCS #8), with which the client proves who it is (`private_key_jwt`), instead of a ' +
        'secret.'
    )
  ),
  algorithm: choice(['ES256', 'RS256', 'PS256', 'EdDSA'], 'ES256', 'Of the signature that `privateKey` makes.'),
  keyId: Type.Optional(
    Type.String({ minLength: 1, maxLength: 256, description: 'What the authorization server calls the key (`kid`).' })
  )
}

export const ClientCredentialsSchema = closedObject(
  {
    type: Type.Enum(['clientCredentials'] as const, {
      description: 'One token for all callers (RFC 6749 section 4.4).'
    }),
    ...tokenSource,
    tokenUrl: Type.Optional(
      formatted(
        'jwks-url',
        'The token endpoint, where the authorization server has no metadata. What `privateKey` signs is for the ' +
          '`issuer` beside it (`aud`), and without one for this URL.'
      )
    ),
    ...clientKey
  },
  { title: 'upstream auth by client credentials' }
)

const personalListing = {
  listing: Type.Optional(
    Type.Enum(['own', 'shared'] as const, {
      description:
        'What those see who have not connected: nothing but the tool that leads to the page (`own`, where it is not ' +
        'given); or, with `shared`, the tools besides that somebody else of the tenant was listed last. Only where ' +
        'the server lists the same for every account: names and descriptions of tools would be seen by others.'
    })
  )
}

const secretTexts = {
  label: Type.Optional(
    Type.String({ minLength: 1, maxLength: 200, description: 'What the page calls the secret. Not given: `API key`.' })
  ),
  help: Type.Optional(formatted('jwks-url', 'A web page that says where a person gets one; the page has a link to it.'))
}

export const UserHeaderSchema = closedObject(
  {
    type: Type.Enum(['userSecret'] as const, {
      description: 'A key of their own that each person enters on the page of their connections.'
    }),
    header: defaulted(
      Type.String({ format: 'header-name', default: 'Authorization', description: 'The header that carries it.' })
    ),
    prefix: defaulted(
      Type.String({
        format: 'header-value',
        maxLength: 100,
        default: 'Bearer ',
        description: 'What stands before it in the header.'
      })
    ),
    ...secretTexts,
    ...personalListing
  },
  { title: 'upstream auth by a secret of each person' }
)

export const UserVariableSchema = closedObject(
  {
    type: Type.Enum(['userSecret'] as const, {
      description:
        'A key of their own that each person enters on the page of their connections; each person has processes of ' +
        'their own.'
    }),
    env: Type.String({
      pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
      patternErrorMessage: 'must be the name of an environment variable',
      description: 'The environment variable that carries it.'
    }),
    ...secretTexts,
    ...personalListing
  },
  { title: 'upstream auth by a variable of each person' }
)

export const UserSchema = closedObject(
  {
    type: Type.Enum(['user'] as const, {
      description: 'An account of their own that each person connects once, by OAuth, for all their hosts.'
    }),
    provider: Type.Optional(
      Type.Enum([...accountProviderNames], {
        description:
          'Whose account it is, where the upstream takes tokens of a provider that is no MCP authorization server: ' +
          'its endpoints and what its answers differ in are known. Needs `clientId` and `clientSecret`.'
      })
    ),
    ...tokenSource,
    clientId: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 2_048,
        description:
          'Of the client registered for the gateway. Not given: the gateway registers itself, or names the document ' +
          'of its metadata.'
      })
    ),
    authorizationUrl: Type.Optional(
      formatted('jwks-url', 'The authorization endpoint, where the authorization server has no metadata.')
    ),
    tokenUrl: Type.Optional(formatted('jwks-url', 'The token endpoint, with `authorizationUrl`.')),
    revocationUrl: Type.Optional(
      formatted(
        'jwks-url',
        'Where accounts are given back (RFC 7009, or as `provider` does), with `tokenUrl` or `provider`. For GitHub ' +
          '`{client_id}` is the client. Not given: where `provider` says; with `tokenUrl` they are not given back.'
      )
    ),
    accountUrl: Type.Optional(
      formatted(
        'jwks-url',
        'Where the provider answers what an account is called, to whoever shows its token, such as an endpoint for ' +
          'userinfo. Not given: where `provider` says; else the userinfo endpoint of its metadata, for `openid` in ' +
          '`scopes`.'
      )
    ),
    ...personalListing
  },
  { title: 'upstream auth by an account of each person' }
)

const { scopes: askedScopes, resource, clientId, clientSecret } = tokenSource

export const IdentityAssertionSchema = closedObject(
  {
    issuer: Type.Optional(
      formatted('issuer', 'That authorization server. Not given: the one that the upstream names.')
    ),
    clientId,
    clientSecret,
    ...clientKey
  },
  { title: 'upstream auth by an identity assertion' }
)

export const TokenExchangeSchema = closedObject(
  {
    type: Type.Enum(['tokenExchange'] as const, {
      description:
        'The token of each caller, exchanged at the identity provider that issued it for one that the upstream takes ' +
        '(RFC 8693).'
    }),
    issuer: formatted('issuer', 'The identity provider: one of the issuers of the tenant.'),
    tokenUrl: Type.Optional(formatted('jwks-url', 'Its token endpoint, where it has no metadata.')),
    clientId,
    clientSecret,
    subjectToken: choice(
      ['accessToken', 'idToken'],
      'accessToken',
      'What is exchanged: the token of the caller; or the ID token with which the caller signed in at the provider ' +
        'of `auth.login`, which `issuer` then names.'
    ),
    audience: Type.Optional(
      Type.String({ minLength: 1, maxLength: 2_048, description: 'Whom the token is for, as the provider calls it.' })
    ),
    resource,
    scopes: askedScopes,
    identityAssertion: Type.Optional(
      Type.Union([IdentityAssertionSchema], {
        description:
          'Where the authorization server of the upstream wants an assertion of the identity provider (ID-JAG, ' +
          'enterprise-managed authorization): the client registered for the gateway there. The provider is then ' +
          'asked for an assertion in place of a token.'
      })
    )
  },
  { title: 'upstream auth by token exchange' }
)

export const SignedSchema = closedObject(
  {
    type: Type.Enum(['signed'] as const, {
      description: 'A JWT of the gateway, signed for each caller, that says who calls: for servers of your own.'
    }),
    audience: Type.Optional(
      Type.String({ minLength: 1, maxLength: 2_048, description: 'Its `aud`. Not given: the URL of the upstream.' })
    ),
    claims: list(
      Type.String({ minLength: 1, maxLength: 256 }),
      'What it says besides: `groups`, `roles`, `scopes`, and claims of the token of the caller by their names.'
    )
  },
  { title: 'upstream auth by a signed assertion' }
)

export const optionalStdioAuth = Type.Optional(
  Type.Union([UserVariableSchema], {
    description: 'What the server is given of who calls ([connections.md](connections.md)).'
  })
)

export const optionalUpstreamAuth = Type.Optional(
  Type.Union([UserSchema, UserHeaderSchema, ClientCredentialsSchema, TokenExchangeSchema, SignedSchema], {
    description:
      'What the server is shown of who calls, besides `headers` ([connections.md](connections.md)). Never the token ' +
      'of a caller.'
  })
)
