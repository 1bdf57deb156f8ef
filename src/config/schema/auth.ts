// The schema of `auth` of a tenant: who may call.

import { providerNames } from '../auth/providers/presets.ts'
import { optionalLogin, optionalSignIn } from './login.ts'
import { choice, closedObject, defaulted, formatted, integer, list, scopes } from './parts.ts'
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
    appScopes: claims(
      'Scopes of a token that has none of the claims of `scopes`, such as one that an application got for itself.'
    ),
    groups: claims('Groups, of all of these together. Not given: `groups`.'),
    roles: claims('Roles, of all of these together. Not given: `roles`.')
  },
  { title: 'claims' }
)

export const IntrospectionSchema = closedObject(
  {
    url: Type.Optional(formatted('jwks-url', 'Where it is asked. Not given: as its metadata say.')),
    clientId: Type.String({ minLength: 1, maxLength: 512, description: 'Of the gateway there.' }),
    clientSecret: Type.String({
      minLength: 1,
      description: 'Of the same client, preferably as `${NAME}` or `${file:PATH}`.'
    }),
    cacheSeconds: integer(0, 60, 30, 'For so long what it said is good; so long a revoked token may still be used.')
  },
  { title: 'introspection' }
)

export const IssuerSchema = closedObject({
  issuer: formatted(
    'issuer',
    'The exact `iss` of its tokens. Keys and metadata are discovered from it. One part may be a placeholder, such as ' +
      '`{tenantid}`, for which `placeholderValues` may stand, and nothing else.'
  ),
  provider: Type.Optional(
    Type.Enum(providerNames, {
      description:
        'Which product it is: sets what its tokens differ in, and `gatehouse check` says what has to be set there ' +
        '([authentication.md](authentication.md#providers)). What is given beside it wins.'
    })
  ),
  placeholderValues: list(
    Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$', patternErrorMessage: 'must be one part of a URL' }),
    'What may stand for the placeholder of the issuer: an issuer each.'
  ),
  authorizationServer: Type.Optional(
    formatted(
      'issuer',
      'The authorization server that hosts are sent to, if it is not the issuer itself. It may have the placeholder ' +
        'of the issuer.'
    )
  ),
  jwksUri: Type.Optional(formatted('jwks-url', 'Where its public keys are, to use instead of discovery.')),
  algorithms: defaulted(
    Type.Array(
      // Only the issuer has the secret half. With HMAC and `none`, whoever verifies could also sign (RFC 8725 section
      // 3.1).
      Type.Enum(
        ['ES256', 'ES384', 'ES512', 'Ed25519', 'EdDSA', 'PS256', 'PS384', 'PS512', 'RS256', 'RS384', 'RS512'] as const,
        {
          refused: {
            HS256: sharedSecret,
            HS384: sharedSecret,
            HS512: sharedSecret,
            none: 'is refused: such tokens are not signed at all'
          }
        }
      ),
      {
        minItems: 1,
        default: ['ES256', 'ES384', 'Ed25519', 'EdDSA', 'PS256', 'RS256'],
        description: 'Signature algorithms that are accepted.'
      }
    )
  ),
  requireTyp: Type.Optional(
    Type.Boolean({
      description:
        'Accept only tokens of type `at+jwt` (RFC 9068). Set it to false for an issuer that writes `JWT` or no type. ' +
        'Default: true, or as `provider` has it.'
    })
  ),
  accessTokenClaim: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 256,
      description:
        'A claim that only its access tokens have, where `requireTyp` is false: it tells them from ID tokens. Not ' +
        'given: they have scopes, and nothing that only ID tokens have.'
    })
  ),
  audiences: list(
    Type.String({ format: 'audience' }),
    'Further values of `aud` that stand for the gateway, where the issuer cannot name the URL of an endpoint: a ' +
      'token with one of them is good at all endpoints of the tenant. Normally none.'
  ),
  otherAudiences: list(
    Type.String({ minLength: 1 }),
    'What `aud` may name beside the gateway, such as the userinfo URL of the issuer. A token for these alone is ' +
      'refused; and whoever they belong to can use the token here.'
  ),
  clients: list(
    Type.String({ minLength: 1, maxLength: 512 }),
    'Client ids whose tokens are for the gateway, for an issuer whose tokens name no `aud` at all. Others without ' +
      '`aud` are refused.'
  ),
  scopePrefix: Type.Optional(
    Type.String({
      pattern: '^[\\x21\\x23-\\x5B\\x5D-\\x7E]{1,256}$',
      patternErrorMessage: 'must be visible characters without spaces, quotes and backslashes',
      description:
        'What stands before its scopes where hosts ask for them, such as `api://1234/`: metadata and challenges add ' +
        'it, and it is taken off scopes of tokens. With several issuers, metadata and challenges are for the first.'
    })
  ),
  staleSeconds: integer(
    0,
    86_400,
    3_600,
    'How long its last keys serve on while it cannot be reached, after the ten minutes in which they are not asked ' +
      'for again. Then requests are answered 503.'
  ),
  introspection: Type.Optional(
    Type.Union([IntrospectionSchema], {
      description:
        'Its tokens may be opaque: it is asked what they mean (RFC 7662). Of one issuer of a tenant at most, because ' +
        'an opaque token does not say whom to ask.'
    })
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
  scopes: scopes('Scopes that the holder has, such as `mcp`.'),
  // An empty list would be read as "none", and a key for one endpoint would become one for all by losing its name.
  endpoints: Type.Optional(
    Type.Array(Type.String(), {
      minItems: 1,
      description: 'Names of the endpoints that it is for. Not given: all of the tenant.'
    })
  ),
  expires: Type.Optional(
    formatted('date-or-time', 'From then on it is refused, such as `2027-01-31` or `2027-01-31T09:00:00Z`.')
  ),
  previousSha256: Type.Optional(
    Type.String({
      pattern: '^[0-9a-fA-F]{64}$',
      patternErrorMessage: 'must be the SHA-256 of the key: 64 hexadecimal digits',
      description: 'SHA-256 of the key that it takes the place of, which is good until `previousUntil`.'
    })
  ),
  previousUntil: Type.Optional(formatted('date-or-time', 'From then on the key before is refused.'))
})

export const BearerSchema = closedObject(
  {
    issuers: list(IssuerSchema, 'Issuers of access tokens (JWT).'),
    keys: list(KeySchema, 'API keys.'),
    requiredScopes: scopes('A caller needs all of these to use an endpoint of the tenant.'),
    askedScopes: scopes(
      'What metadata and challenges tell hosts to ask for in place of `requiredScopes`, where the authorization ' +
        'server calls them otherwise, such as `api://1234/.default`.'
    ),
    dpop: choice(
      ['accepted', 'required'],
      'accepted',
      'Tokens that are bound to a key of their client (DPoP, RFC 9449) are taken with a proof, or no others are. API ' +
        'keys are taken in both cases.'
    ),
    dpopNonces: defaulted(
      Type.Boolean({
        default: false,
        description:
          'Proofs of DPoP have to name a nonce that the gateway gave a moment ago (RFC 9449 sections 8 and 9), at ' +
          'the login front too, so that none can be made beforehand. Clients get it with the answer to their first ' +
          'request.'
      })
    ),
    login: optionalLogin,
    signIn: optionalSignIn,
    leewaySeconds: integer(0, 60, 30, 'How far the clocks of the issuer and the gateway may differ.')
  },
  { title: 'issuers and keys' }
)
