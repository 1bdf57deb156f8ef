// The books of parked calls: calls that wait for input of a client which has gone away, and comes back with it or not. They know who may
// come back, for which round, and until when; what is parked and what was asked, others know.

import { GatewayError } from '../protocol/errors.ts'

/** What a client brings back to be let in, sealed by whoever gave it out. */
export interface Ticket {
  readonly park: string
  readonly round: number
}

export interface Place<T> {
  readonly id: string
  readonly parked: T
  /**
   * The client was told to come back: its round is open from now on, for this one time.
   * @returns the ticket, and until when it is good
   */
  open (): { readonly ticket: Ticket, readonly until: number }
  /** The round is taken back by whoever found that it cannot be taken yet. */
  close (): void
  /** Idempotent. Nobody can come back any more. */
  leave (): void
  /** The same; whoever comes back is told why. */
  lose (loss: Loss): void
}

/** Why a place was lost. */
export type Loss = keyof typeof losses

const losses = {
  late: 'is over: it has ended, or it waited too long for the answer.',
  newer: 'was given up: too many calls of this caller, or of all of its tenant, waited for input, and newer ones took its place.',
  endless: 'was given up: it has asked for input, and been given it, for an hour, which is the longest.',
  replaced: 'can be come back to no more: its endpoint, its upstream or its name was taken away or replaced.'
}

/** Its upstream has had the call, and may have done all or some of it. */
export function lossError (loss: Loss): GatewayError {
  return new GatewayError('invalid_state', `The call that this requestState belongs to ${losses[loss]} Whether it took effect is unknown: find out before you send it again without requestState.`, { data: { outcome: 'unknown' } })
}

export interface Parks<T> {
  /**
   * A place for one call, without a round that could be taken yet. An owner who has too many loses the one whose round has been open longest;
   * where a tenant has too many, or all have, that owner of the tenant does who has most. Nobody loses one to another tenant.
   * @param owner whoever may come back; opaque, and of one tenant
   * @throws GatewayError too_many: none of theirs is open
   */
  enter (owner: string, tenant: string, parked: T): Place<T>
  /**
   * Looks whether the ticket is good, and takes nothing.
   * @throws GatewayError invalid_state
   */
  find (owner: string, ticket: Ticket): Place<T>
  /** Calls whose round is open, and whose client cannot come back any more. */
  lose (loss: Loss, which: (parked: T) => boolean): void
  /** Everybody leaves. */
  end (): void
  readonly size: number
}

export interface ParksOptions<T> {
  /** The time of day. */
  readonly wall: { now (): number }
  readonly timer: (ms: number, run: () => void) => { close (): unknown, unref (): unknown }
  readonly newId: () => string
  /** The place was lost: a round was open for `lifetimeMs` and nobody came (`late`), or all is over. */
  readonly gone: (parked: T, loss: Loss) => void
  readonly lifetimeMs?: number
  /** From its first round on, however often it is answered. */
  readonly longestMs?: number
  readonly perOwner?: number
  readonly perTenant?: number
  readonly max?: number
}

interface Tenant<T> {
  readonly owners: Map<string, Owner<T>>
  places: number
}

interface Owner<T> {
  /** What was opened last comes last. */
  readonly entries: Set<Entry<T>>
}

interface Entry<T> {
  readonly place: Place<T>
  readonly owner: string
  /** Until it has taken long enough. */
  readonly ending: { close (): unknown }
  /** Gives its place back. */
  readonly forget: () => void
  round: number
  isOpen: boolean
  timer: { close (): unknown } | undefined
}

export const parkedMs = 10 * 60_000
/** A server that asks for ever holds a place, a connection and a call for ever, while its client answers. */
const longestParkedMs = 60 * 60_000
/** Of all owners together. Whoever comes back later than this is told less. */
const maxLost = 1_000

export function createParks<T> ({ wall, timer, newId, gone, lifetimeMs = parkedMs, longestMs = longestParkedMs, perOwner = 64, max = 10_000, perTenant = Math.ceil(max / 4) }: ParksOptions<T>): Parks<T> {
  const entries = new Map<string, Entry<T>>()
  const tenants = new Map<string, Tenant<T>>()
  /** Places that were lost, whose, and why; the newest ones, because clients may never ask. */
  const lost = new Map<string, { readonly owner: string, readonly loss: Loss }>()

  function leave (id: string): void {
    const entry = entries.get(id)
    if (entry === undefined || !entries.delete(id)) return
    entry.timer?.close()
    entry.ending.close()
    entry.forget()
  }

  function lose (id: string, loss: Loss): void {
    const entry = entries.get(id)
    if (entry === undefined) return
    leave(id)
    if (loss === 'late') return // Which is what everybody is told who is not known.
    lost.set(id, { owner: entry.owner, loss })
    const [oldest] = lost.keys()
    if (lost.size > maxLost && oldest !== undefined) lost.delete(oldest)
  }

  function end ({ id, parked }: Place<T>, loss: Loss): void {
    lose(id, loss)
    gone(parked, loss)
  }

  const openOf = ({ entries }: Owner<T>): Entry<T> | undefined => [...entries].find(({ isOpen }) => isOpen)

  function makeRoom (own: Owner<T>, tenant: Tenant<T>): void {
    const isFull = own.entries.size >= perOwner
    if (!isFull && tenant.places < perTenant && entries.size < max) return
    const losers = isFull ? [own] : [own, ...tenant.owners.values()].toSorted((a, b) => b.entries.size - a.entries.size)
    for (const loser of losers) {
      const oldest = openOf(loser)
      if (oldest !== undefined) return end(oldest.place, 'newer')
    }
    if (isFull) throw new GatewayError('too_many', `More than ${perOwner} calls of this caller were asked for input, and run. Retry when some of them have ended.`)
    throw new GatewayError('too_many', 'Too many calls wait for input. Retry later.')
  }

  return {
    enter (owner, tenantId, parked) {
      const tenant = tenants.get(tenantId) ?? { owners: new Map(), places: 0 }
      const own = tenant.owners.get(owner) ?? { entries: new Set() }
      makeRoom(own, tenant)
      const id = newId()
      const place: Place<T> = {
        id,
        parked,
        open () {
          entry.round++
          entry.isOpen = true
          if (own.entries.delete(entry)) own.entries.add(entry)
          entry.timer?.close()
          const waiting = timer(lifetimeMs, () => end(place, 'late'))
          waiting.unref()
          entry.timer = waiting
          return { ticket: { park: id, round: entry.round }, until: wall.now() + lifetimeMs }
        },
        close () {
          entry.isOpen = false
          entry.timer?.close()
        },
        leave: () => leave(id),
        lose: (loss) => lose(id, loss)
      }
      const ending = timer(longestMs, () => end(place, 'endless'))
      ending.unref()
      const forget = (): void => {
        tenant.places--
        own.entries.delete(entry)
        if (own.entries.size === 0) tenant.owners.delete(owner)
        if (tenant.places === 0) tenants.delete(tenantId)
      }
      const entry: Entry<T> = { place, owner, ending, forget, round: 0, isOpen: false, timer: undefined }
      entries.set(id, entry)
      own.entries.add(entry)
      tenant.places++
      tenant.owners.set(owner, own)
      tenants.set(tenantId, tenant)
      return place
    },
    find (owner, { park, round }) {
      const entry = entries.get(park)
      const known = lost.get(park)
      if (known?.owner === owner) throw lossError(known.loss)
      // The same for a place that never was, for one that was left, and for somebody else's.
      if (entry === undefined || entry.owner !== owner) throw lossError('late')
      if (!entry.isOpen || entry.round !== round) {
        throw new GatewayError('invalid_state', 'This requestState was used already, and each is good for one retry. The call goes on: use its newest one.')
      }
      return entry.place
    },
    lose (loss, which) {
      for (const { place, isOpen } of [...entries.values()]) if (isOpen && which(place.parked)) end(place, loss)
    },
    end () {
      for (const { place } of [...entries.values()]) end(place, 'late')
    },
    get size () { return entries.size }
  }
}
