// The schema of `auth` of a tenant: who may call.

import { optionalLogin } from './login.ts'
import { closedObject, defaulted, formatted, integer, list, scopes } from './parts.ts'
import { Type } from './type.ts'

const sharedSecret =
  'is refused: with HMAC whoever can verify a token can also make one. Have the issuer sign with ES256, EdDSA, ' +
  'PS256 or RS256'

const claim = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 256, description }))
const claims = (description: string) =>
  Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { minItems: 1, maxItems: 8, description }))

export const ClaimsSchema = closedObject(
  {
    subject: claim('Who: a value that no two people ever have. Not given: `sub`.'),
    client: claim('Through which client. Not given: `client_id`, `azp`, `cid` or `appid`.'),
    scopes: claims('Scopes, of all of these together. Not given: `scope`, or else `scp`.'),
    groups: claims('Groups, of all of these together. Not given: `groups`.'),
    roles: claims('Roles, of all of these together. Not given: `roles`.')
  },
  { title: 'claims' }
)

export const IssuerSchema = closedObject({
  issuer: formatted('issuer', 'The exact `iss` of its tokens. Keys and metadata are discovered from it.'),
  jwksUri: Type.Optional(formatted('jwks-url', 'Where its public keys are, to use instead of discovery.')),
  algorithms: defaulted(
    Type.Array(
      // Only the issuer has the secret half. With HMAC and `none`, whoever verifies could also sign (RFC 8725 section
      // 3.1).
      Type.Enum(['ES256', 'ES384', 'ES512', 'EdDSA', 'PS256', 'PS384', 'PS512', 'RS256', 'RS384', 'RS512'] as const, {
        refused: {
          HS256: sharedSecret,
          HS384: sharedSecret,
          HS512: sharedSecret,
          none: 'is refused: such tokens are not signed at all'
        }
      }),
      {
        minItems: 1,
        default: ['ES256', 'ES384', 'EdDSA', 'PS256', 'RS256'],
        description: 'Signature algorithms that are accepted.'
      }
    )
  ),
  requireTyp: defaulted(
    Type.Boolean({
      default: true,
      description:
        'Accept only tokens of type `at+jwt` (RFC 9068). Set it to false for an issuer that writes `JWT` or no type.'
    })
  ),
  audiences: list(
    Type.String({ format: 'audience' }),
    'Further values that `aud` may contain. Normally none: a token must name the URL of the endpoint and ' +
      'nothing else. Some identity providers add a value of their own, such as their userinfo URL: list it ' +
      'here.'
  ),
  maxLifetimeSeconds: integer(60, 31_536_000, 86_400, 'Tokens with a longer lifetime are refused.'),
  claims: Type.Optional(
    Type.Union([ClaimsSchema], {
      description: 'Where its tokens say who calls, if not as RFC 9068 has it: a claim, or a path such as `a.b`.'
    })
  )
})

export const KeySchema = closedObject({
  name: Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9_.@-]{0,62}$',
    patternErrorMessage:
      'must be letters, digits, "_", ".", "@" and "-", start with a letter or a digit, and have at most 63 ' +
      'characters',
    description: 'Who holds the key. Appears in the log and in audit records.'
  }),
  key: Type.Optional(
    formatted(
      'api-key',
      'The key, at least 16 characters, preferably as `${NAME}` or `${file:PATH}`. Give either this or sha256.'
    )
  ),
  sha256: Type.Optional(
    Type.String({
      pattern: '^[0-9a-fA-F]{64}$',
      patternErrorMessage: 'must be the SHA-256 of the key: 64 hexadecimal digits',
      description: 'SHA-256 of the key in hexadecimal, to keep the key itself out of the file.'
    })
  ),
  scopes: scopes('Scopes that the holder has, such as `mcp`.')
})

export const BearerSchema = closedObject(
  {
    issuers: list(IssuerSchema, 'Issuers of access tokens (JWT).'),
    keys: list(KeySchema, 'API keys.'),
    requiredScopes: scopes('A caller needs all of these to use an endpoint of the tenant.'),
    login: optionalLogin,
    leewaySeconds: integer(0, 60, 30, 'How far the clocks of the issuer and the gateway may differ.')
  },
  { title: 'issuers and keys' }
)
