// What tokens of a login front are for, and who may take one back: set for the library.

import type { Configuration, errors as Errors } from 'oidc-provider'
import type { LoginConfig } from '../config/auth/login-config.ts'

type Features = NonNullable<Configuration['features']>

/** A token for exactly one endpoint of the tenant (RFC 8707). */
export function resourceIndicatorsOf(
  config: LoginConfig,
  errors: typeof Errors
): NonNullable<Features['resourceIndicators']> {
  const endpoints = [...new Set(Object.values(config.resources))].join(' ')
  return {
    enabled: true,
    defaultResource: (_ctx, _client, oneOf) => {
      if (Array.isArray(oneOf)) return oneOf[0] as string
      if (config.defaultResource !== undefined) return config.defaultResource
      throw new errors.InvalidTarget('name the endpoint with the parameter resource')
    },
    useGrantedResource: () => true,
    getResourceServerInfo: (_ctx, resource) => {
      if (!Object.hasOwn(config.resources, resource))
        throw new errors.InvalidTarget(`there is no such endpoint; there are: ${endpoints}`)
      return {
        scope: config.scopes.join(' '),
        audience: resource,
        accessTokenTTL: config.tokenSeconds,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: 'ES256' } }
      }
    }
  }
}

/** Of a client its own, as the library has it by default, which then writes a notice to standard output. */
export const revocationPolicy =
  (errors: typeof Errors): NonNullable<NonNullable<Features['revocation']>['allowedPolicy']> =>
  async (_ctx, client, token) => {
    if (token.clientId === client.clientId) return true
    // One without a secret says of itself who it is: it is told nothing of what others have.
    if (client.clientAuthMethod === 'none') return false
    throw new errors.InvalidRequest('client is not authorized to revoke the presented token')
  }
