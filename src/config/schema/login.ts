// The schema of `auth.login` of a tenant: the authorization server that the gateway itself is for it.

import { closedObject, defaulted, formatted, integer, record, scopesOrDefault } from './parts.ts'
import { Type } from './type.ts'

/** Of an access token. */
export const maxTokenSeconds = 86_400

const claim = (byDefault: string, description: string) =>
  defaulted(Type.String({ minLength: 1, maxLength: 128, default: byDefault, description }))

const requiredClaims = (where: string) =>
  Type.Optional(
    record(
      { minLength: 1, maxLength: 256 },
      Type.Array(Type.String({ minLength: 1, maxLength: 512 }), { minItems: 1, maxItems: 256 }),
      {
        maxProperties: 16,
        description:
          `What has to be said of whoever may sign in ${where}: of each claim one of these values, such as ` +
          '`{ groups: [engineering] }` or `{ hd: [example.com] }`. A claim that is a list has to have one of them; ' +
          'dots lead to a claim within another. Not given: whoever the provider knows may.'
      }
    )
  )

export const ProviderSchema = closedObject(
  {
    issuer: formatted('issuer', 'Its issuer, from which its endpoints are discovered.'),
    clientId: Type.String({ minLength: 1, description: 'Of the client that is registered for the gateway there.' }),
    clientSecret: Type.String({
      minLength: 1,
      description: 'Of the same client, preferably as `${NAME}` or `${file:PATH}`.'
    }),
    scopes: scopesOrDefault(
      ['openid', 'profile', 'email', 'offline_access'],
      'Scopes to ask it for. `openid` is needed. With a refresh token (`offline_access` at most providers) it is ' +
        'asked again at each refresh whether the person may still come in.'
    ),
    subjectClaim: claim('sub', 'Claim of its ID token that names a person for good.'),
    groupsClaim: claim('groups', 'Claim with the groups of a person, for policies; dots lead to one within another.'),
    rolesClaim: claim('roles', 'Claim with their roles, such as `realm_access.roles`; the same holds.'),
    requiredClaims: requiredClaims('here, and have a token renewed'),
    userinfo: defaulted(
      Type.Boolean({
        default: true,
        description:
          'Where its ID token lacks one of these claims, or there is none at a refresh, ask its userinfo endpoint.'
      })
    ),
    signOut: defaulted(
      Type.Boolean({
        default: true,
        description:
          'Who signs out on the pages is signed out at the provider, too, where it can do that. Register ' +
          '`{publicUrl}/login/{tenant}/session/end/success` there as a URI for after logout.'
      })
    )
  },
  {
    description:
      'The OpenID provider where the people of this tenant sign in. Register the gateway there as a confidential web ' +
      'client with the redirect URI `{publicUrl}/login/{tenant}/callback`.'
  }
)

export const LoginSchema = closedObject(
  {
    provider: ProviderSchema,
    name: Type.Optional(
      Type.String({ minLength: 1, maxLength: 80, description: 'Of the tenant, on the pages. Not given: its id.' })
    ),
    logo: Type.Optional(
      Type.String({
        maxLength: 32_768,
        pattern:
          '^(?:https://[\\w.-]+(?::\\d+)?/[\\w./~%-]+|data:image/(?:png|jpeg|webp|svg\\+xml);base64,[A-Za-z0-9+/]+=*)$',
        patternErrorMessage:
          'must be an https URL without a query, or data:image/png;base64,... (png, jpeg, webp, svg+xml)',
        description: 'Its picture on the pages: an `https` URL without a query, or the picture itself as a `data:` URL.'
      })
    ),
    scopes: scopesOrDefault(
      ['mcp'],
      'Scopes that a token can have, all of which are asked for where a host names none.'
    ),
    tokenSeconds: integer(60, maxTokenSeconds, 600, 'Life of an access token.'),
    refreshDays: integer(1, 365, 30, 'After so long without any use a host has to ask the person again.'),
    sessionHours: integer(
      1,
      720,
      12,
      'So long a person stays signed in on the pages; and, where the provider gives no refresh token, so long a ' +
        'sign-in is good for refreshes.'
    ),
    registrationsPerHour: integer(
      1,
      100_000,
      200,
      'Clients that may register in an hour from one address, or /64 of IPv6 (RFC 7591); from all together twice as ' +
        'many.'
    ),
    authorizationsPerMinute: integer(
      1,
      1_000_000,
      600,
      'Sign-ins that may be begun in a minute from one address, or /64 of IPv6, and as many metadata documents that ' +
        'are fetched for hosts there; from all together twice as many.'
    ),
    clientDocuments: defaulted(
      Type.Boolean({
        default: true,
        description:
          'Accept URLs of metadata documents as client ids. The gateway fetches them; never from private addresses.'
      })
    )
  },
  { title: 'login' }
)

export const optionalLogin = Type.Optional(
  Type.Union([LoginSchema], {
    description:
      'An authorization server for this tenant, for identity providers that cannot register hosts or issue tokens ' +
      'for one endpoint ([login.md](login.md)). Needs publicUrl. Not given: there is none.'
  })
)

export const SignInSchema = closedObject(
  {
    issuer: formatted('issuer', 'One of `issuers` of the tenant, which has to be an OpenID provider.'),
    clientId: Type.String({ minLength: 1, description: 'Of the client that is registered for the gateway there.' }),
    clientSecret: Type.String({
      minLength: 1,
      description: 'Of the same client, preferably as `${NAME}` or `${file:PATH}`.'
    }),
    scopes: scopesOrDefault(['openid', 'profile', 'email'], 'Scopes to ask it for. `openid` is needed.'),
    subjectClaim: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 128,
        description:
          'Claim of its ID token that names a person as access tokens of the issuer do. Not given: the same one, or ' +
          'the one that `provider` of the issuer is known to have there.'
      })
    ),
    requiredClaims: requiredClaims('to the page; of its ID token, or of its userinfo endpoint')
  },
  { title: 'sign-in' }
)

export const optionalSignIn = Type.Optional(
  Type.Union([SignInSchema], {
    description:
      'How people sign in to the page of their connections ([connections.md](connections.md)) in a tenant without ' +
      '`login`. Register the gateway at the provider as a confidential web client with the redirect URI ' +
      '`{publicUrl}/t/{tenant}/connections/signed-in`. Not given: with an API key, or an access token.'
  })
)
