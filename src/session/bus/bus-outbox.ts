// What a process says on one request of another, in order: while the store is away it waits, and is said again when the
// store is back. The other side drops what came already.

import type { Log } from '../../observe/log.ts'
import { GatewayError } from '../../protocol/messages.ts'
import { type Clock, pause } from '../../time/clock.ts'
import type { KeptMessages } from './bus-kept.ts'
import type { BusMessages } from './bus-messages.ts'

/** Between two attempts while the store is away. */
const retryMs = 100
/** For so long: after it the other side counts this process as gone. */
const maxRetryMs = 15_000
/** Messages ahead of the answer that wait; more are left out, the answer never. */
const maxWaiting = 1_000

export type OutboxWord = 'said' | 'answer' | 'error'

interface Unsaid {
  readonly word: OutboxWord
  /** Of the messages of this request: from 1 on. */
  readonly seq: number
  readonly body: unknown
  readonly done: () => void
  readonly failed: (error: unknown) => void
}

/**
 * @param keep what is said, for whoever misses it
 * @param wanted `aborted`: nobody waits for the rest
 */
export function createOutbox(
  { send, keep }: Pick<BusMessages, 'send'> & Pick<KeptMessages, 'keep'>,
  to: string,
  id: string,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  wanted: { readonly aborted: boolean }
) {
  /** In their order; not empty while the store is away. */
  const unsaid: Unsaid[] = []
  let last = 0
  let retrying = false

  async function write({ word, seq, body }: Unsaid): Promise<void> {
    // Nobody listens: it will again when it is connected to the store, which this process was sooner.
    if ((await send(to, word, id, body, { seq })) === 0) throw new GatewayError('unavailable', 'nobody listens')
  }
  const isAway = (error: unknown): boolean => error instanceof GatewayError && error.code === 'unavailable'

  function giveUp(one: Unsaid, err: unknown): void {
    if (one.word === 'answer' && !isAway(err)) {
      // What is said in its place takes its number.
      last = one.seq - 1
      return one.failed(err)
    }
    log.debug({ err, word: one.word }, 'a message to another process was lost')
    one.done()
  }

  async function retry(): Promise<void> {
    retrying = true
    const until = clock.now() + maxRetryMs
    for (let next = unsaid[0]; next !== undefined; next = unsaid[0]) {
      try {
        await write(next)
        next.done()
      } catch (error) {
        if (isAway(error) && clock.now() < until && !wanted.aborted) {
          await pause(clock, retryMs)
          continue
        }
        giveUp(next, error)
      }
      unsaid.shift()
    }
    retrying = false
  }

  /** Those that were sent side by side fail in their order. */
  function wait(one: Unsaid, error: unknown): void {
    if (!isAway(error) || wanted.aborted) return giveUp(one, error)
    const at = unsaid.findLastIndex(({ seq }) => seq < one.seq)
    unsaid.splice(at + 1, 0, one)
    if (!retrying) void retry()
  }

  return {
    /**
     * Resolves when it was said, or nobody could be told. Rejects for an answer alone.
     * @throws GatewayError upstream_protocol where the answer is too large: it can be said instead
     */
    say(word: OutboxWord, body: unknown): Promise<void> {
      return new Promise((resolve, failed) => {
        const done = (): void => resolve()
        const one: Unsaid = { word, seq: ++last, body, done, failed }
        // Before it is known to have left: what comes after it must not be said again without it.
        keep(to, id, word, body, one.seq)
        if (unsaid.length === 0) return void write(one).then(done, (error: unknown) => wait(one, error))
        if (word === 'said' && unsaid.length >= maxWaiting) return giveUp(one, 'too many wait')
        unsaid.push(one)
      })
    }
  }
}
