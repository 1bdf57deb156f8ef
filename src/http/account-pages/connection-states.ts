// What a person has connected in a tenant, without any secret.

import type { Tenant } from '../../config/snapshot.ts'
import type { Person } from '../../config/auth/upstream-auth.ts'
import { connectionStateOf } from '../../vault/connection-state.ts'
import type { Vault } from '../../vault/vault.ts'
import { isPersonal } from '../../vault/personal-views.ts'
import type { ShownConnection } from './connection-pages.ts'

export async function connectionsOf(
  { grants, uses }: Pick<Vault, 'grants' | 'uses'>,
  tenant: Tenant,
  person: Person
): Promise<ShownConnection[]> {
  const upstreams = [...tenant.upstreams.values()].filter(isPersonal)
  const given = await grants.shown(
    person,
    upstreams.map(({ name }) => name)
  )
  return await Promise.all(
    upstreams.map(async (definition): Promise<ShownConnection> => {
      const { auth, name } = definition
      const state = connectionStateOf(definition, given.get(name), await uses.last(person, name))
      return { ...state, ...(auth?.type === 'userSecret' && { label: auth.label, help: auth.help }) }
    })
  )
}
