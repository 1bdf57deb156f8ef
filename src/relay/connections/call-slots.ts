// Slots: the connections of a caller to an upstream whose server requests do not say which call they belong to. One
// call at a time has a slot, for as long as it runs or is parked. Calls that follow each other get slot 0, so that what
// the server remembers between them stays. A call whose client stays away gives its slot up to a newer one. After a
// call that was given up, its slot is free when the server has answered it or has gone: until then a server request
// could not be told from one of the next call. A call that needs the slot does not wait for that: the connection is
// closed, and while its process ends, the call has another one.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { GatewayError } from '../../protocol/messages.ts'
import { type Clock, createDelay } from '../../time/clock.ts'

export interface CallSlot {
  readonly number: number
  /** The connection is open. @param namesCalls server requests on it name their call, so that calls need no slots */
  opened(namesCalls: boolean): void
  /**
   * The call waits for its client from now on; `undefined`: it waits no more.
   * @param giveUp ends the call when a newer one needs its slot
   */
  waits(giveUp: (() => void) | undefined): void
  /** Idempotent. @param abandoned the server has not answered the call */
  leave(abandoned?: AbandonedCalls): void
}

/** Calls that were given up and that the server may still work on. */
export interface AbandonedCalls {
  /** Resolves when the server has answered them, or cannot any more. */
  readonly answered: Promise<void>
  /**
   * Begins to close the connection, so that the slot gets another one at once.
   * @returns false where it is in use otherwise
   */
  readonly close: () => boolean
}

/** Of one caller at one upstream, over all of its conversations. */
const maxCallSlots = 8
/** Calls of one caller that are queued for a slot at one upstream. */
const maxQueuedCalls = 64
/** After this time without an answer a server is taken to have obeyed the cancellation. */
const abandonedMs = 10_000

/** All slots of one caller at one upstream. Each slot has an id, a symbol. */
interface CallerSlots {
  taken: number
  /** Calls that wait for their clients, the longest first: how they give up. */
  readonly waiting: Map<symbol, () => void>
  /** Slots with abandoned calls, the oldest first: how they are freed at once, and whether they can be. */
  readonly abandoned: Map<symbol, () => boolean>
  /** Calls that get the next free slots. */
  readonly queue: Array<() => void>
  /** Slots that are being freed for a queued call; other queued calls wait for running ones. */
  readonly leaving: Set<symbol>
}

export function createCallSlots(clock: Pick<Clock, 'timer'>) {
  /** The slots of each set of connections. `opening`: until the first connection is open. */
  const sets = new Map<string, { readonly busy: Set<number>; opening: PromiseWithResolvers<void> | undefined }>()
  const callers = new Map<string, CallerSlots>()
  /** By hash of the definition, once a connection was open. */
  const namesCallsByHash = new Map<string, boolean>()
  // Over stdio all calls share one pair of pipes.
  const namesCallsAt = ({ type, hash }: UpstreamDefinition): boolean | undefined =>
    type === 'stdio' ? false : namesCallsByHash.get(hash)

  const noSlot = (hash: string): CallSlot => ({
    number: 0,
    opened: (namesCalls) => void namesCallsByHash.set(hash, namesCalls),
    waits() {},
    leave() {}
  })

  function giveBack(key: string, caller: CallerSlots): void {
    const next = caller.queue.shift()
    if (next !== undefined) next()
    else if (--caller.taken === 0) callers.delete(key)
  }

  function slotOf(
    definition: UpstreamDefinition,
    { setKey, callerKey }: { readonly setKey: string; readonly callerKey: string },
    caller: CallerSlots
  ): CallSlot {
    const set = sets.get(setKey) ?? { busy: new Set<number>(), opening: undefined }
    sets.set(setKey, set)
    let number = 0
    while (set.busy.has(number)) number++
    set.busy.add(number)
    const id = Symbol('slot')
    const opening = (set.opening ??= Promise.withResolvers<void>())
    let left = false
    const free = (): void => {
      set.busy.delete(number)
      if (set.busy.size === 0) sets.delete(setKey)
      else if (set.opening === opening && namesCallsAt(definition) === undefined) set.opening = undefined
      caller.leaving.delete(id)
      giveBack(callerKey, caller)
    }
    const leave = (abandoned?: AbandonedCalls): void => {
      opening.resolve()
      if (left) return
      left = true
      caller.waiting.delete(id)
      if (abandoned === undefined) free()
      else whenAnswered(clock, caller, id, abandoned, free)
    }
    return {
      number,
      opened(namesCalls) {
        namesCallsByHash.set(definition.hash, namesCalls)
        opening.resolve()
        // After a reload that forgot it, nobody waits for an opening that is over.
        if (set.opening === opening) set.opening = undefined
        if (namesCalls) leave()
      },
      waits(giveUp) {
        caller.waiting.delete(id)
        if (giveUp === undefined || left) return
        caller.waiting.set(id, giveUp)
        freeIfStuck(caller)
      },
      leave
    }
  }

  return {
    /**
     * The first free slot. Where all are taken: one with abandoned calls, whose connection is closed; else that of the
     * call which has waited longest for its client, which gives up; else the next one that a running call leaves.
     * @param caller whose slots at this upstream are counted together
     * @param scope the set of connections; opaque
     * @throws GatewayError too_many: none of the calls waits for its client, and too many calls are queued
     */
    async enter(definition: UpstreamDefinition, caller: string, scope: string): Promise<CallSlot> {
      const { name, hash } = definition
      const keys = { setKey: `${hash}\n${scope}`, callerKey: `${hash}\n${caller}` }
      // Two calls that come at once do not open two connections to a server that can tell their calls apart.
      for (let set = sets.get(keys.setKey); namesCallsAt(definition) === undefined && set?.opening !== undefined;) {
        await set.opening.promise
        set = sets.get(keys.setKey)
      }
      if (namesCallsAt(definition) === true) return noSlot(hash)
      const own =
        callers.get(keys.callerKey) ??
        ({ taken: 0, waiting: new Map(), abandoned: new Map(), queue: [], leaving: new Set() } satisfies CallerSlots)
      callers.set(keys.callerKey, own)
      if (own.taken < maxCallSlots) {
        own.taken++
        return slotOf(definition, keys, own)
      }
      await queued(own, name)
      // Meanwhile the server may have been replaced.
      if (namesCallsAt(definition) !== true) return slotOf(definition, keys, own)
      giveBack(keys.callerKey, own)
      return noSlot(hash)
    },
    /** After a reload: forgets what was learnt of connections to other definitions. */
    retain(hashes: Pick<ReadonlySet<string>, 'has'>) {
      for (const hash of namesCallsByHash.keys()) if (!hashes.has(hash)) namesCallsByHash.delete(hash)
    }
  }
}

/** Resolves when a slot was left that counts as the new call's from then on. @throws GatewayError too_many */
function queued(caller: CallerSlots, upstream: string): Promise<void> {
  const { queue, leaving } = caller
  const { promise, resolve } = Promise.withResolvers<void>()
  queue.push(resolve)
  freeOne(caller)
  if (queue.length - leaving.size <= maxQueuedCalls) return promise
  queue.pop()
  const message =
    `${maxCallSlots} calls of this caller run at upstream ${upstream}, and ${maxQueuedCalls} wait for them. ` +
    'Retry when some have ended.'
  throw new GatewayError('too_many', message, { data: { upstream } })
}

/** Frees a slot on which no call runs, where there is one. */
function freeOne({ waiting, abandoned, leaving }: CallerSlots): void {
  for (const freeNow of abandoned.values()) if (freeNow()) return
  const [oldest] = waiting
  if (oldest === undefined) return
  const [id, giveUp] = oldest
  waiting.delete(id)
  leaving.add(id)
  giveUp()
}

/** Queued calls would wait for ever where all calls in slots wait for their clients. */
function freeIfStuck(caller: CallerSlots): void {
  const { queue, leaving, waiting, abandoned, taken } = caller
  if (queue.length > leaving.size && waiting.size + abandoned.size + leaving.size >= taken) freeOne(caller)
}

/** Frees a slot when no server request of the abandoned calls can come any more: at once where a call needs it. */
function whenAnswered(
  clock: Pick<Clock, 'timer'>,
  caller: CallerSlots,
  id: symbol,
  { answered, close }: AbandonedCalls,
  free: () => void
): void {
  const delay = createDelay(clock)
  let over = false
  const end = (): void => {
    if (over) return
    over = true
    delay.close()
    caller.abandoned.delete(id)
    free()
  }
  const freeNow = (): boolean => {
    if (!close()) return false
    end()
    return true
  }
  const wasPromised = caller.leaving.delete(id)
  if (caller.queue.length > caller.leaving.size && freeNow()) return
  caller.abandoned.set(id, freeNow)
  delay.start(abandonedMs, end)
  void answered.then(end)
  // The call that it was promised to gets another one.
  if (wasPromised) freeOne(caller)
}
