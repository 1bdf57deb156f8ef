// How an MCP server that lets nobody in says how to sign in: its challenge, its metadata, those of its authorization
// server, and as which client the gateway would connect accounts there. Nobody is registered and nobody signs in.

import { createEgressGuard, type EgressLimits } from '../../egress/guard.ts'
import { createFetchFor } from '../../egress/fetch.ts'
import type { UserAuth } from '../../config/auth/upstream-auth.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import { cellText } from '../../observe/text-log.ts'
import { redirectUriOf } from '../../vault/oauth/account-client.ts'
import { checkAccountServer } from '../../vault/oauth/account-source.ts'
import { authorizationServerOf, protectedResource, readChallenge, serverMetadata } from '../../vault/oauth/discovery.ts'
import { Stopped, type Passed } from './stopped.ts'

/** The longest answer of the server or of its authorization server, in bytes. */
const maxMetadataBytes = 128 * 1024
export const hopMs = 10_000

interface SignInOptions {
  readonly definition: HttpDefinition
  /** The challenge of the answer with 401. */
  readonly challenge: string | undefined
  readonly egress: EgressLimits
  readonly publicUrl: string
  readonly passed: Passed
}

/** @throws Stopped at the first hop with which no account can be connected */
export async function signInHops({ definition, challenge, egress, publicUrl, passed }: SignInOptions): Promise<void> {
  const { tenant, url, publicHosts, auth } = definition
  const issuer = auth !== undefined && 'issuer' in auth ? auth.issuer : undefined
  const guard = createEgressGuard(egress)
  const fetchFor = createFetchFor({ maxBytes: maxMetadataBytes, timeoutMs: hopMs, guard })
  const fetch = fetchFor(tenant, [url, issuer], publicHosts)
  const { resourceMetadata, scopes } = await readChallenge(challenge)
  passed(
    'challenge',
    resourceMetadata === undefined ? '401, without resource metadata' : `leads to ${resourceMetadata}`
  )
  const resource = await at('metadata', () => protectedResource(new URL(url), resourceMetadata, fetch))
  passed('metadata', resource === undefined ? 'none' : `tokens come from ${named(resource.authorization_servers)}`)
  const server = await at('discovery', async () => {
    if (resource !== undefined) return await authorizationServerOf(resource, issuer, fetch)
    return await serverMetadata(issuer ?? new URL(url).origin, fetch).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'EGRESS_REFUSED') throw error
      throw new Stopped('key_needed', 'discovery', `It says nowhere how to sign in: ${error.message}.`, keyRemedy)
    })
  })
  const wanted = scopes ?? resource?.scopes_supported
  const { authorization_endpoint: page = 'no page', registration_endpoint: register } = server
  passed('discovery', `${server.issuer}: people sign in at ${page}${wanted ? `, for ${named(wanted)}` : ''}`)
  const user: UserAuth = auth?.type === 'user' ? auth : { type: 'user', scopes: [] }
  await at('registration', async () => checkAccountServer(server, user))
  if (user.clientId !== undefined) return passed('registration', `not needed: ${user.clientId} is configured`)
  if (server.client_id_metadata_document_supported === true && publicUrl.startsWith('https:'))
    return passed('registration', 'not needed: the authorization server reads the document of the gateway')
  if (register !== undefined)
    return passed('registration', `the gateway registers itself at ${register} when it is used`)
  throw new Stopped(
    'no_registration',
    'registration',
    `${server.issuer} registers no client by itself.`,
    `Register one there, with the redirect URI ${redirectUriOf(publicUrl, tenant)}, and name it as auth.clientId.`
  )
}

const keyRemedy =
  'Where it takes an API key, name it as a header, for all (headers) or for each person (auth.type userSecret).'

/** @throws Stopped for whatever was thrown */
async function at<T>(hop: 'metadata' | 'discovery' | 'registration', look: () => Promise<T>): Promise<T> {
  try {
    return await look()
  } catch (error) {
    if (error instanceof Stopped) throw error
    const { message, code } = error as NodeJS.ErrnoException
    // What is behind a name of a tenant-admin is told to nobody.
    const isInside = code === 'EGRESS_REFUSED'
    const problem = isInside ? 'It leads to an address that is not public.' : `It cannot be used: ${message}.`
    const remedy = isInside
      ? 'If that is meant, a platform-admin lists the range under egress.allow.'
      : 'Whoever runs the server mends it, or auth of the upstream says what it does not: issuer, clientId.'
    throw new Stopped(isInside ? 'not_public' : 'metadata_unusable', hop, problem.replace(/\.\.$/, '.'), remedy)
  }
}

const named = (list: unknown): string => (Array.isArray(list) ? list.slice(0, 20).map(cellText).join(', ') : 'nowhere')
