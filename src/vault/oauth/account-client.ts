// The OAuth client with which the gateway connects accounts at an authorization server (2026-07-28 basic/authorization/
// client-registration): a configured one, its client id metadata document, or a registered one (RFC 7591).

import * as oauth from 'oauth4webapi'
import type { Fetch } from '../../egress/fetch.ts'
import type { Log } from '../../observe/log.ts'
import type { TenantId } from '../../protocol/messages.ts'
import { connectionsPath, type UserAuth } from '../../config/auth/upstream-auth.ts'
import { grantClientKey, yearTtlMs } from '../../store/keys.ts'
import type { SealedValues } from '../sealed-values.ts'
import { authenticationOf, oauthRefusalOf } from './client-authentication.ts'

/** The longest id and secret of a client, in characters: the id goes into URLs. */
const maxCredentialLength = 2_048

/** How long an unused registered client is kept, in milliseconds. Accounts keep a copy of their client. */
const ttlMs = yearTtlMs

/** The account cannot be connected. Its message is for the person, and says what to do. */
export class ConnectRefused extends Error {}

export interface AccountClient {
  readonly id: string
  readonly secret?: string | undefined
  readonly method?: string | undefined
}

interface RegisteredClient extends AccountClient {
  readonly redirectUri: string
  /** Epoch ms; undefined: never. */
  readonly expiresAt?: number | undefined
  /** Epoch ms. Until then the server is not asked whether it knows the client; undefined: it may be asked. */
  readonly trustedUntil?: number | undefined
}

export const redirectUriOf = (publicUrl: string, tenant: string): string =>
  `${publicUrl}${connectionsPath(tenant)}/callback`

/** The document that authorization servers fetch (OAuth Client ID Metadata Document). */
const clientDocumentUrl = (publicUrl: string, tenant: string): string =>
  `${publicUrl}${connectionsPath(tenant)}/client.json`

export const clientDocument = (publicUrl: string, tenant: string) => ({
  client_id: clientDocumentUrl(publicUrl, tenant),
  ...clientMetadata(publicUrl, tenant),
  token_endpoint_auth_method: 'none'
})

const clientMetadata = (publicUrl: string, tenant: string) => ({
  client_name: `Gatehouse (${tenant})`,
  client_uri: publicUrl,
  redirect_uris: [redirectUriOf(publicUrl, tenant)],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  application_type: 'web'
})

interface RegistrationOptions {
  readonly tenant: TenantId
  readonly auth: UserAuth
  readonly server: oauth.AuthorizationServer
  readonly values: SealedValues
  readonly fetch: Fetch
  readonly publicUrl: string
  readonly wall: { now(): number }
  readonly log: Log
}

/** The shortest time between two registrations at a server that does not know the client it has just registered. */
const trustedMs = 60 * 60_000

/**
 * Finds out whether the server has forgotten a registered client. With an unknown client, the authorization endpoint
 * shows an error page and does not redirect back (RFC 6749 section 4.1.2.1). So the token endpoint is asked with an
 * invalid code: it checks the client before the code (section 5.2).
 * @returns false also if the answer does not tell
 */
async function isForgotten(
  client: RegisteredClient,
  server: oauth.AuthorizationServer,
  fetch: Fetch,
  { resource }: Probe
): Promise<boolean> {
  const options = { [oauth.allowInsecureRequests]: true, [oauth.customFetch]: fetch }
  const code = oauth.generateRandomState()
  const parameters = {
    code,
    redirect_uri: client.redirectUri,
    code_verifier: oauth.generateRandomCodeVerifier(),
    ...(resource !== undefined && { resource })
  }
  const as = { client_id: client.id }
  try {
    const proof = await authenticationOf({ clientSecret: client.secret }, server, client.method)
    const answer = await oauth.genericTokenEndpointRequest(server, as, proof, 'authorization_code', parameters, options)
    await oauth.processGenericTokenEndpointResponse(server, as, answer)
    return false
  } catch (error) {
    return oauthRefusalOf(error) === 'invalid_client'
  }
}

/**
 * Forgets a registered client that its server no longer knows: the next connect registers a new one.
 * @returns false if no client was registered
 */
export async function forgetClient(
  values: SealedValues,
  tenant: TenantId,
  issuer: string,
  clientId: string
): Promise<boolean> {
  const key = grantClientKey(tenant, issuer)
  const ended = (client: unknown): RegisteredClient => ({ ...(client as RegisteredClient), expiresAt: 0 })
  // Only this client is ended: another one may have been registered meanwhile.
  await values.change(tenant, key, (now) => ((now as RegisteredClient).id === clientId ? ended(now) : undefined), ttlMs)
  return (await values.read(tenant, key)) !== undefined
}

/** The request that asks a server whether it knows a client. */
interface Probe {
  readonly resource: string | undefined
}

/**
 * @param probe undefined: the server is not asked whether it still knows the client
 * @throws ConnectRefused if there is no client and the server registers none; Error for an invalid response
 */
export async function clientAt(
  { tenant, auth, server, values, fetch, publicUrl, wall, log }: RegistrationOptions,
  probe: Probe | undefined
): Promise<AccountClient> {
  if (auth.clientId !== undefined) return { id: auth.clientId, secret: auth.clientSecret }
  if (server.client_id_metadata_document_supported === true && publicUrl.startsWith('https:'))
    return { id: clientDocumentUrl(publicUrl, tenant), method: 'none' }
  // A client belongs to one issuer: its credentials are never sent to another one.
  const key = grantClientKey(tenant, server.issuer)
  const redirectUri = redirectUriOf(publicUrl, tenant)
  const known = (await values.read(tenant, key)) as RegisteredClient | undefined
  const isGood = known?.redirectUri === redirectUri && wall.now() < (known.expiresAt ?? Infinity)
  const isLost =
    isGood &&
    wall.now() >= (known.trustedUntil ?? 0) &&
    probe !== undefined &&
    (await isForgotten(known, server, fetch, probe))
  if (isLost) log.warn({ tenant, issuer: server.issuer }, 'a provider does not know the gateway any more')
  if (isGood && !isLost) {
    await values.touch(key, ttlMs)
    return known
  }
  if (server.registration_endpoint === undefined)
    throw new ConnectRefused(
      `${server.issuer} knows no client for this gateway and registers none by itself. Ask those who run the gateway ` +
        'to register one there and to name it as clientId.'
    )
  const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
  const method = ['client_secret_basic', 'client_secret_post', 'none'].find((each) => methods.includes(each)) ?? 'none'
  const response = await oauth.dynamicClientRegistrationRequest(
    server,
    { ...clientMetadata(publicUrl, tenant), token_endpoint_auth_method: method },
    { [oauth.allowInsecureRequests]: true, [oauth.customFetch]: fetch }
  )
  const made = await oauth.processDynamicClientRegistrationResponse(await completed(response))
  const { client_id: id, client_secret: secret, client_secret_expires_at: seconds = 0 } = made
  const { token_endpoint_auth_method: given } = made
  if (id.length > maxCredentialLength || (typeof secret === 'string' && secret.length > maxCredentialLength))
    throw new ConnectRefused(
      `${server.issuer} gave a client id or a secret of more than ${maxCredentialLength} characters.`
    )
  const client: AccountClient = {
    id,
    ...(typeof secret === 'string' && { secret }),
    method: typeof given === 'string' ? given.slice(0, 64) : method
  }
  const expiresAt = typeof seconds === 'number' && seconds > 0 ? seconds * 1000 : undefined
  const trustedUntil = isLost ? wall.now() + trustedMs : undefined
  await values.write(tenant, key, { ...client, redirectUri, expiresAt, trustedUntil } satisfies RegisteredClient, {
    ttlMs
  })
  return client
}

/** Many servers answer 200, or leave out when a secret ends, which RFC 7591 section 3.2.1 wants. */
async function completed(response: Response): Promise<Response> {
  const said: unknown = await response.json().catch(() => undefined)
  const isMade = response.status === 200 || response.status === 201
  const body = isMade && typeof said === 'object' ? { client_secret_expires_at: 0, ...said } : said
  const headers = { 'content-type': 'application/json' }
  return new Response(JSON.stringify(body ?? {}), { status: isMade ? 201 : response.status, headers })
}
