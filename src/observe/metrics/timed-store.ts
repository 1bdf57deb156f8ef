// A store whose answers are timed: how long each call took, and whether it failed.

export interface StoreMeter {
  /** @param failure undefined: it was answered */
  storeAsked(seconds: number, operation: string, failure: string | undefined): void
}

/** Those that wait for an answer. */
const operations = ['get', 'set', 'delete', 'touch', 'count', 'lease', 'append', 'entries', 'publish', 'ping'] as const

type Operation = (...args: never[]) => Promise<unknown>
type Asked = Readonly<Record<(typeof operations)[number], Operation>>

/** @param meter undefined: it is the store itself */
export function timedStore<S extends Asked>(store: S, clock: { now(): number }, meter: StoreMeter | undefined): S {
  if (meter === undefined) return store
  // Everything else, `live` among it, is that of the store itself.
  const timed = Object.create(store) as S
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
