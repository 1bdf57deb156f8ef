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
  /** The same, for the sake of newer calls; whoever comes back is told so. */
  lose (): void
}

export interface Parks<T> {
  /**
   * A place for one call, without a round that could be taken yet. An owner who has too many loses the one whose round has been open longest.
   * @param owner whoever may come back; opaque
   * @throws GatewayError too_many: none of theirs is open, or there are too many of all owners together
   */
  enter (owner: string, parked: T): Place<T>
  /**
   * Looks whether the ticket is good, and takes nothing.
   * @throws GatewayError invalid_state
   */
  find (owner: string, ticket: Ticket): Place<T>
  /** Everybody leaves. */
  end (): void
  readonly size: number
}

export interface ParksOptions<T> {
  /** The time of day. */
  readonly wall: { now (): number }
  readonly timer: (ms: number, run: () => void) => { close (): unknown, unref (): unknown }
  readonly newId: () => string
  /** A round was open for `lifetimeMs` and nobody came; a newer call needed the place; or all is over. The place has been left. */
  readonly gone: (parked: T) => void
  readonly lifetimeMs?: number
  readonly perOwner?: number
  readonly max?: number
}

interface Entry<T> {
  readonly place: Place<T>
  readonly owner: string
  round: number
  isOpen: boolean
  timer: { close (): unknown } | undefined
}

export const parkedMs = 10 * 60_000
/** Of all owners together. Whoever comes back later than this is told less. */
const maxLost = 1_000

export function createParks<T> ({ wall, timer, newId, gone, lifetimeMs = parkedMs, perOwner = 64, max = 10_000 }: ParksOptions<T>): Parks<T> {
  const entries = new Map<string, Entry<T>>()
  /** What was opened last comes last. */
  const owned = new Map<string, Set<Entry<T>>>()
  /** Places that were lost, and whose; the newest ones, because clients may never ask. */
  const lost = new Map<string, string>()

  function leave (id: string): void {
    const entry = entries.get(id)
    if (entry === undefined || !entries.delete(id)) return
    entry.timer?.close()
    const own = owned.get(entry.owner)
    own?.delete(entry)
    if (own?.size === 0) owned.delete(entry.owner)
  }

  function lose (id: string): void {
    const entry = entries.get(id)
    if (entry === undefined) return
    leave(id)
    lost.set(id, entry.owner)
    const [oldest] = lost.keys()
    if (lost.size > maxLost && oldest !== undefined) lost.delete(oldest)
  }

  function makeRoom (own: Iterable<Entry<T>>): void {
    for (const { place, isOpen } of own) {
      if (!isOpen) continue
      place.lose()
      return gone(place.parked)
    }
    throw new GatewayError('too_many', `More than ${perOwner} calls of this caller were asked for input, and run. Retry when some of them have ended.`)
  }

  return {
    enter (owner, parked) {
      const full = owned.get(owner)
      if (full !== undefined && full.size >= perOwner) makeRoom(full)
      if (entries.size >= max) throw new GatewayError('too_many', 'Too many calls wait for input. Retry later.')
      const id = newId()
      const place: Place<T> = {
        id,
        parked,
        open () {
          entry.round++
          entry.isOpen = true
          if (own.delete(entry)) own.add(entry)
          entry.timer?.close()
          const waiting = timer(lifetimeMs, () => {
            leave(id)
            gone(parked)
          })
          waiting.unref()
          entry.timer = waiting
          return { ticket: { park: id, round: entry.round }, until: wall.now() + lifetimeMs }
        },
        close () {
          entry.isOpen = false
          entry.timer?.close()
        },
        leave: () => leave(id),
        lose: () => lose(id)
      }
      const entry: Entry<T> = { place, owner, round: 0, isOpen: false, timer: undefined }
      const own = owned.get(owner) ?? new Set()
      entries.set(id, entry)
      owned.set(owner, own.add(entry))
      return place
    },
    find (owner, { park, round }) {
      const entry = entries.get(park)
      if (lost.get(park) === owner) {
        throw new GatewayError('invalid_state', 'The call that this requestState belongs to was given up: too many calls of this caller waited for input, and newer ones took its place. Send the request again without requestState.')
      }
      // The same for a place that never was, for one that was left, and for somebody else's.
      if (entry === undefined || entry.owner !== owner) {
        throw new GatewayError('invalid_state', 'The call that this requestState belongs to is over: it has ended, or it waited too long for the answer. Send the request again without requestState.')
      }
      if (!entry.isOpen || entry.round !== round) {
        throw new GatewayError('invalid_state', 'This requestState was used already, and each is good for one retry. Use the newest one, or send the request again without it.')
      }
      return entry.place
    },
    end () {
      for (const { place } of [...entries.values()]) {
        leave(place.id)
        gone(place.parked)
      }
    },
    get size () { return entries.size }
  }
}
