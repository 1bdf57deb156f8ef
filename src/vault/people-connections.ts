// What the people of a tenant have connected, for those who run the gateway: how each stands, and that it ends.

import type { Tenant, UpstreamDefinition } from '../config/snapshot.ts'
import { type TenantId, upstreamName } from '../protocol/messages.ts'
import { connectionStateOf, type ConnectionState } from './connection-state.ts'
import type { Account } from './grant.ts'
import type { EndedPart } from './stored/grant-ends.ts'
import type { ListedGrant } from './stored/grant-index.ts'
import type { GrantUses } from './grant-uses.ts'
import type { Grants } from './grants.ts'
import { isPersonal } from './personal-views.ts'

/** How many revoked connections are removed, and given back to their providers, at once. */
const revokedAtOnce = 20

interface ConnectionsOptions {
  readonly grants: Grants
  readonly uses: Pick<GrantUses, 'last'>
  /**
   * Gives the tokens of a grant back to their provider; without a definition where the configuration has the upstream
   * no more. Never rejects.
   */
  readonly giveBack: (
    definition: UpstreamDefinition | undefined,
    connection: ListedGrant,
    account: Account
  ) => Promise<void>
}

/** Selects connections of a tenant: all of them where nothing is said. */
export interface WantedConnections extends EndedPart {
  readonly subject?: string | undefined
}

export const isMeantBy =
  ({ issuer, subject, upstream }: WantedConnections) =>
  (each: ListedGrant): boolean =>
    (issuer === undefined || each.person.issuer === issuer) &&
    (subject === undefined || each.person.subject === subject) &&
    (upstream === undefined || each.upstream === upstream)

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
    /** Lists the connections that were made last; some may have ended since. @throws GatewayError unavailable */
    list: (tenant: TenantId): Promise<readonly ListedGrant[]> => grants.listed(tenant),

    /** @returns undefined where there is nothing any more. @throws GatewayError unavailable */
    async stateOf(tenant: Tenant, { person, upstream }: ListedGrant): Promise<PersonConnection | undefined> {
      const grant = (await grants.shown(person, [upstream])).get(upstream)
      if (grant === undefined) return undefined
      const definition = personalOf(tenant, upstream)
      const shown = definition && connectionStateOf(definition, grant, await uses.last(person, upstream))
      if (shown !== undefined && shown.state !== 'not connected') return { ...shown, state: shown.state }
      // The upstream is configured no more, or nobody gives anything for it.
      const kind = grant.account === undefined ? 'secret' : 'account'
      const connectedAt = grant.unopened === true ? undefined : new Date(grant.connectedAt).toISOString()
      return { upstream, kind, state: 'not in use', connectedAt }
    },

    /**
     * What people have given is of no use from then on, at no process, whether or not it is listed.
     * @returns false where no more parts of a tenant can be kept of which that is known
     * @throws GatewayError unavailable
     */
    endAll: grants.endAll,

    /**
     * They are of no use from then on, at no process. Accounts are given back to their providers afterwards.
     * @returns some at a time, those that were there. @throws GatewayError unavailable: then others may still be there
     */
    async *revoke(tenant: Tenant, wanted: WantedConnections): AsyncGenerator<ListedGrant[]> {
      const meant = await connectionsMeant(tenant, wanted)
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

  /** Finds the selected connections; of one person also those that are not listed, at the upstreams of now. */
  async function connectionsMeant(tenant: Tenant, wanted: WantedConnections): Promise<readonly ListedGrant[]> {
    const listed = await grants.listed(tenant.id)
    const { issuer, subject } = wanted
    const person = issuer === undefined || subject === undefined ? undefined : { tenant: tenant.id, issuer, subject }
    const others = person === undefined ? [] : [...tenant.upstreams.keys()].map((upstream) => ({ person, upstream }))
    const isListed = new Set(
      person === undefined ? [] : listed.filter(isMeantBy(wanted)).map(({ upstream }) => upstream)
    )
    return [...listed, ...others.filter(({ upstream }) => !isListed.has(upstream))].filter(isMeantBy(wanted))
  }

  async function removed(tenant: Tenant, connection: ListedGrant, accounts: Array<() => Promise<void>>) {
    const { person, upstream } = connection
    // Its end may have been ordered a moment ago.
    const account = (await grants.raw(person, upstream))?.account
    if (!(await grants.remove(person, upstream))) return []
    if (account !== undefined) accounts.push(() => giveBack(personalOf(tenant, upstream), connection, account))
    return [connection]
  }
}

function personalOf({ upstreams }: Tenant, name: string): UpstreamDefinition | undefined {
  const definition = upstreams.get(upstreamName(name))
  return definition !== undefined && isPersonal(definition) ? definition : undefined
}
