// Messages from process to process, over the store. They are sealed: whoever can write into the store must not speak
// for a process. Any may be lost; one that comes twice, late or out of order is dropped.

import type { Log } from '../../../observe/log.ts'
import { parseOwnJson } from '../../../protocol/json.ts'
import { isLongText, stringOf } from '../../../protocol/json-text.ts'
import { longTextSteps } from '../../../protocol/json-writer.ts'
import { GatewayError } from '../../../protocol/messages.ts'
import { everyNode, nodeChannel } from '../../../store/keys.ts'
import type { Store } from '../../../store/port.ts'
import type { Sealer } from '../../../store/seal.ts'
import { type Clock, patientTimer, steadyClock, type Timer } from '../../../time/clock.ts'
import { runSteps } from '../../../time/turns.ts'
import type { BusCaller } from '../bus-places.ts'
import { createBatches } from './bus-batches.ts'
import type { Draft } from './bus-flow.ts'
import { createHeard } from './bus-heard.ts'
import { type BusHead, headOf } from './bus-reading.ts'
import { createReplayGuard } from './replay-guard.ts'

/**
 * A `beat` of no request asks whether the process is there; it says `alive`, and to which beat. `gone`: it stops, or
 * was not told to begin, and did nothing. `again`: what was said after this may have been missed.
 */
type BusWord =
  | 'question'
  | 'ready'
  | 'go'
  | 'beat'
  | 'alive'
  | 'said'
  | 'answer'
  | 'error'
  | 'gone'
  | 'abort'
  | 'again'
  | 'told'

export interface BusMessage {
  readonly word: BusWord
  /** Of the request that it belongs to. */
  readonly id: string
  readonly from: string
  /** Of `said`, `answer` and `error`: their order within the request. What comes twice is dropped. */
  readonly seq?: number | undefined
  /** Of what is said again: the one before it, as far as that is still known. Default: `seq` less one. */
  readonly after?: number | undefined
  /** Of a question that may be begun at once: see bus-heard.ts. */
  readonly heardAt?: number | undefined
  readonly body?: unknown
}

type BusOrder = Pick<BusMessage, 'seq' | 'after' | 'heardAt'>

/** What is sealed as one: a message, or several of one turn. */
interface BusEnvelope extends BusMessage {
  /** Epoch ms. */
  readonly at: number
  /** Grows with each envelope of the sender. */
  readonly n: number
  /** By the steady clock of the sender. An earlier version does not say it, and does not read `many`. */
  readonly steadyAt?: number
  readonly many?: ReadonlyArray<Omit<BusMessage, 'from'>>
}

export interface BusMessagesOptions {
  readonly store: Store
  readonly sealer: Pick<Sealer, 'seal' | 'open'>
  /** This process, unique among those on the store. */
  readonly node: string
  /** The time of day. */
  readonly clock: Clock
  /** Goes on steadily. */
  readonly steady?: Pick<Clock, 'now'>
  readonly log: Log
  /** How soon a process must confirm a question, and the start of the work. */
  readonly ackMs?: number
  /** After so much silence the other side counts as gone; each side sends something three times as often. */
  readonly silenceMs?: number
}

const purpose = 'bus'
const staleMs = 60_000
/** Redis cuts off subscribers whose messages it has to hold. */
export const maxChars = 8 * 1024 * 1024

/** Then it was not sent. */
export const isTooLarge = (error: unknown): boolean =>
  error instanceof GatewayError && error.code === 'upstream_protocol'

/** The text of a value; of a long one, what writes it in steps. */
export const busTextOf = (value: unknown, whose: BusCaller): Draft =>
  isLongText(value)
    ? async () => stringOf(await runSteps(longTextSteps(value), whose))
    : (JSON.stringify(value) ?? 'null')

export type BusMessages = ReturnType<typeof createBusMessages>

export function createBusMessages({
  store,
  sealer,
  node,
  clock,
  steady = steadyClock,
  log,
  ackMs = 2_000,
  silenceMs = 15_000
}: BusMessagesOptions) {
  const heard = createHeard(steady)
  // The clocks of others may be ahead of ours by as much as behind.
  const isNew = createReplayGuard(clock, 2 * staleMs)
  let sent = 0

  const batches = createBatches(async (to, texts) => {
    if (texts.length === 1 || heard.reads(to)) return await write(to, texts)
    const listening = await Promise.all(texts.map((text) => write(to, [text])))
    return Math.min(...listening)
  })

  async function write(to: string, texts: readonly string[]): Promise<number> {
    const envelope = JSON.stringify({ from: node, at: clock.now(), n: ++sent, steadyAt: heard.now() })
    const said = texts.length === 1 ? texts[0]?.slice(1) : `"many":[${texts.join()}]}`
    const sealed = sealer.seal(purpose, [to], `${envelope.slice(0, -1)},${said}`)
    return await store.publish(nodeChannel(to), sealed, { isBulk: true })
  }

  /**
   * @param body text of JSON
   * @returns how many processes listen
   * @throws GatewayError unavailable, upstream_protocol where the message is too large
   */
  async function sendText(to: string, word: BusWord, id: string, body?: string, order?: BusOrder): Promise<number> {
    const head = JSON.stringify({ word, id, ...order })
    const text = body === undefined ? head : `${head.slice(0, -1)},"body":${body}}`
    if (text.length > maxChars) {
      const message =
        `What one process of the gateway had to tell another was larger than ${maxChars} characters. ` +
        'The call may have taken effect.'
      throw new GatewayError('upstream_protocol', message, { data: { outcome: 'unknown' } })
    }
    if (to !== everyNode) return await batches.add(to, text)
    // What was said before is not overtaken.
    batches.flush()
    return await write(to, [text])
  }

  const send = (to: string, word: BusWord, id: string, body?: unknown, order?: BusOrder): Promise<number> =>
    sendText(to, word, id, JSON.stringify(body), order)

  const trySend = (to: string, word: BusWord, id: string, body?: unknown, order?: BusOrder): void => {
    send(to, word, id, body, order).catch((err: unknown) =>
      log.debug({ err, word }, 'a message to another process was lost')
    )
  }

  return {
    send,
    sendText,
    trySend,
    heard,
    /** @returns for a question to this process: whether it may be begun before the process says `ready` */
    heardAt: heard.lately,
    /** Is a question of this process so young that it may be begun at once? */
    isYoung: heard.isYoung,
    /** All that waits for the end of this turn leaves now. */
    flush: batches.flush,
    /**
     * @param to this process, or every one
     * @returns those that are not to be dropped. @throws Error where they cannot be read
     */
    open(to: string, sealed: string): ReadonlyArray<BusMessage | BusHead> {
      const text = sealer.open(purpose, [to], sealed)
      const read = (whole: string): BusEnvelope | BusHead => headOf(whole) ?? (parseOwnJson(whole) as BusEnvelope)
      const envelope = text === undefined ? undefined : read(text)
      const problem =
        envelope === undefined
          ? 'no process of this gateway has sent it'
          : !(Math.abs(clock.now() - envelope.at) <= staleMs)
            ? 'it is too old; do the clocks differ?'
            : isNew(`${to} ${envelope.from}`, envelope.n)
              ? undefined
              : 'it came before'
      if (envelope !== undefined && problem === undefined) {
        const { from, steadyAt } = envelope
        const many = 'many' in envelope ? envelope.many : undefined
        heard.note(from, steadyAt)
        return many === undefined ? [envelope] : many.map((message) => ({ ...message, from }))
      }
      log.warn({ from: envelope?.from, problem }, 'dropped a message to this process')
      return []
    },
    /**
     * Watches the other side of one request, and tells it that this side is alive.
     * @param onSilence nothing came for `ackMs` from the start, or for `silenceMs` since the other side was heard
     */
    watch(to: string, id: string, onSilence: () => void) {
      let beat: Timer
      const beatAfter = (ms: number): void => {
        beat = clock.timer(ms, () => {
          trySend(to, 'beat', id)
          beatAfter(silenceMs / 3)
        })
        beat.unref()
      }
      let limit = patientTimer(clock, ackMs, onSilence)
      beatAfter(silenceMs / 3)
      const renew = (): void => {
        limit.close()
        limit = patientTimer(clock, silenceMs, onSilence)
      }
      return {
        /** The other side was heard. */
        renew,
        /** The other side waits for a sign that it was, and says nothing before that. */
        beginAtOnce(): void {
          renew()
          beat.close()
          beatAfter(ackMs / 4)
        },
        close(): void {
          limit.close()
          beat.close()
        }
      }
    }
  }
}
