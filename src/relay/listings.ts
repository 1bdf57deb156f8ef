// The listings of all upstreams: for each the one that everybody sees, which is read without declaring anything, and views of it, where a
// server lists something else for clients that declare what they can do.

import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import type { Notification } from '../protocol/messages.ts'
import type { Handshake, ListKind, Upstream } from '../protocol/seams.ts'
import { listingKey } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import { nobody } from '../upstream/exchange.ts'
import type { Listing } from '../upstream/listing.ts'
import type { Pool } from '../upstream/pool.ts'
import { createFollower } from './follower.ts'
import type { Follower } from './follower.ts'
import type { PaceClock } from './pace.ts'
import type { Profile } from './profiles.ts'
import { createViews } from './views.ts'
import { withinMs } from './wanted.ts'

export interface ListingsOptions {
  readonly pool: Pool
  readonly store: Store
  readonly clock: PaceClock
  readonly log: Log
  readonly handshake: Handshake
  /** The watching connection of a shared upstream is the one that sessions use: what it says and how it ends concerns them too. */
  readonly onSharedNotification: (definition: UpstreamDefinition, scope: string, notification: Notification) => void
  readonly onLost: (definition: UpstreamDefinition, scope: string) => void
}

/** Whom a change concerns: those who declare this. */
export type Concerns = (profile: Profile | undefined) => boolean

/** Everywhere: `profile` is what the client declares, undefined for one that declares nothing. */
export interface Listings {
  /** The listing that lists and routes are made of; undefined while the upstream is unknown or has been down for several tries. */
  peek (definition: UpstreamDefinition, profile?: Profile): Listing | undefined
  /** What anybody sees. */
  all (definition: UpstreamDefinition): Listing[]
  /** Another number after each change of what `peek` says. */
  version (definition: UpstreamDefinition, profile?: Profile): number
  /** Another number after each change of any of them. */
  tick (): number
  /** Does the upstream list something else for this profile than for everybody? */
  differs (definition: UpstreamDefinition, profile: Profile): boolean
  /** Notes interest, so that the watching connection is opened or kept, and lists that are older than their time are read again. Cheap. */
  use (definition: UpstreamDefinition, profile?: Profile): void
  /** Resolves when each is known or has failed once, and what is older than its time was read again; at the latest after `waitMs`. Never rejects. */
  settled (definitions: readonly UpstreamDefinition[], waitMs: number, profile?: Profile): Promise<void>
  /** The same for the views of upstreams that are known: what others are on their way is not waited for. */
  viewed (definitions: readonly UpstreamDefinition[], waitMs: number, profile: Profile): Promise<void>
  /** Reads again, where it can be of use, what was not read just now. Resolves as `settled`. */
  reread (definitions: readonly UpstreamDefinition[], waitMs: number): Promise<void>
  /**
   * The watching connection: a modern server, or one of isolation `shared`, is also called on it.
   * @throws GatewayError upstream_unavailable, too_many
   */
  connect (definition: UpstreamDefinition): Promise<Upstream>
  /** A connection to the upstream reported a change. */
  changed (definition: UpstreamDefinition, kind: ListKind): void
  /** The connection of one session reported one: those who declare the same may see something else than everybody. */
  doubt (definition: UpstreamDefinition, profile: Profile): void
  onChange (listener: (hash: string, kinds: ReadonlySet<ListKind>, concerns: Concerns) => void): void
  /** Forgets what no configuration names any more. Calls that began with an older one do not bring it back. */
  retain (hashes: ReadonlySet<string>): void
  close (): void
}

/** The scope of the connection that a listing is read from. */
export const listingScope = (definition: UpstreamDefinition): string =>
  definition.isolation === 'shared' ? `shared:${definition.hash}` : `listing:${definition.hash}`

export function createListings ({ pool, store, clock, log, handshake, onSharedNotification, onLost }: ListingsOptions): Listings {
  const followers = new Map<string, Follower>()
  const listeners: Array<(hash: string, kinds: ReadonlySet<ListKind>, concerns: Concerns) => void> = []
  let closed = false
  /** What the configuration names; undefined until it was changed for the first time. */
  let wanted: ReadonlySet<string> | undefined
  let ticks = 0
  const tick = (): number => ++ticks
  const tell = (hash: string, kinds: ReadonlySet<ListKind>, concerns: Concerns): void => {
    if (kinds.size > 0) for (const listener of listeners) listener(hash, kinds, concerns)
  }

  const views = createViews({ pool, clock, log, handshake, tick, tell, base: ({ hash }) => followers.get(hash) })

  /** Undefined for what is no longer configured. */
  function followerOf (definition: UpstreamDefinition): Follower | undefined {
    let follower = followers.get(definition.hash)
    if (follower === undefined && !closed && wanted?.has(definition.hash) !== false) {
      follower = createFollower({
        definition,
        kept: { store, key: listingKey(definition.hash) },
        connect: () => connect(definition),
        touch: () => pool.touch(listingScope(definition)),
        onChange (kinds) {
          const concerns = views.baseChanged(definition)
          tell(definition.hash, kinds, concerns)
        },
        retryMs: (failures) => Math.min(60_000, 1_000 * 2 ** Math.min(failures, 6)),
        whenDown: 'upstream is down; it is left out of the lists and tried again',
        tick,
        clock,
        log
      })
      followers.set(definition.hash, follower)
    }
    return follower
  }

  // Where a server speaks both eras, its lists are read in the newer one, which has more to say.
  const connect = (definition: UpstreamDefinition): Promise<Upstream> => pool.acquire(definition, listingScope(definition), { ...handshake, era: 'modern' }, {
    listChanged: (kind) => changed(definition, kind),
    notification (notification) {
      if (definition.isolation === 'shared') onSharedNotification(definition, listingScope(definition), notification)
    },
    ask: nobody.ask, // It declares nothing that could be asked.
    closed (reason) {
      log.warn({ upstream: definition.name, tenant: definition.tenant, reason: reason.message }, 'upstream connection ended')
      followers.get(definition.hash)?.lost()
      if (definition.isolation === 'shared') onLost(definition, listingScope(definition))
    }
  }, 'listing')

  function changed (definition: UpstreamDefinition, kind: ListKind): void {
    followerOf(definition)?.changed(kind)
    views.changed(definition, kind)
  }

  return {
    peek: (definition, profile) => (profile === undefined ? undefined : views.peek(definition, profile)) ?? followers.get(definition.hash)?.peek(),
    all: (definition) => [followers.get(definition.hash)?.peek() ?? [], views.all(definition)].flat(),
    version: (definition, profile) => Math.max(followers.get(definition.hash)?.version() ?? 0, profile === undefined ? 0 : views.version(definition)),
    tick: () => ticks,
    differs: (definition, profile) => views.peek(definition, profile) !== undefined,
    use (definition, profile) {
      followerOf(definition)?.use()
      if (profile !== undefined) views.of(definition, profile)?.use()
    },
    async settled (definitions, waitMs, profile) {
      await withinMs(definitions.flatMap((definition) => {
        const awaited = followerOf(definition)?.awaited() ?? []
        if (profile === undefined) return awaited
        const ofView = (): Array<Promise<unknown>> => views.awaited(definition, profile, waitMs)
        // Whether there are views of it is not known before.
        return awaited.length === 0 ? ofView() : [Promise.all(awaited).then(() => Promise.all(ofView()))]
      }), waitMs)
    },
    async viewed (definitions, waitMs, profile) {
      await withinMs(definitions.flatMap((definition) => views.awaited(definition, profile, waitMs)), waitMs)
    },
    async reread (definitions, waitMs) {
      await withinMs(definitions.flatMap((definition) => followers.get(definition.hash)?.reread() ?? []), waitMs)
    },
    connect,
    changed,
    doubt: (definition, profile) => views.doubt(definition, profile),
    onChange (listener) {
      listeners.push(listener)
    },
    retain (hashes) {
      wanted = hashes
      tick()
      for (const [hash, follower] of followers) {
        if (hashes.has(hash)) continue
        followers.delete(hash)
        follower.close()
      }
      views.retain(hashes)
    },
    close () {
      closed = true
      for (const follower of followers.values()) follower.close()
      views.close()
    }
  }
}
