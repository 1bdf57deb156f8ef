// The `auth` part of a tenant: who may call.

import { Type, type Static } from 'typebox'

/**
 * Signatures of which only the issuer has the secret half. HMAC and `none` are refused: whoever verifies could also
 * sign (RFC 8725 section 3.1).
 */
const algorithms = ['ES256', 'ES384', 'ES512', 'EdDSA', 'PS256', 'PS384', 'PS512', 'RS256', 'RS384', 'RS512'] as const
const sharedSecret =
  'is refused: with HMAC whoever can verify a token can also make one. Have the issuer sign with ES256, EdDSA, ' +
  'PS256 or RS256'

export const authDefaults = {
  algorithms: ['ES256', 'ES384', 'EdDSA', 'PS256', 'RS256'],
  requireTyp: true,
  maxLifetimeSeconds: 86_400,
  leewaySeconds: 30
} as const

const scopes = (description: string) =>
  Type.Optional(
    Type.Array(
      Type.String({
        // RFC 6749 appendix A.4
        pattern: '^[\\x21\\x23-\\x5B\\x5D-\\x7E]+$',
        patternErrorMessage: 'must be one scope: visible characters without spaces, quotes and backslashes'
      }),
      { default: [], description }
    )
  )

export const IssuerSchema = Type.Object(
  {
    issuer: Type.String({
      format: 'issuer',
      description: 'The exact `iss` of its tokens. Keys and metadata are discovered from it.'
    }),
    jwksUri: Type.Optional(
      Type.String({ format: 'jwks-url', description: 'Where its public keys are, to use instead of discovery.' })
    ),
    algorithms: Type.Optional(
      Type.Array(
        Type.Enum(algorithms, {
          refused: {
            HS256: sharedSecret,
            HS384: sharedSecret,
            HS512: sharedSecret,
            none: 'is refused: such tokens are not signed at all'
          }
        }),
        { minItems: 1, default: authDefaults.algorithms, description: 'Signature algorithms that are accepted.' }
      )
    ),
    requireTyp: Type.Optional(
      Type.Boolean({
        default: authDefaults.requireTyp,
        description:
          'Accept only tokens of type `at+jwt` (RFC 9068). Set it to false for an issuer that writes `JWT` or no type.'
      })
    ),
    audiences: Type.Optional(
      Type.Array(Type.String({ format: 'audience' }), {
        default: [],
        description:
          'Further values that `aud` may contain. Normally none: a token must name the URL of the endpoint and ' +
          'nothing else. Some identity providers add a value of their own, such as their userinfo URL: list it ' +
          'here.'
      })
    ),
    maxLifetimeSeconds: Type.Optional(
      Type.Integer({
        minimum: 60,
        maximum: 31_536_000,
        default: authDefaults.maxLifetimeSeconds,
        description: 'Tokens with a longer lifetime are refused.'
      })
    )
  },
  { additionalProperties: false }
)

export const KeySchema = Type.Object(
  {
    name: Type.String({
      pattern: '^[A-Za-z0-9][A-Za-z0-9_.@-]{0,62}$',
      patternErrorMessage:
        'must be letters, digits, "_", ".", "@" and "-", start with a letter or a digit, and have at most 63 ' +
        'characters',
      description: 'Who holds the key. Appears in the log and in audit records.'
    }),
    key: Type.Optional(
      Type.String({
        format: 'api-key',
        description:
          'The key, at least 16 characters, preferably as `${NAME}` or `${file:PATH}`. Give either this or sha256.'
      })
    ),
    sha256: Type.Optional(
      Type.String({
        pattern: '^[0-9a-fA-F]{64}$',
        patternErrorMessage: 'must be the SHA-256 of the key: 64 hexadecimal digits',
        description: 'SHA-256 of the key in hexadecimal, to keep the key itself out of the file.'
      })
    ),
    scopes: scopes('Scopes that the holder has, such as `mcp`.')
  },
  { additionalProperties: false }
)

const BearerSchema = Type.Object(
  {
    issuers: Type.Optional(Type.Array(IssuerSchema, { default: [], description: 'Issuers of access tokens (JWT).' })),
    keys: Type.Optional(Type.Array(KeySchema, { default: [], description: 'API keys.' })),
    requiredScopes: scopes('A caller needs all of these to use an endpoint of the tenant.'),
    leewaySeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 60,
        default: authDefaults.leewaySeconds,
        description: 'How far the clocks of the issuer and the gateway may differ.'
      })
    )
  },
  { additionalProperties: false, title: 'issuers and keys' }
)

export const AuthSchema = Type.Union([Type.Literal('none', { title: 'none' }), BearerSchema], {
  description: 'Who may call: issuers and keys, or `none`, which is accepted only if listen.host is a loopback address.'
})

export type AuthInput = Static<typeof AuthSchema>
