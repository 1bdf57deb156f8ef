// Parked calls: calls at legacy upstreams that wait for the next request of a modern client. Says which client may come
// back, for which round and until when.

import { createFairEviction, type FairEvictionOptions } from '../limits/limits.ts'
import { GatewayError } from '../protocol/messages.ts'
import type { Timer } from '../time/clock.ts'

/** A round of a parked call, as a sealed request state names it. */
export interface RoundRef {
  readonly park: string
  readonly round: number
}

export interface ParkedSlot<T> {
  readonly id: string
  readonly parked: T
  /**
   * Opens the next round for one request of the client.
   * @returns the contents of the request state, and until when it is valid (epoch ms)
   */
  openRound(): { readonly ref: RoundRef; readonly until: number }
  /** Closes the round, because a request has taken it or it cannot be taken yet. */
  closeRound(): void
  /** Removes the parked call; a client that comes back gets the reason. Idempotent; `onLost` is not called. */
  remove(loss?: ParkedLoss): void
}

/** Why a client cannot come back. */
export type ParkedLoss = keyof typeof losses

const losses = {
  late: 'is over: it has ended, or it waited too long for the answer.',
  newer:
    'was given up: too many calls of this caller, or of all of its tenant, waited for input, and newer ones took ' +
    'its place.',
  endless: 'was given up: it has asked for input, and been given it, for an hour, which is the longest.',
  replaced: 'can be come back to no more: its endpoint, its upstream or its name was taken away or replaced.'
}

/** The error of a client that comes back too late: the upstream may have executed all or some of the call. */
export function lossError(loss: ParkedLoss): GatewayError {
  return new GatewayError(
    'invalid_state',
    `The call that this requestState belongs to ${losses[loss]} Whether it took effect is unknown: find out before ` +
      'you send it again without requestState.',
    { data: { outcome: 'unknown' } }
  )
}

export interface ParkedCallsOptions<T> {
  /** Must show the time of day, since the client is told when a round ends. */
  readonly clock: { now(): number; timer(ms: number, run: () => void): RoundTimer }
  readonly newId: () => string
  /** Called when a slot is removed, but not by `remove`: it expired, was evicted, or `lose` or `close` ended it. */
  readonly onLost: (parked: T, loss: ParkedLoss) => void
  readonly lifetimeMs?: number
  /** The longest time from `add` on, even if the client answers every round. */
  readonly longestMs?: number
  readonly limits?: Pick<FairEvictionOptions<T>, 'perOwner' | 'perTenant' | 'max'>
}

type RoundTimer = Pick<Timer, 'close' | 'unref'>

interface Entry<T> extends ParkedSlot<T> {
  readonly owner: string
  readonly tenant: string
  readonly endTimer: RoundTimer
  round: number
  isOpen: boolean
  roundTimer: RoundTimer | undefined
}

/** How long a client has for its answer to one round. */
const parkedMs = 10 * 60_000
/** The limit for all rounds of one call: a server that keeps asking would otherwise hold its slot without end. */
const longestParkedMs = 60 * 60_000
const defaultLimits = { perOwner: 64, perTenant: 2_500, max: 10_000 }
/** The most lost calls, of all owners, whose reason is remembered. */
const maxLost = 1_000

export function createParkedCalls<T>({
  clock,
  newId,
  onLost,
  lifetimeMs = parkedMs,
  longestMs = longestParkedMs,
  limits = defaultLimits
}: ParkedCallsOptions<T>) {
  const entries = new Map<string, Entry<T>>()
  const eviction = createFairEviction<Entry<T>>({ ...limits, withinTenant: true, evictable: ({ isOpen }) => isOpen })
  /** Lost calls by id, the newest last. */
  const lost = new Map<string, { readonly owner: string; readonly loss: ParkedLoss }>()

  const timer = (ms: number, run: () => void): RoundTimer => {
    const made = clock.timer(ms, run)
    made.unref()
    return made
  }

  function remove({ id, owner, tenant, endTimer }: Entry<T>, loss: ParkedLoss): void {
    const entry = entries.get(id)
    if (entry === undefined) return
    entries.delete(id)
    entry.roundTimer?.close()
    endTimer.close()
    eviction.delete(tenant, owner, entry)
    // An unknown id gets this reason anyway.
    if (loss === 'late') return
    lost.set(id, { owner, loss })
    const [oldest] = lost.keys()
    if (lost.size > maxLost && oldest !== undefined) lost.delete(oldest)
  }

  function lose(entry: Entry<T>, loss: ParkedLoss): void {
    remove(entry, loss)
    onLost(entry.parked, loss)
  }

  function makeSpace(tenant: string, owner: string): void {
    const candidates = eviction.evictFrom(tenant, owner)
    if (candidates === undefined) return
    for (const entry of candidates) if (entry.isOpen) return lose(entry, 'newer')
    throw new GatewayError(
      'too_many',
      candidates.size > 0
        ? `More than ${limits.perOwner} calls of this caller were asked for input, and run. Retry when some of them ` +
            'have ended.'
        : 'Too many calls wait for input. Retry later.'
    )
  }

  return {
    /**
     * Adds a call whose first round is not open yet. If the owner, its tenant or the process has too many, the call
     * whose open round has waited longest is lost: of the owner itself, or of the owner who has most in the tenant.
     * @param owner an opaque key of the caller that may come back
     * @throws GatewayError too_many if no call that may be evicted has an open round
     */
    add(owner: string, tenant: string, parked: T): ParkedSlot<T> {
      makeSpace(tenant, owner)
      const entry: Entry<T> = {
        id: newId(),
        parked,
        owner,
        tenant,
        endTimer: timer(longestMs, () => lose(entry, 'endless')),
        round: 0,
        isOpen: false,
        roundTimer: undefined,
        openRound() {
          entry.round++
          entry.isOpen = true
          if (entries.has(entry.id)) {
            // Added again, because entries are evicted in the order in which their rounds were opened.
            eviction.delete(tenant, owner, entry)
            eviction.add(tenant, owner, entry)
          }
          entry.roundTimer?.close()
          entry.roundTimer = timer(lifetimeMs, () => lose(entry, 'late'))
          return { ref: { park: entry.id, round: entry.round }, until: clock.now() + lifetimeMs }
        },
        closeRound() {
          entry.isOpen = false
          entry.roundTimer?.close()
        },
        remove: (loss = 'late') => remove(entry, loss)
      }
      entries.set(entry.id, entry)
      eviction.add(tenant, owner, entry)
      return entry
    },
    /** @returns the call, if the round is open and the owner's. @throws GatewayError invalid_state */
    find(owner: string, { park, round }: RoundRef): ParkedSlot<T> {
      const entry = entries.get(park)
      const known = lost.get(park)
      if (known?.owner === owner) throw lossError(known.loss)
      // The error is the same for an id that never existed, one that is gone and one of another owner.
      if (entry === undefined || entry.owner !== owner) throw lossError('late')
      if (entry.isOpen && entry.round === round) return entry
      throw new GatewayError(
        'invalid_state',
        'This requestState was used already, and each is good for one retry. The call goes on: use its newest one.'
      )
    },
    /** Ends the calls that `which` selects, if their round is open. */
    lose(loss: ParkedLoss, which: (parked: T) => boolean): void {
      for (const entry of [...entries.values()]) if (entry.isOpen && which(entry.parked)) lose(entry, loss)
    },
    close(): void {
      for (const entry of [...entries.values()]) lose(entry, 'late')
    },
    get size() {
      return entries.size
    }
  }
}
