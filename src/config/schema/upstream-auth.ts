// The schema of `auth` of an HTTP upstream: what the gateway shows the server of who calls.

import { choice, closedObject, formatted, scopes } from './parts.ts'
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

const ClientCredentialsSchema = closedObject(
  {
    type: Type.Enum(['clientCredentials'] as const, {
      description: 'One token for all callers (RFC 6749 section 4.4).'
    }),
    ...tokenSource,
    tokenUrl: Type.Optional(
      formatted('jwks-url', 'The token endpoint, where the authorization server has no metadata. Instead of `issuer`.')
    ),
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
  },
  { title: 'upstream auth by client credentials' }
)

export const optionalUpstreamAuth = Type.Optional(
  Type.Union([ClientCredentialsSchema], {
    description:
      'What the server is shown of who calls, besides `headers` ([connections.md](connections.md)). Never the token ' +
      'of a caller.'
  })
)
