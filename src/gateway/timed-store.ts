// A store whose answers are timed: how long each call took, and whether it failed.

import type { Store } from '../store/port.ts'

export interface StoreMeter {
  /** @param failure undefined: it was answered */
  storeAsked(seconds: number, operation: string, failure: string | undefined): void
}

type Operation = (...args: never[]) => Promise<unknown>
type Asynchronous = { [Name in keyof Store]: Store[Name] extends Operation ? Name : never }[keyof Store]
type Timed = Exclude<Asynchronous, 'subscribe' | 'close'>

/** All that wait for an answer. `subscribe` may wait for a store that is away, and `close` ends it. */
const operations = Object.keys({
  get: true,
  set: true,
  delete: true,
  touch: true,
  count: true,
  lease: true,
  append: true,
  entries: true,
  addMember: true,
  removeMember: true,
  members: true,
  publish: true,
  ping: true
} satisfies Record<Timed, true>) as Timed[]

/** @param meter undefined: it is the store itself */
export function timedStore(store: Store, clock: { now(): number }, meter: StoreMeter | undefined): Store {
  if (meter === undefined) return store
  // Everything else, `live` among it, is that of the store itself.
  const timed = Object.create(store) as Store
  for (const operation of operations) {
    const ask: Operation = store[operation].bind(store)
    const timedAsk: Operation = (...args) => {
      const askedAt = clock.now()
      const answer = ask(...args)
      const told = (failure?: string): void => meter.storeAsked((clock.now() - askedAt) / 1e3, operation, failure)
      answer.then(
        () => told(),
        () => told('unavailable')
      )
      return answer
    }
    Object.assign(timed, { [operation]: timedAsk })
  }
  return timed
}
