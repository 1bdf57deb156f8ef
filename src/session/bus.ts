// From process to process: one asks, the other one, which holds what is asked about, answers, and says things meanwhile. Over the messages of
// the store, sealed, because whoever can write into the store must not be able to speak for a process. Any message may be lost.

import { GatewayError, RpcError, errorTable } from '../protocol/errors.ts'
import type { ErrorCode } from '../protocol/errors.ts'
import type { Log } from '../observe/log.ts'
import type { RpcErrorObject } from '../protocol/messages.ts'
import { nodeChannel } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'

export interface BusCall {
  /** What the other side says ahead of its answer, in order. JSON. */
  readonly notify: (said: unknown) => void
  readonly signal: AbortSignal
}

export interface Bus {
  /**
   * Asks another process, once, and passes on when `signal` is aborted. All values are JSON.
   * @throws GatewayError invalid_state where it is gone, upstream_lost where it fell silent while it worked, too_many, unavailable;
   * RpcError and GatewayError as the other side threw them
   */
  ask (node: string, question: unknown, call: BusCall): Promise<unknown>
  /** Answers the others. `signal` is aborted when the one who asks gives up, or is gone. Once. */
  serve (answer: (question: unknown, call: BusCall) => Promise<unknown>): void
  close (): Promise<void>
}

export interface BusOptions {
  readonly store: Store
  readonly sealer: Pick<Sealer, 'seal' | 'open'>
  readonly node: string
  readonly timer: (ms: number, run: () => void) => { close (): unknown, unref (): unknown }
  /** The time of day. */
  readonly wall: { now (): number }
  readonly newId: () => string
  readonly log: Log
  /** How soon another process says that it has the question, and the one that asked that it still wants to know. */
  readonly ackMs?: number
  /** After so much silence the other side is gone; each says something three times as often. */
  readonly silenceMs?: number
  /** Questions at a time, in each direction. */
  readonly max?: number
}

type Word = 'question' | 'ready' | 'go' | 'beat' | 'said' | 'answer' | 'error' | 'abort'
interface Message { readonly word: Word, readonly id: string, readonly from: string, readonly at: number, readonly body?: unknown }
type Thrown = { readonly rpc: RpcErrorObject } | { readonly code: ErrorCode, readonly message: string, readonly data: Readonly<Record<string, unknown>> }

/** One side of a question that is under way. */
interface Leg {
  heard (): void
  close (): void
}

const purpose = 'bus'
/** A message that is older was held back or is played again. */
const staleMs = 60_000
/** Redis cuts off subscribers whose messages it has to hold. */
const maxChars = 8 * 1024 * 1024

export async function createBus ({ store, sealer, node, timer, wall, newId, log, ackMs = 2_000, silenceMs = 15_000, max = 256 }: BusOptions): Promise<Bus> {
  const asked = new Map<string, Leg & { ready (): void, said (body: unknown): void, settle (error: Error | undefined, answer?: unknown): void }>()
  const served = new Map<string, Leg & { readonly from: string, readonly stop: AbortController, go (): void }>()
  let answer: ((question: unknown, call: BusCall) => Promise<unknown>) | undefined
  let closed = false

  async function say (to: string, word: Word, id: string, body?: unknown): Promise<void> {
    const text = JSON.stringify({ word, id, from: node, at: wall.now(), body } satisfies Message)
    if (text.length > maxChars) throw new GatewayError('upstream_protocol', `What one process of the gateway had to tell another was larger than ${maxChars} characters. The call may have taken effect.`, { data: { outcome: 'unknown' } })
    await store.publish(nodeChannel(to), sealer.seal(purpose, [to], text))
  }

  /** For what the other side will miss soon enough by itself. */
  const tell = (to: string, word: Word, id: string, body?: unknown): void => {
    say(to, word, id, body).catch((err: unknown) => log.debug({ err, word }, 'a message to another process was lost'))
  }

  /** Says that we are there, and finds out that the other side is not. */
  function leg (to: string, id: string, firstMs: number, silent: () => void): Leg {
    let limit = timer(firstMs, silent)
    limit.unref()
    const beat = (): { close (): unknown } => {
      const next = timer(silenceMs / 3, () => {
        tell(to, 'beat', id)
        beating = beat()
      })
      next.unref()
      return next
    }
    let beating = beat()
    return {
      heard () {
        limit.close()
        limit = timer(silenceMs, silent)
        limit.unref()
      },
      close () {
        limit.close()
        beating.close()
      }
    }
  }

  // A question may have come late, after the one that asked had been told that it did not: nothing is done before they say `go`.
  function serve (from: string, id: string, question: unknown): void {
    if (served.has(id)) return
    const run = answer
    if (run === undefined || closed || served.size >= max) return tell(from, 'error', id, thrown(new GatewayError('too_many', 'The process that holds the call serves too many others. Retry later.')))
    const stop = new AbortController()
    let going = false
    const drop = (): void => {
      line.close()
      served.delete(id)
    }
    const line = leg(from, id, ackMs, () => {
      stop.abort(new GatewayError('cancelled', 'The process that asked is gone.'))
      if (!going) drop()
    })
    served.set(id, {
      ...line,
      from,
      stop,
      go () {
        if (going || stop.signal.aborted) return
        going = true
        line.heard()
        run(question, { notify: (said) => tell(from, 'said', id, said), signal: stop.signal })
          .then((result) => say(from, 'answer', id, result))
          .catch((error: unknown) => tell(from, 'error', id, thrown(error)))
          .finally(drop)
      }
    })
    tell(from, 'ready', id)
  }

  function receive (sealed: string): void {
    const text = sealer.open(purpose, [node], sealed)
    if (text === undefined) return log.warn('dropped a message of the store that no process of this gateway has sent')
    const { word, id, from, at, body } = JSON.parse(text) as Message
    if (Math.abs(wall.now() - at) > staleMs) return log.warn({ from }, 'dropped a message of another process that is too old; do the clocks differ?')
    if (word === 'question') return serve(from, id, body)
    const theirs = served.get(id)
    if (word === 'go') return theirs?.go()
    if (word === 'abort') return theirs?.stop.abort(cancelled())
    theirs?.heard()
    const ours = asked.get(id)
    switch (word) {
      case 'ready': return ours === undefined ? tell(from, 'abort', id) : ours.ready()
      case 'answer': return ours?.settle(undefined, body)
      case 'error': return ours?.settle(caught(body as Thrown))
      default:
        ours?.heard()
        if (word === 'said') ours?.said(body)
    }
  }

  const unsubscribe = await store.subscribe(nodeChannel(node), receive)

  return {
    ask (to, question, { notify, signal }) {
      if (signal.aborted) return Promise.reject(cancelled())
      if (asked.size >= max) return Promise.reject(new GatewayError('too_many', 'Too many calls are forwarded between processes. Retry later.'))
      // We would not hear the answer.
      if (!store.live) return Promise.reject(new GatewayError('unavailable', 'The process that holds the call cannot be reached. Retry in a second.', { headers: { 'Retry-After': '1' } }))
      const id = newId()
      return new Promise((resolve, reject) => {
        let going = false
        const line = leg(to, id, ackMs, () => {
          tell(to, 'abort', id)
          settle(going ? silent() : gone())
        })
        const onAbort = (): void => {
          tell(to, 'abort', id)
          settle(cancelled())
        }
        const settle = (error: Error | undefined, result?: unknown): void => {
          if (!asked.delete(id)) return
          line.close()
          signal.removeEventListener('abort', onAbort)
          if (error === undefined) resolve(result)
          else reject(error)
        }
        asked.set(id, {
          ...line,
          settle,
          said: notify,
          ready () {
            if (going) return
            going = true
            line.heard()
            say(to, 'go', id).catch(() => settle(silent()))
          }
        })
        signal.addEventListener('abort', onAbort, { once: true })
        say(to, 'question', id, question).catch((error: unknown) => settle(error as Error))
      })
    },
    serve (handler) {
      answer = handler
    },
    async close () {
      closed = true
      for (const [id, { from, stop }] of served) {
        tell(from, 'error', id, thrown(silent()))
        stop.abort(new GatewayError('shutting_down', 'The gateway is stopping.'))
      }
      for (const { settle } of [...asked.values()]) settle(new GatewayError('shutting_down', 'The gateway is stopping.'))
      await unsubscribe()
    }
  }
}

const cancelled = (): GatewayError => new GatewayError('cancelled', 'The request was cancelled by its caller.')
const gone = (): GatewayError => new GatewayError('invalid_state', 'The process that held the call of this requestState is gone, and the call with it. Whether it took effect is unknown: find out before you send it again without requestState.', { data: { outcome: 'unknown' } })
const silent = (): GatewayError => new GatewayError('upstream_lost', 'The process that held the call stopped before the call had ended. Whether it took effect is unknown.', { data: { outcome: 'unknown' } })

/** Anything that is not ours says nothing of the thrown value. */
function thrown (error: unknown): Thrown {
  if (error instanceof RpcError) return { rpc: error.error }
  const { code, message, data } = error instanceof GatewayError ? error : new GatewayError('internal', 'The process that holds the call failed.')
  return { code, message, data }
}

function caught (error: Thrown): Error {
  if ('rpc' in error) return new RpcError(error.rpc)
  return new GatewayError(Object.hasOwn(errorTable, error.code) ? error.code : 'internal', error.message, { data: error.data })
}
