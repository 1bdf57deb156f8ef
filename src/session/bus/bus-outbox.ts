// What a process says on one request of another, in order. What is long waits until what is before it has left, and
// counts for its caller meanwhile; while the store is away all waits, and is said again when the store is back. The
// other side drops what came already.

import type { Log } from '../../observe/log.ts'
import { jsonSizeOf } from '../../limits/limits.ts'
import { holdMemory, type MemoryAccount } from '../../limits/memory.ts'
import { GatewayError } from '../../protocol/messages.ts'
import { type Clock, pause } from '../../time/clock.ts'
import { type Draft, type Flow, isShort } from './wire/bus-flow.ts'
import type { KeptMessages } from './bus-kept.ts'
import { type BusMessages, busTextOf, maxChars } from './wire/bus-messages.ts'
import type { BusCaller } from './bus-places.ts'
import type { LeftOut } from './left-out.ts'

/** Between two attempts while the store is away. */
const retryMs = 100
/** For so long: after it the other side counts this process as gone. */
const maxRetryMs = 15_000
/** Messages ahead of the answer that wait; for more there is no room, nor for what its caller has no memory for. */
const maxWaiting = 1_000

export type OutboxWord = 'said' | 'answer' | 'error'

interface Unsaid {
  readonly word: OutboxWord
  /** Of the messages of this request: from 1 on. */
  readonly seq: number
  readonly draft: Draft
  /** In memory: of the value, as `jsonSizeOf` counts, and of its text. */
  readonly bytes: number
  readonly done: () => void
  readonly failed: (error: unknown) => void
}

export interface OutboxContext {
  readonly clock: Clock
  readonly log: Log
  readonly memory: Pick<MemoryAccount, 'share'>
  readonly leftOut: LeftOut
}

interface HasFlow {
  readonly flow: Flow
}

/**
 * @param keep what is said, for whoever misses it
 * @param wanted `aborted`: nobody waits for the rest
 */
export function createOutbox(
  { sendText, flow, keep }: Pick<BusMessages, 'sendText'> & Pick<KeptMessages, 'keep'> & HasFlow,
  { to, id, whose }: { readonly to: string; readonly id: string; readonly whose: BusCaller },
  { clock, log, memory, leftOut }: OutboxContext,
  wanted: { readonly aborted: boolean }
) {
  /** In their order; not empty while what is long leaves, or the store is away. */
  const unsaid: Unsaid[] = []
  /** By them. */
  const held = holdMemory(memory.share(whose.tenant, whose.caller))
  let last = 0
  let working = false

  async function write({ word, seq, draft }: Unsaid): Promise<void> {
    const listening = await flow.pass(to, whose, draft, (text) => sendText(to, word, id, text, { seq }))
    // Nobody listens: it will again when it is connected to the store, which this process was sooner.
    if (listening === 0) throw new GatewayError('unavailable', 'nobody listens')
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

  async function workOff(): Promise<void> {
    if (working) return
    working = true
    for (let next = unsaid[0]; next !== undefined; next = unsaid[0]) {
      await sayInTime(next, clock.now() + maxRetryMs)
      unsaid.splice(unsaid.indexOf(next), 1)
      held.set(held.bytes - next.bytes)
    }
    working = false
  }

  /** Says it until it was said, or given up. */
  async function sayInTime(one: Unsaid, until: number): Promise<void> {
    for (;;) {
      try {
        await write(one)
        return one.done()
      } catch (error) {
        if (!isAway(error) || clock.now() >= until || wanted.aborted) return giveUp(one, error)
      }
      await pause(clock, retryMs)
    }
  }

  function wait(one: Unsaid, at = unsaid.length): void {
    unsaid.splice(at, 0, one)
    held.set(held.bytes + one.bytes)
    void workOff()
  }

  /** Those that were sent side by side fail in their order. */
  function failed(one: Unsaid, error: unknown): void {
    if (!isAway(error) || wanted.aborted) return giveUp(one, error)
    wait(one, unsaid.findLastIndex(({ seq }) => seq < one.seq) + 1)
  }

  return {
    /**
     * Resolves when it was said, or nobody could be told. Rejects for an answer alone.
     * @returns undefined where there is no room for it ahead of the answer: it was left out
     * @throws GatewayError upstream_protocol where the answer is too large: it can be said instead
     */
    say(word: OutboxWord, body: unknown): Promise<void> | undefined {
      const size = jsonSizeOf(body, maxChars)
      const draft = busTextOf(body, whose)
      const bytes = size + (typeof draft === 'string' ? draft.length : 0)
      if (word === 'said' && (unsaid.length >= maxWaiting || !held.share.has(bytes))) {
        leftOut(whose)
        return undefined
      }
      return new Promise((resolve, reject) => {
        const seq = ++last
        // Before it is known to have left: what comes after it must not be said again without it.
        const hasLeft = keep({ id, to, tenant: whose.tenant, word, body, seq, size })
        const done = (): void => {
          hasLeft()
          resolve()
        }
        const one: Unsaid = {
          word,
          seq,
          draft,
          bytes,
          done,
          failed(error) {
            hasLeft()
            reject(error)
          }
        }
        if (unsaid.length > 0 || !isShort(draft)) return wait(one)
        write(one).then(done, (error: unknown) => failed(one, error))
      })
    },
    /** How much waits until it has left, in bytes of memory. */
    waitingBytes: (): number => held.bytes
  }
}
