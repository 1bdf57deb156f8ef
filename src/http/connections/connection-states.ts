// What a person has connected in a tenant, without any secret.

import type { Tenant, UpstreamDefinition } from '../../config/snapshot.ts'
import type { Person } from '../../config/auth/upstream-auth.ts'
import type { Grants } from '../../vault/grants.ts'
import { isGrantFor, isPersonal } from '../../vault/personal-views.ts'
import type { ConnectionState } from './connection-pages.ts'

/** Upstreams for which each person gives something of their own. */
const personalUpstreamsOf = ({ upstreams }: Tenant): UpstreamDefinition[] => [...upstreams.values()].filter(isPersonal)

export async function connectionsOf(
  grants: Pick<Grants, 'get'>,
  tenant: Tenant,
  person: Person
): Promise<ConnectionState[]> {
  return await Promise.all(
    personalUpstreamsOf(tenant).map(async (definition): Promise<ConnectionState> => {
      const { name, auth } = definition
      const grant = await grants.get(person, name)
      const isHere = grant !== undefined && isGrantFor(definition, grant)
      const reason = isHere ? (grant.dead ?? (grant.missing && `it lacks ${grant.missing.join(', ')}`)) : undefined
      return {
        upstream: name,
        kind: auth?.type === 'user' ? 'account' : 'secret',
        state: !isHere ? 'not connected' : reason === undefined ? 'connected' : 'has to be connected again',
        reason,
        connectedAt: isHere ? new Date(grant.connectedAt).toISOString() : undefined,
        scopes: isHere ? grant.account?.scopes : undefined,
        ...(auth?.type === 'userSecret' && { label: auth.label, help: auth.help })
      }
    })
  )
}
