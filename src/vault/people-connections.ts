// What the people of a tenant have connected, for those who run the gateway: how each stands, and that it ends.

import type { Tenant, UpstreamDefinition } from '../config/snapshot.ts'
import type { UserAuth } from '../config/auth/upstream-auth.ts'
import type { HttpDefinition } from '../config/snapshot.ts'
import { type TenantId, upstreamName } from '../protocol/messages.ts'
import { connectionStateOf, type ConnectionState } from './connection-state.ts'
import type { Account } from './grant.ts'
import type { ListedGrant } from './grant-index.ts'
import type { GrantUses } from './grant-uses.ts'
import type { Grants } from './grants.ts'
import { isPersonal } from './personal-views.ts'

/** Of those that are revoked: removed together, and given back to their providers together. */
const revokedAtOnce = 20

interface ConnectionsOptions {
  readonly grants: Grants
  readonly uses: Pick<GrantUses, 'last'>
  /** Never rejects. */
  readonly giveBack: (definition: HttpDefinition, auth: UserAuth, account: Account) => Promise<void>
}

export interface PersonConnection extends Omit<ConnectionState, 'state'> {
  readonly state: Exclude<ConnectionState['state'], 'not connected'>
}

export type PeopleConnections = ReturnType<typeof createPeopleConnections>

export function createPeopleConnections({ grants, uses, giveBack }: ConnectionsOptions) {
  async function giveAllBack(accounts: ReadonlyArray<() => Promise<void>>): Promise<void> {
    for (let at = 0; at < accounts.length; at += revokedAtOnce)
      await Promise.all(accounts.slice(at, at + revokedAtOnce).map((each) => each()))
  }

  return {
    /** Of those that were connected last; some may be none any more. @throws GatewayError unavailable */
    list: (tenant: TenantId): Promise<readonly ListedGrant[]> => grants.listed(tenant),

    /** @returns undefined where there is nothing any more. @throws GatewayError unavailable */
    async stateOf(tenant: Tenant, { person, upstream }: ListedGrant): Promise<PersonConnection | undefined> {
      const grant = await grants.get(person, upstream)
      if (grant === undefined) return undefined
      const definition = personalOf(tenant, upstream)
      const shown = definition && connectionStateOf(definition, grant, await uses.last(person, upstream))
      if (shown !== undefined && shown.state !== 'not connected') return { ...shown, state: shown.state }
      // The upstream is configured no more, or nobody gives anything for it.
      const kind = grant.account === undefined ? 'secret' : 'account'
      return { upstream, kind, state: 'not in use', connectedAt: new Date(grant.connectedAt).toISOString() }
    },

    /**
     * They are of no use from then on, at no process. Accounts are given back to their providers afterwards.
     * @returns some at a time, those that were there. @throws GatewayError unavailable: then others may still be there
     */
    async *revoke(tenant: Tenant, isMeant: (connection: ListedGrant) => boolean): AsyncGenerator<ListedGrant[]> {
      const meant = (await grants.listed(tenant.id)).filter(isMeant)
      const accounts: Array<() => Promise<void>> = []
      try {
        for (let at = 0; at < meant.length; at += revokedAtOnce)
          yield (
            await Promise.all(meant.slice(at, at + revokedAtOnce).map((each) => removed(tenant, each, accounts)))
          ).flat()
      } finally {
        void giveAllBack(accounts)
      }
    }
  }

  async function removed(tenant: Tenant, connection: ListedGrant, accounts: Array<() => Promise<void>>) {
    const { person, upstream } = connection
    const account = (await grants.get(person, upstream))?.account
    if (!(await grants.remove(person, upstream))) return []
    const definition = personalOf(tenant, upstream)
    if (account !== undefined && definition?.type === 'http' && definition.auth?.type === 'user') {
      const { auth } = definition
      accounts.push(() => giveBack(definition, auth, account))
    }
    return [connection]
  }
}

function personalOf({ upstreams }: Tenant, name: string): UpstreamDefinition | undefined {
  const definition = upstreams.get(upstreamName(name))
  return definition !== undefined && isPersonal(definition) ? definition : undefined
}
