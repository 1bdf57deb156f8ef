// The state of a person's connection to an upstream, without any secret.

import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Grant } from './grant.ts'
import { isGrantFor } from './personal-views.ts'

export interface ConnectionState {
  readonly upstream: string
  readonly kind: 'account' | 'secret'
  /** `not in use`: the stored grant is for another server or of another kind than the configuration has now. */
  readonly state: 'connected' | 'not connected' | 'has to be connected again' | 'not in use'
  /** Why it has to be connected again, or is not in use. */
  readonly reason?: string | undefined
  /** ISO 8601 */
  readonly connectedAt?: string | undefined
  readonly scopes?: readonly string[] | undefined
  /** The name of the account at its provider. */
  readonly account?: string | undefined
  /** The host of the authorization server of the account. */
  readonly provider?: string | undefined
  /** ISO 8601, to the minute. */
  readonly lastUsedAt?: string | undefined
}

/**
 * @param grant of the person for this upstream; undefined: there is none
 * @param usedAt epoch ms
 */
export function connectionStateOf(
  definition: UpstreamDefinition,
  grant: Grant | undefined,
  usedAt?: number
): ConnectionState {
  const { name: upstream, auth } = definition
  const kind = auth?.type === 'user' ? 'account' : 'secret'
  if (grant === undefined) return { upstream, kind, state: 'not connected' }
  if (grant.unopened === true) return { upstream, kind, state: 'not in use', reason: unopened }
  const connectedAt = new Date(grant.connectedAt).toISOString()
  if (!isGrantFor(definition, grant))
    return { upstream, kind, state: 'not in use', reason: whyUnused(grant), connectedAt }
  const reason = grant.dead ?? (grant.missing && `it lacks a permission: ${grant.missing.join(', ')}`)
  return {
    upstream,
    kind,
    state: reason === undefined ? 'connected' : 'has to be connected again',
    reason,
    connectedAt,
    scopes: grant.account?.scopes,
    account: grant.account?.name,
    provider: grant.account && new URL(grant.account.issuer).host,
    // An earlier use may have been of another account.
    lastUsedAt: usedAt !== undefined && usedAt >= grant.connectedAt ? new Date(usedAt).toISOString() : undefined
  }
}

const unopened =
  'the vault cannot open the key of this tenant for now, and the log of the gateway says why; it can be disconnected'

function whyUnused({ target }: Grant): string {
  const place = URL.canParse(target) ? new URL(target).host : ''
  return `it was given for ${place === '' ? 'another program' : place}, or in another way, and is shown to nobody else`
}
