// Messages from process to process, over the store. They are sealed: whoever can write into the store must not speak
// for a process. Any may be lost; one that comes twice, late or out of order is dropped.

import type { Log } from '../../observe/log.ts'
import { parseOwnJson } from '../../protocol/json.ts'
import { GatewayError, RpcError, type RpcErrorObject } from '../../protocol/messages.ts'
import { nodeChannel } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import type { Sealer } from '../../store/seal.ts'
import { type Clock, patientTimer } from '../../time/clock.ts'
import { errorTable } from '../../protocol/error-table.ts'

/**
 * A `beat` of no request asks whether the process is there; it says `alive`. `gone`: it stops, or was not told to
 * begin, and did nothing. `again`: what was said after this may have been missed.
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
  /** Epoch ms. */
  readonly at: number
  /** Grows with each message of the sender. */
  readonly n: number
  /** Of `said`, `answer` and `error`: their order within the request. What comes twice is dropped. */
  readonly seq?: number | undefined
  /** Of what is said again: the one before it, as far as that is still known. Default: `seq` less one. */
  readonly after?: number | undefined
  readonly body?: unknown
}

type BusOrder = Pick<BusMessage, 'seq' | 'after'>

export interface BusMessagesOptions {
  readonly store: Store
  readonly sealer: Pick<Sealer, 'seal' | 'open'>
  /** This process, unique among those on the store. */
  readonly node: string
  /** The time of day. */
  readonly clock: Clock
  readonly log: Log
  /** How soon a process must confirm a question, and the start of the work. */
  readonly ackMs?: number
  /** After so much silence the other side counts as gone; each side sends something three times as often. */
  readonly silenceMs?: number
}

const purpose = 'bus'
const staleMs = 60_000
/** Redis cuts off subscribers whose messages it has to hold. */
const maxChars = 8 * 1024 * 1024

export type BusMessages = ReturnType<typeof createBusMessages>

export function createBusMessages({
  store,
  sealer,
  node,
  clock,
  log,
  ackMs = 2_000,
  silenceMs = 15_000
}: BusMessagesOptions) {
  // The clocks of others may be ahead of ours by as much as behind.
  const isNew = createReplayGuard(clock, 2 * staleMs)
  let sent = 0

  /**
   * @returns how many processes listen
   * @throws GatewayError unavailable, upstream_protocol where the message is too large
   */
  async function send(to: string, word: BusWord, id: string, body?: unknown, order?: BusOrder): Promise<number> {
    const message: BusMessage = { word, id, from: node, at: clock.now(), n: ++sent, ...order, body }
    const text = JSON.stringify(message)
    if (text.length > maxChars) {
      const message =
        `What one process of the gateway had to tell another was larger than ${maxChars} characters. ` +
        'The call may have taken effect.'
      throw new GatewayError('upstream_protocol', message, { data: { outcome: 'unknown' } })
    }
    return await store.publish(nodeChannel(to), sealer.seal(purpose, [to], text))
  }

  const trySend = (to: string, word: BusWord, id: string, body?: unknown, order?: BusOrder): void => {
    send(to, word, id, body, order).catch((err: unknown) =>
      log.debug({ err, word }, 'a message to another process was lost')
    )
  }

  return {
    send,
    trySend,
    /**
     * @param to this process, or every one
     * @returns undefined for a message to be dropped. @throws Error where it cannot be read
     */
    open(to: string, sealed: string): BusMessage | undefined {
      const text = sealer.open(purpose, [to], sealed)
      const message = text === undefined ? undefined : (parseOwnJson(text) as BusMessage)
      const problem =
        message === undefined
          ? 'no process of this gateway has sent it'
          : !(Math.abs(clock.now() - message.at) <= staleMs)
            ? 'it is too old; do the clocks differ?'
            : isNew(`${to} ${message.from}`, message.n)
              ? undefined
              : 'it came before'
      if (problem === undefined) return message
      log.warn({ from: message?.from, problem }, 'dropped a message to this process')
      return undefined
    },
    /**
     * Watches the other side of one request, and tells it that this side is alive.
     * @param onSilence nothing came for `ackMs` from the start, or for `silenceMs` since the other side was heard
     */
    watch(to: string, id: string, onSilence: () => void) {
      const beat = clock.timer(silenceMs / 3, () => {
        trySend(to, 'beat', id)
        beat.refresh()
      })
      let limit = patientTimer(clock, ackMs, onSilence)
      beat.unref()
      return {
        /** The other side was heard. */
        renew(): void {
          limit.close()
          limit = patientTimer(clock, silenceMs, onSilence)
        },
        close(): void {
          limit.close()
          beat.close()
        }
      }
    }
  }
}

/**
 * Recognises messages that were held back or are played again. Only the newest number of each sender is kept: no caller
 * can fill this memory by making a process send.
 * @param forMs after this time no message of before is accepted anyway
 * @returns whether a message is newer than all of the same sender before
 */
export function createReplayGuard(clock: { now(): number }, forMs: number): (from: string, n: number) => boolean {
  /** The process heard last comes last. */
  const newest = new Map<string, { readonly n: number; readonly until: number }>()
  return (from, n) => {
    const now = clock.now()
    for (const [each, { until }] of newest) {
      if (until > now) break
      newest.delete(each)
    }
    const known = newest.get(from)
    if (known !== undefined && n <= known.n) return false
    newest.delete(from)
    newest.set(from, { n, until: now + forMs })
    return true
  }
}

export type EncodedError =
  | { readonly rpc: RpcErrorObject }
  | Pick<GatewayError, 'code' | 'message' | 'data' | 'headers'>

export const busCallCancelled = (): GatewayError =>
  new GatewayError('cancelled', 'The request was cancelled by its caller.')
/** Nothing was done of the request, and nothing will be. */
export class ProcessGone extends GatewayError {
  constructor() {
    const message =
      'The process that held the call of this requestState is gone, and the call with it. Whether it took effect ' +
      'is unknown: find out before you send it again without requestState.'
    super('invalid_state', message, { data: { outcome: 'unknown' } })
  }
}

export const processSilent = (): GatewayError =>
  new GatewayError(
    'upstream_lost',
    'The process that held the call stopped before the call had ended. Whether it took effect is unknown.',
    { data: { outcome: 'unknown' } }
  )

/** The other process was lost while it worked. */
export const isLost = (error: unknown): boolean => error instanceof GatewayError && error.code === 'upstream_lost'

/** Says nothing of a thrown value that is not ours. */
export function encodeError(error: unknown): EncodedError {
  if (error instanceof RpcError) return { rpc: error.error }
  const { code, message, data, headers } =
    error instanceof GatewayError ? error : new GatewayError('internal', 'The process that holds the call failed.')
  return { code, message, data, headers }
}

export function decodeError(error: EncodedError): Error {
  if ('rpc' in error) return new RpcError(error.rpc)
  return new GatewayError(Object.hasOwn(errorTable, error.code) ? error.code : 'internal', error.message, {
    data: error.data,
    headers: error.headers
  })
}
