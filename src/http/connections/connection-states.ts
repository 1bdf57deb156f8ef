// What a person has connected in a tenant, without any secret.

import type { Tenant, UpstreamDefinition } from '../../config/snapshot.ts'
import type { Person } from '../../config/auth/upstream-auth.ts'
import { connectionStateOf } from '../../vault/connection-state.ts'
import type { Grants } from '../../vault/grants.ts'
import { isPersonal } from '../../vault/personal-views.ts'
import type { ShownConnection } from './connection-pages.ts'

/** Upstreams for which each person gives something of their own. */
const personalUpstreamsOf = ({ upstreams }: Tenant): UpstreamDefinition[] => [...upstreams.values()].filter(isPersonal)

export async function connectionsOf(
  grants: Pick<Grants, 'get'>,
  tenant: Tenant,
  person: Person
): Promise<ShownConnection[]> {
  return await Promise.all(
    personalUpstreamsOf(tenant).map(async (definition): Promise<ShownConnection> => {
      const { auth } = definition
      const state = connectionStateOf(definition, await grants.get(person, definition.name))
      return { ...state, ...(auth?.type === 'userSecret' && { label: auth.label, help: auth.help }) }
    })
  )
}
