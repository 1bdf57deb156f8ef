// The vault: the grants of people for upstreams, and the credentials that upstreams are sent.

import { createEgressGuard, type EgressLimits } from '../egress/guard.ts'
import { createFetchFor } from '../egress/fetch.ts'
import type { Snapshot, UpstreamDefinition } from '../config/snapshot.ts'
import type { Person } from '../config/auth/upstream-auth.ts'
import type { Log } from '../observe/log.ts'
import type { TenantId } from '../protocol/messages.ts'
import type { Store } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'
import type { Clock } from '../time/clock.ts'
import { ConnectRefused } from './oauth/account-client.ts'
import { createAccounts } from './oauth/connect-account.ts'
import { onceATurn } from '../time/turns.ts'
import { createPeopleConnections } from './people-connections.ts'
import { createCallerDefinitions } from './caller-definitions.ts'
import { createConnectPages } from './connect-pages.ts'
import { createCredentials } from './credentials.ts'
import { createGrantUses } from './grant-uses.ts'
import { createGrants, newGrantId } from './grants.ts'
import { createSharedTools } from './shared-tools.ts'
import { createPersonalViews, grantTargetOf, personalUpstreamsOf } from './personal-views.ts'
import { createSealedValues } from './sealed-values.ts'
import { createFirstIssuers } from './oauth/first-issuers.ts'
import { createSharedExchanges } from './oauth/shared-exchanges.ts'
import { createSigningKeys } from './signed/signing-keys.ts'
import { createTokenExchanges, type IdTokenOf } from './oauth/token-exchange.ts'
import { createVaultKeys, type Epochs } from './wrapping/vault-keys.ts'

/** The longest secret that a person may enter, in characters. */
const maxSecretLength = 8_192

type Hashes = Pick<ReadonlySet<string>, 'has'>

interface VaultOptions {
  readonly store: Store
  readonly sealer: Pick<Sealer, 'ready' | 'seal' | 'open'>
  /** The state that changes while the gateway runs; the address is known once the gateway listens. */
  readonly state: { readonly snapshot: Snapshot; readonly address: { readonly publicUrl: string } | undefined }
  readonly epochs: Epochs
  readonly login: { readonly idTokenOf: IdTokenOf }
  readonly clock: Clock
  /** The time of day. */
  readonly wall: Clock
  readonly log: Log
}

/** The longest answer of an authorization server, or of a document that an upstream names, in bytes. */
const maxBytes = 128 * 1024
const timeoutMs = 10_000

export type Vault = Awaited<ReturnType<typeof createVault>>

/** @param egress the limits for URLs that are not from the operator's configuration */
export async function createVault(options: VaultOptions, egress: EgressLimits) {
  const { state, store, sealer, epochs, login, clock, wall, log } = options
  const snapshot = (): Snapshot => state.snapshot
  const publicUrl = (): string => state.address?.publicUrl ?? ''
  const keys = createVaultKeys({ store, snapshot, epochs, clock, log })
  const values = createSealedValues(store, keys, log)
  void keys.settle(snapshot().tenants.keys())
  if (snapshot().vault !== undefined) void keys.check([...snapshot().tenants.keys()])
  const upstreamsOf = (tenant: TenantId): readonly string[] => {
    const known = snapshot().tenants.get(tenant)
    return known === undefined ? [] : personalUpstreamsOf(known)
  }
  const grants = await createGrants({ store, values, epochs, upstreamsOf, clock, log })
  const uses = createGrantUses({ store, wall, log })
  const fetch = createFetchFor({ maxBytes, timeoutMs, guard: createEgressGuard(egress) })
  const firstIssuers = createFirstIssuers(store, log)
  const pages = createConnectPages(sealer, publicUrl, wall)
  const accounts = createAccounts({ store, values, grants, servers: { fetch, firstIssuers }, publicUrl, wall, log })
  const signingKeys = createSigningKeys(values, (tenant) => epochs.epochOf(tenant), wall)
  const callers = createCallerDefinitions(clock)
  const exchanges = createTokenExchanges({
    callers,
    idTokenOf: login.idTokenOf,
    servers: { fetch, firstIssuers },
    shared: createSharedExchanges({ store, values, hasKeys: () => snapshot().vault !== undefined, clock }),
    clock,
    wall,
    log
  })
  const common = { servers: { fetch, firstIssuers }, grants, pages, clock, wall, log }
  const credentials = createCredentials({ ...common, signing: { keys: signingKeys, publicUrl }, exchanges })
  const views = createPersonalViews(grants, callers, exchanges)
  const sharedTools = await createSharedTools(store, log)
  return {
    connections: createPeopleConnections({ grants, uses, giveBack: accounts.giveBack }),
    store,
    sealer,
    accounts,
    grants,
    uses,
    pages,
    signingKeys,
    /** @throws ConnectRefused for what cannot be sent in a header or be a variable */
    async keepSecret(definition: UpstreamDefinition, person: Person, entered: string): Promise<void> {
      const secret = entered.trim()
      if (secret === '' || secret.length > maxSecretLength || !/^[\x20-\x7e\x80-\xff]+$/.test(secret))
        throw new ConnectRefused(
          `It must be one line of at most ${maxSecretLength} plain characters. Nothing was kept.`
        )
      const grant = { id: newGrantId(), target: grantTargetOf(definition), secret }
      await grants.put(person, definition.name, grant, wall.now())
    },
    /** Removes the grant of a person for an upstream, and revokes its tokens where the provider can do that. */
    async disconnect(definition: UpstreamDefinition, person: Person): Promise<void> {
      await accounts.disconnect(definition, person)
    },
    credentials: { ...credentials, used: uses.note, toolsOfOthers: sharedTools.of },
    views,
    /** Has the rooms drop connections and lists of definitions that are not among these, or whose grant has ended. */
    retainIn(rooms: ReadonlyArray<{ retain(hashes: Hashes): void }>, hashes: ReadonlySet<string>): void {
      const { tenants } = snapshot()
      // A removed tenant's name may be given to a new tenant, so its data are forgotten.
      for (const each of [grants, keys, callers, signingKeys]) each.retain(tenants)
      void keys.settle(tenants.keys())
      for (const each of [...rooms, credentials, exchanges, uses]) each.retain(views.held(hashes))
    },
    epochs,
    /** Registers listeners for changed grants of people: many may change at once. */
    onChange(retain: () => void, tells: ReadonlyArray<(person: string) => void>): void {
      const retainSoon = onceATurn(retain)
      callers.onForget(retainSoon)
      views.onChange((person) => {
        retainSoon()
        for (const tell of tells) tell(person)
      })
    },
    clock,
    wall,
    log,
    async close(): Promise<void> {
      callers.close()
      await sharedTools.close()
      await grants.close()
    }
  }
}
