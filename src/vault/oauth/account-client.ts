// As which client the gateway connects accounts at an authorization server (2026-07-28 basic/authorization/
// client-registration): the one of the configuration, its metadata document, or one that it registers (RFC 7591).

import * as oauth from 'oauth4webapi'
import type { Fetch } from '../../auth/fetch.ts'
import type { TenantId } from '../../protocol/messages.ts'
import { connectionsPath, type UserAuth } from '../../config/auth/upstream-auth.ts'
import { grantClientKey } from '../../store/keys.ts'
import type { SealedValues } from '../sealed-values.ts'

/** In characters: the id of a registered client goes into URLs. */
const maxCredentialLength = 2_048

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
}

/**
 * A client that had registered itself is known there no more: the next who connects an account registers another.
 * @returns false where none had
 */
export async function forgetClient(
  values: SealedValues,
  tenant: TenantId,
  issuer: string,
  clientId: string
): Promise<boolean> {
  const key = grantClientKey(tenant, issuer)
  const ended = (client: unknown): RegisteredClient => ({ ...(client as RegisteredClient), expiresAt: 0 })
  // Another one may be there already.
  await values.change(tenant, key, (now) => ((now as RegisteredClient).id === clientId ? ended(now) : undefined))
  return (await values.read(tenant, key)) !== undefined
}

/** @throws ConnectRefused where none is registered and the server registers none; Error where it answers wrongly */
export async function clientAt({
  tenant,
  auth,
  server,
  values,
  fetch,
  publicUrl,
  wall
}: RegistrationOptions): Promise<AccountClient> {
  if (auth.clientId !== undefined) return { id: auth.clientId, secret: auth.clientSecret }
  if (server.client_id_metadata_document_supported === true && publicUrl.startsWith('https:'))
    return { id: clientDocumentUrl(publicUrl, tenant), method: 'none' }
  // Credentials are those of one issuer: another one never sees them.
  const key = grantClientKey(tenant, server.issuer)
  const redirectUri = redirectUriOf(publicUrl, tenant)
  const known = (await values.read(tenant, key)) as RegisteredClient | undefined
  if (known?.redirectUri === redirectUri && wall.now() < (known.expiresAt ?? Infinity)) return known
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
  await values.write(tenant, key, { ...client, redirectUri, expiresAt } satisfies RegisteredClient)
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
