// The connections of the people of a tenant, for administrators: lists them, tells their state, and revokes them.

import type { Tenant, UpstreamDefinition } from '../config/snapshot.ts'
import { type TenantId, upstreamName } from '../protocol/messages.ts'
import { connectionStateOf, type ConnectionState } from './connection-state.ts'
import type { Account } from './grant.ts'
import type { EndedPart } from './stored/grant-ends.ts'
import type { ListedGrant } from './stored/grant-index.ts'
import type { GrantUses } from './grant-uses.ts'
import type { Grants } from './grants.ts'
import { isPersonal } from './personal-views.ts'

/** How many revoked connections are removed, and their tokens revoked at the providers, at once. */
const revokedAtOnce = 20

interface ConnectionsOptions {
  readonly grants: Grants
  readonly uses: Pick<GrantUses, 'last'>
  /**
   * Revokes the tokens of a grant at their provider; the definition is undefined if the upstream is no longer
   * configured. Never rejects.
   */
  readonly giveBack: (
    definition: UpstreamDefinition | undefined,
    connection: ListedGrant,
    account: Account
  ) => Promise<void>
}

/** Selects connections of a tenant; without members, all of them. */
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

    /** @returns undefined if there is no grant any more. @throws GatewayError unavailable */
    async stateOf(tenant: Tenant, { person, upstream }: ListedGrant): Promise<PersonConnection | undefined> {
      const grant = (await grants.shown(person, [upstream])).get(upstream)
      if (grant === undefined) return undefined
      const definition = personalOf(tenant, upstream)
      const shown = definition && connectionStateOf(definition, grant, await uses.last(person, upstream))
      if (shown !== undefined && shown.state !== 'not connected') return { ...shown, state: shown.state }
      // The upstream is no longer configured, or no longer needs a grant.
      const kind = grant.account === undefined ? 'secret' : 'account'
      const connectedAt = grant.unopened === true ? undefined : new Date(grant.connectedAt).toISOString()
      return { upstream, kind, state: 'not in use', connectedAt }
    },

    /**
     * Revokes all grants of a part of a tenant at every process, whether or not the index lists them.
     * @returns false if no further revocation can be stored for the tenant
     * @throws GatewayError unavailable
     */
    endAll: grants.endAll,

    /**
     * Revokes the selected grants at every process; afterwards the tokens of accounts are revoked at their providers.
     * @returns the revoked grants, some at a time. @throws GatewayError unavailable: some grants may remain then
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

  /** Finds the selected connections; for one person also unlisted ones, at all configured upstreams. */
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
    // Read raw, because the grant may have been revoked a moment ago.
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
