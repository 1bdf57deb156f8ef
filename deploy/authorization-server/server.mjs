// An authorization server for docker-compose.yml. FOR DEVELOPMENT ONLY: whoever comes may log in under any name, and
// what it knows is lost with the process. Hosts register by themselves (RFC 7591), log a person in with PKCE, and get
// RFC 9068 tokens for the resource that they ask for (RFC 8707).

import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { exportJWK, generateKeyPair } from 'jose'
import { Provider } from 'oidc-provider'

const issuer = process.env.ISSUER ?? 'http://localhost:8081'
const secrets = process.env.SECRETS ?? '/run/secrets'
const scopes = ['mcp']
const lifetimeSeconds = 600

const { privateKey } = await generateKeyPair('ES256', { extractable: true })
const provider = new Provider(issuer, {
  jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig', kid: randomUUID() }] },
  cookies: { keys: [randomUUID()] },
  scopes: ['openid', 'offline_access', ...scopes],
  clientDefaults: { id_token_signed_response_alg: 'ES256' },
  // The account is the name that the person types into the login page, whatever the password.
  findAccount: (_, name) => ({ accountId: name, claims: () => ({ sub: name }) }),
  ttl: { AccessToken: lifetimeSeconds },
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, resource) => ({
        scope: scopes.join(' '),
        audience: resource,
        accessTokenFormat: 'jwt',
        accessTokenTTL: lifetimeSeconds,
        jwt: { sign: { alg: 'ES256' } }
      })
    }
  }
})
provider.proxy = true // Behind nginx, which says what the browser asked for.
const callback = provider.callback()
const handle = (request, response) => void callback(request, response)

// Hosts come through the proxy; the gateways read the keys over TLS, as they refuse plain http from another machine.
const tls = { key: readFileSync(`${secrets}/tls.key`), cert: readFileSync(`${secrets}/tls.crt`) }
const servers = [createServer(handle).listen(8081), createTlsServer(tls, handle).listen(8443)]
console.log(`authorization server ${issuer}: FOR DEVELOPMENT ONLY`)

for (const signal of ['SIGTERM', 'SIGINT'])
  process.on(signal, () => {
    for (const server of servers) {
      server.close()
      server.closeAllConnections()
    }
  })
