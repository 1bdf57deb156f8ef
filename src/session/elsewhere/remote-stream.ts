// The stream of a session at another process. What it cannot be told now, while the store is away, it is told later, in
// order; what it never hears goes to the stream that takes its place.

import { holdMemory, type MemoryShare } from '../../limits/memory.ts'
import type { JsonObject } from '../../protocol/messages.ts'
import { pause, type Clock } from '../../time/clock.ts'
import type { SessionStream } from '../live-sessions.ts'
import { createUndelivered, type Undelivered } from './undelivered.ts'

/** `seq` grows by one from message to message `of` one stream: what comes twice is dropped. */
export type Delivery =
  | { readonly message: JsonObject; readonly seq?: number; readonly of?: string }
  | { readonly finish: true; readonly name?: string | undefined }

/** Announced with each heartbeat, every 15 seconds, while its client is connected. */
const announcedMs = 40_000
/** Between two attempts while its process hears nothing. */
const retryMs = 100
/** For so long: after it the process counts as gone. */
const maxRetryMs = 15_000

export interface RemoteStreamOptions {
  readonly at: string
  /** What its process calls it. */
  readonly name?: string | undefined
  /** Unique. */
  readonly id: string
  /** @returns false where nobody heard it. Never rejects */
  readonly deliver: (said: Delivery) => Promise<boolean>
  /** Whether this process stops: the client goes on listening there, for the next home. */
  readonly isClosing: () => boolean
  /** Of the session, while it is in use here. */
  readonly memory: () => MemoryShare | undefined
  /** Its process hears again. */
  readonly onHeard: () => void
  readonly clock: Clock
}

export type RemoteStream = ReturnType<typeof openRemoteStream>

/** @param leftOut is told of messages for which there is no room */
export function openRemoteStream(
  { at, name: firstName, id, deliver, isClosing, memory, onHeard, clock }: RemoteStreamOptions,
  leftOut: () => void
) {
  let unsaid: Undelivered | undefined
  let attachedUntil = clock.now() + announcedMs
  let name = firstName
  let over = false
  let isReached = true
  /** While it is being said. */
  let saying: PromiseWithResolvers<void> | undefined
  let heir: ((message: JsonObject) => void) | undefined

  const hasHeir = (): boolean => heir !== undefined

  async function say(rest: Undelivered): Promise<void> {
    if (saying !== undefined) return
    const end = (saying = Promise.withResolvers())
    let until = clock.now() + maxRetryMs
    let oneByOne = false
    while (!hasHeir() && rest.size > 0 && clock.now() < until) {
      const batch = rest.all().slice(0, oneByOne ? 1 : undefined)
      const heard = await Promise.all(batch.map(({ message, seq }) => deliver({ message, seq, of: id })))
      const failed = heard.indexOf(false)
      const last = failed === -1 ? batch.at(-1) : batch[failed - 1]
      if (last !== undefined) rest.dropTo(last.seq)
      const wasReached = isReached
      // There may be no room for all at once.
      isReached = heard.includes(true)
      if (isReached) until = clock.now() + maxRetryMs
      if (isReached && !wasReached && !over) onHeard()
      if (failed === -1) continue
      oneByOne = true
      if (!isReached && !hasHeir()) await pause(clock, retryMs)
    }
    saying = undefined
    if (rest.size > 0) over = true
    giveRest()
    end.resolve()
  }

  function giveRest(): void {
    if (heir !== undefined && saying === undefined) for (const message of unsaid?.takeAll() ?? []) heir(message)
  }

  return {
    at,
    send(message) {
      const share = memory()
      if (share === undefined) return
      unsaid ??= createUndelivered(holdMemory(share))
      if (unsaid.add(message as JsonObject)) leftOut()
      if (!over) void say(unsaid)
    },
    finish() {
      if (!over && !isClosing()) void deliver({ finish: true, name })
      over = true
    },
    heard(attached: boolean, newest: string | undefined): void {
      name = newest
      attachedUntil = attached ? clock.now() + announcedMs : 0
    },
    isAttached: () => !over && isReached && clock.now() < attachedUntil,
    leaveRestTo(next: (message: JsonObject) => void): Promise<void> | undefined {
      heir = next
      giveRest()
      return saying?.promise
    },
    get over() {
      return over
    }
  } satisfies SessionStream & Record<string, unknown>
}

/** @returns whether a delivery is new at this process: who could not know that it had come sends it again */
export function createDeliveryGuard(known: {
  get(key: string): string | undefined
  set(key: string, seen: string): unknown
}): (key: string, delivery: Delivery) => boolean {
  return (key, delivery) => {
    if (!('message' in delivery) || delivery.seq === undefined) return true
    const [of, last] = known.get(key)?.split(' ') ?? []
    if (of === delivery.of && delivery.seq <= Number(last)) return false
    known.set(key, `${delivery.of} ${delivery.seq}`)
    return true
  }
}
