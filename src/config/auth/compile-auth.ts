// Compiles the authentication settings: API keys become digests, and the login front becomes an issuer of its tenant.

import type { TenantId } from '../../protocol/messages.ts'
import { keyDigest } from './key-rules.ts'
import type { TenantInput } from '../schema/config.ts'
import { maxTokenSeconds } from '../schema/login.ts'
import { placeholderOf, type AuthConfig, type IssuerConfig, type KeyConfig } from './auth-config.ts'
import { type BehindLogin, isSettled, type ProviderPreset } from './providers/preset.ts'
import { productOf, providerPresets } from './providers/presets.ts'
import { loginPath, type LoginConfig } from './login-config.ts'

export const pathOfEndpoint = (id: TenantId, name: string): string =>
  name === 'default' ? `/t/${id}/mcp` : `/t/${id}/${name}/mcp`

interface AuthOfTenant {
  readonly id: TenantId
  /** The claims on which policy rules of the tenant depend. */
  readonly neededWhole: NonNullable<IssuerConfig['neededWhole']>
  /** The claims that upstreams are sent. */
  readonly toldClaims: readonly string[]
}

export function compileAuth(
  { id, neededWhole, toldClaims }: AuthOfTenant,
  input: TenantInput['auth'],
  endpoints: NonNullable<TenantInput['endpoints']>,
  publicUrl = ''
): AuthConfig {
  if (input === 'none') return { mode: 'none', issuers: [], keys: [], requiredScopes: [], leewaySeconds: 30 }
  const { login, signIn, ...rest } = input
  const front = login && compileLogin({ id, neededWhole }, login, Object.keys(endpoints), publicUrl)
  const besides = { ...(neededWhole.length > 0 && { neededWhole }), ...(toldClaims.length > 0 && { toldClaims }) }
  const issuers = [...(front === undefined ? [] : [ownIssuer(front)]), ...input.issuers.flatMap(compileIssuer)]
  return {
    ...rest,
    mode: 'bearer',
    ...(front && { login: front }),
    ...(signIn && { signIn: compileSignIn(signIn, input.issuers) }),
    issuers: issuers.map((issuer) => ({ ...issuer, ...besides })),
    keys: input.keys.map(compileKey)
  }
}

function compileKey({
  name,
  scopes,
  endpoints,
  expires,
  previousSha256,
  previousUntil,
  ...key
}: Exclude<TenantInput['auth'], 'none'>['keys'][number]): KeyConfig {
  return {
    name,
    sha256: keyDigest(key) ?? '',
    scopes,
    ...(endpoints !== undefined && { endpoints }),
    ...(expires !== undefined && { expires: Date.parse(expires) }),
    ...(previousSha256 !== undefined &&
      previousUntil !== undefined && {
        previous: { sha256: previousSha256.toLowerCase(), until: Date.parse(previousUntil) }
      })
  }
}

type IssuerInput = Exclude<TenantInput['auth'], 'none'>['issuers'][number]

/** Compiles an issuer: into one issuer for each value of its placeholder. */
export function compileIssuer({ placeholderValues, provider, claims, ...input }: IssuerInput): IssuerConfig[] {
  const preset: ProviderPreset | undefined = provider && providerPresets[provider]
  const { audienceBeside, claims: usualClaims, ...token } = preset?.token ?? {}
  const known = { ...usualClaims, ...claims }
  const config = {
    jwksUri: undefined,
    requireTyp: true,
    ...token,
    ...input,
    ...(provider && { provider }),
    ...(preset && { takesResource: isSettled(preset.can.resource) }),
    ...(Object.keys(known).length > 0 && { claims: known })
  }
  const besides = (issuer: string): string[] => (audienceBeside === undefined ? [] : [issuer + audienceBeside])
  const placeholder = placeholderOf(input.issuer)
  if (placeholder === undefined)
    return [{ ...config, otherAudiences: [...input.otherAudiences, ...besides(input.issuer)] }]
  const { authorizationServer } = input
  return placeholderValues.map((value) => {
    const issuer = input.issuer.replace(placeholder, value)
    return {
      ...config,
      issuer,
      jwksUri: input.jwksUri?.replace(placeholder, value),
      ...(authorizationServer && { authorizationServer: authorizationServer.replace(placeholder, value) }),
      otherAudiences: [...input.otherAudiences, ...besides(issuer)]
    }
  })
}

function compileLogin(
  { id, neededWhole }: Pick<AuthOfTenant, 'id' | 'neededWhole'>,
  { name = id, provider, ...login }: NonNullable<Exclude<TenantInput['auth'], 'none'>['login']>,
  endpoints: readonly string[],
  publicUrl: string
): LoginConfig {
  const urlOf = (endpoint: string): string => publicUrl + pathOfEndpoint(id, endpoint)
  const path = loginPath(id)
  const byDefault = endpoints.length === 1 ? endpoints[0] : endpoints.find((endpoint) => endpoint === 'default')
  return {
    ...login,
    provider: { ...withOffline(provider), neededWhole },
    name,
    issuer: publicUrl + path,
    path,
    // A host tells the authorization server the very URL that it was given (RFC 8707; http/admission.ts).
    resources: Object.fromEntries(
      endpoints.map(urlOf).flatMap((url) => [url, url.replace(/mcp$/, 'sse')].map((each) => [each, url]))
    ),
    defaultResource: byDefault === undefined ? undefined : urlOf(byDefault)
  }
}

/** Adds the parameters for a refresh token of a provider that does not support the scope `offline_access`. */
function withOffline(provider: LoginConfig['provider']): LoginConfig['provider'] {
  const { offline, promptForLogin }: BehindLogin = providerPresets[productOf(provider.issuer)].behindLogin
  const known = { ...provider, ...(promptForLogin && { promptForLogin }) }
  if (offline === undefined || !provider.scopes.includes('offline_access')) return known
  return { ...known, scopes: provider.scopes.filter((scope) => scope !== 'offline_access'), parameters: offline }
}

/** Compiles the sign-in of the account page: the subject must be that of access tokens; scopes do not matter there. */
function compileSignIn(
  { subjectClaim, ...signIn }: NonNullable<Exclude<TenantInput['auth'], 'none'>['signIn']>,
  issuers: readonly IssuerInput[]
): LoginConfig['provider'] {
  const { claims, provider } = issuers.find(({ issuer }) => issuer === signIn.issuer) ?? {}
  const preset: ProviderPreset | undefined = provider && providerPresets[provider]
  const [usual = 'sub'] = [preset?.idTokenSubject ?? preset?.token.claims?.subject ?? []].flat()
  const nothingElse = { groupsClaim: '', rolesClaim: '', userinfo: signIn.requiredClaims !== undefined, signOut: false }
  return { ...signIn, ...nothingElse, subjectClaim: subjectClaim ?? claims?.subject ?? usual }
}

/** The login front as an issuer of the tenant; its keys are in this process, so no request is needed. */
const ownIssuer = ({ issuer }: LoginConfig): IssuerConfig => ({
  issuer,
  jwksUri: `${issuer}/jwks`,
  algorithms: ['ES256'],
  requireTyp: true,
  audiences: [],
  // The upper bound, because tokens stay valid after `tokenSeconds` was lowered.
  maxLifetimeSeconds: maxTokenSeconds
})
