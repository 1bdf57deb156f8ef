// What older servers list for clients that declare capabilities, where that is something else than for everybody: one view per upstream and
// profile, shared by whoever declares the same. A view that shows the same is not followed: it costs a connection once, and whenever the
// listing of everybody changes.

import { hash } from 'node:crypto'
import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { isModernRevision } from '../protocol/revisions.ts'
import type { Handshake, ListKind, Upstream } from '../protocol/seams.ts'
import { nobody } from '../upstream/exchange.ts'
import type { Listing } from '../upstream/listing.ts'
import type { Pool } from '../upstream/pool.ts'
import { changedKinds, sameServer } from './changes.ts'
import { createFollower } from './follower.ts'
import type { Follower } from './follower.ts'
import type { Concerns } from './listings.ts'
import { createFairShares } from './fair-shares.ts'
import type { FairShares } from './fair-shares.ts'
import { createPace } from './pace.ts'
import type { Pace, PaceClock } from './pace.ts'
import { isDeclared } from './profiles.ts'
import type { Profile } from './profiles.ts'

export interface ViewsOptions {
  readonly pool: Pool
  readonly clock: PaceClock
  readonly log: Log
  readonly handshake: Handshake
  readonly tick: () => number
  readonly tell: (hash: string, kinds: ReadonlySet<ListKind>, concerns: Concerns) => void
  /** What everybody sees of the upstream. */
  readonly base: (definition: UpstreamDefinition) => Follower | undefined
}

export interface Views {
  /** Makes the view where there can be one: undefined for upstreams that are not known yet or list the same for everybody, and where there are too many. */
  of (definition: UpstreamDefinition, profile: Profile): Follower | undefined
  /** Undefined where everybody's listing is this profile's too. */
  peek (definition: UpstreamDefinition, profile: Profile): Listing | undefined
  /** What is worth waiting for (`Follower.awaited`), of a view that was opened no longer ago than `waitMs`: nobody waits for a slow one again and again. */
  awaited (definition: UpstreamDefinition, profile: Profile, waitMs: number): Array<Promise<unknown>>
  doubt (definition: UpstreamDefinition, profile: Profile): void
  /** What differs from what everybody sees. */
  all (definition: UpstreamDefinition): Listing[]
  /** Another number after each change of any view of the upstream. */
  version (definition: UpstreamDefinition): number
  changed (definition: UpstreamDefinition, kind: ListKind): void
  /** What everybody sees changed. @returns whom that concerns */
  baseChanged (definition: UpstreamDefinition): Concerns
  retain (hashes: ReadonlySet<string>): void
  close (): void
}

interface View {
  readonly follower: Follower
  readonly key: string
  readonly by: string
  readonly openedAt: number
  /** Does it show what everybody sees? So it is taken to do until it was read. */
  same: boolean
  /** What its clients saw last. */
  told: Listing | undefined
}

interface Room {
  readonly tenant: string
  readonly views: Map<string, View>
  readonly shares: FairShares<View>
  /** All views of an upstream together are read no more often than what everybody sees. */
  readonly pace: Pace
  version: number
}

/** Per upstream: the others see what everybody sees. */
const maxViews = 16
/** Of those, made by one person. */
const maxViewsPerPerson = 12
/** Of all upstreams of a tenant: each may hold a process. */
const maxViewsPerTenant = 64
/** A view that nobody needed for so long makes room for another one of the same person, or of somebody who has fewer. */
const restMs = 60_000

export function createViews ({ pool, clock, log, handshake, tick, tell, base }: ViewsOptions): Views {
  const rooms = new Map<string, Room>()

  const shownBy = ({ same, follower }: View): Listing | undefined => same ? undefined : follower.peek()

  /** Says what became different for the clients of a view. */
  function review (definition: UpstreamDefinition, room: Room, key: string, view: View): void {
    const now = shownBy(view) ?? base(definition)?.peek()
    const kinds = changedKinds(view.told, now)
    const alike = sameServer(view.told, now)
    view.told = now
    if (kinds.size === 0 && alike) return
    room.version = tick()
    tell(definition.hash, kinds, (profile) => profile?.key === key && isDeclared(profile, definition))
  }

  /** Room for one more of this person? A view that rests is let go of for it. */
  function hasRoom ({ views, shares }: Room, by: string): boolean {
    const giver = shares.giver('', by)
    if (giver === undefined) return true
    // Nobody misses one that shows what everybody sees.
    const [oldest] = [...giver].toSorted((one, other) => Number(other.same) - Number(one.same) || one.follower.usedAt() - other.follower.usedAt())
    if (oldest === undefined || (!oldest.same && clock.now() - oldest.follower.usedAt() <= restMs)) return false
    oldest.follower.close()
    shares.delete('', oldest.by, oldest)
    views.delete(oldest.key)
    return true
  }

  function open (definition: UpstreamDefinition, room: Room, { key, capabilities, by }: Profile): View {
    const digest = hash('sha256', key, 'base64url')
    const scope = `listing:${definition.hash}:${digest}`
    const letGo = (): void => { pool.release(scope).catch((err: unknown) => log.warn({ err, upstream: definition.name }, 'a connection that is not needed did not close cleanly')) }
    // What it declares it cannot do: nobody is behind it who could be asked. It reads lists, and calls nothing.
    const connect = (): Promise<Upstream> => pool.acquire(definition, scope, { ...handshake, capabilities, era: 'legacy' }, {
      listChanged: (kind) => follower.changed(kind),
      notification () {},
      ask: nobody.ask,
      closed () { follower.lost() }
    }, 'view')
    const follower = createFollower({
      definition,
      pace: room.pace,
      connect,
      touch: () => pool.touch(scope),
      onChange () {
        if (!view.same) review(definition, room, key, view)
      },
      // What a server refuses today it will refuse tomorrow.
      retryMs: (failures) => failures < 2 ? 10_000 : failures < 3 ? 60_000 : 10 * 60_000,
      whenDown: 'the lists for clients that declare capabilities could not be read; they see what everybody sees',
      until: {
        isEnough (listing) {
          const everybodys = base(definition)?.peek()
          view.same = everybodys !== undefined && changedKinds(everybodys, listing).size === 0 && sameServer(everybodys, listing)
          review(definition, room, key, view)
          return view.same
        },
        letGo
      },
      tick,
      clock,
      log
    })
    const view: View = { follower, key, by, openedAt: clock.now(), same: true, told: base(definition)?.peek() }
    return view
  }

  const viewsOf = (tenant: string): number => {
    let count = 0
    for (const room of rooms.values()) if (room.tenant === tenant) count += room.views.size
    return count
  }

  const roomOf = ({ hash: id, tenant }: UpstreamDefinition): Room => {
    const room = rooms.get(id) ?? { tenant, views: new Map<string, View>(), shares: createFairShares<View>({ perOwner: maxViewsPerPerson, perTenant: maxViews, most: maxViews }), pace: inTurns(createPace(clock)), version: 0 }
    rooms.set(id, room)
    return room
  }

  function viewOf (definition: UpstreamDefinition, profile: Profile): View | undefined {
    const listing = base(definition)?.peek()
    // 2026-07-28 server/tools: lists must not depend on what a request declares.
    if (listing === undefined || isModernRevision(listing.revision) || !isDeclared(profile, definition)) return undefined
    const room = roomOf(definition)
    const known = room.views.get(profile.key)
    if (known !== undefined) return known
    if (!hasRoom(room, profile.by) || viewsOf(definition.tenant) >= maxViewsPerTenant) return undefined
    const view = open(definition, room, profile)
    room.views.set(profile.key, view)
    room.shares.add('', profile.by, view)
    room.version = tick()
    return view
  }

  return {
    of: (definition, profile) => viewOf(definition, profile)?.follower,
    awaited (definition, profile, waitMs) {
      const view = viewOf(definition, profile)
      const awaited = view?.follower.awaited() ?? []
      return view === undefined || clock.now() - view.openedAt > waitMs ? [] : awaited
    },
    doubt: (definition, profile) => rooms.get(definition.hash)?.views.get(profile.key)?.follower.doubt(),
    peek (definition, profile) {
      const view = isDeclared(profile, definition) ? rooms.get(definition.hash)?.views.get(profile.key) : undefined
      return view === undefined ? undefined : shownBy(view)
    },
    all: ({ hash: id }) => [...rooms.get(id)?.views.values() ?? []].flatMap((view) => shownBy(view) ?? []),
    version: ({ hash: id }) => rooms.get(id)?.version ?? 0,
    changed ({ hash: id }, kind) {
      for (const view of rooms.get(id)?.views.values() ?? []) if (!view.same) view.follower.changed(kind)
    },
    baseChanged (definition) {
      const views = rooms.get(definition.hash)?.views
      for (const view of views?.values() ?? []) {
        view.follower.doubt()
        if (shownBy(view) === undefined) view.told = base(definition)?.peek()
      }
      return (profile) => {
        const view = profile !== undefined && isDeclared(profile, definition) ? views?.get(profile.key) : undefined
        return view === undefined || shownBy(view) === undefined
      }
    },
    retain (hashes) {
      for (const [id, { views }] of rooms) {
        if (hashes.has(id)) continue
        for (const { follower } of views.values()) follower.close()
        rooms.delete(id)
      }
    },
    close () {
      for (const { views } of rooms.values()) for (const { follower } of views.values()) follower.close()
    }
  }
}

/** A pace for several readers: one after the other. */
function inTurns (pace: Pace): Pace {
  let last = Promise.resolve()
  return { next: (signal) => last = last.then(() => pace.next(signal)) }
}
