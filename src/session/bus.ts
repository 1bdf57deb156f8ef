// From process to process: one asks, the other one, which holds what is asked about, answers, and says things meanwhile. Over the messages of
// the store, sealed, because whoever can write into the store must not be able to speak for a process. Any message may be lost.

import { GatewayError } from '../protocol/errors.ts'
import type { Log } from '../observe/log.ts'
import { createShares } from '../protocol/shares.ts'
import type { Shares } from '../protocol/shares.ts'
import { nodeChannel } from '../store/keys.ts'
import { cancelled, caught, gone, silent, thrown } from './bus-errors.ts'
import type { Thrown } from './bus-errors.ts'
import { createLeg } from './bus-leg.ts'
import type { Leg } from './bus-leg.ts'
import { createSeen } from './seen.ts'
import type { Store } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'

export interface BusCall {
  /** What the other side says ahead of its answer, in order. JSON. */
  readonly notify: (said: unknown) => void
  readonly signal: AbortSignal
}

/** Whom a question is for: each has a share of those that are under way. Opaque. */
export interface Whose {
  readonly tenant: string
  readonly caller: string
}

export interface Bus {
  /**
   * Asks another process, once, and passes on when `signal` is aborted. All values are JSON.
   * @throws GatewayError invalid_state where it is gone, upstream_lost where it fell silent while it worked, too_many, unavailable;
   * RpcError and GatewayError as the other side threw them
   */
  ask (node: string, whose: Whose, question: unknown, call: BusCall): Promise<unknown>
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
  /** Questions at a time, in each direction: a quarter of them of one tenant, and a sixteenth of one caller. */
  readonly max?: number
}

type Word = 'question' | 'ready' | 'go' | 'beat' | 'said' | 'answer' | 'error' | 'abort'
interface Message {
  readonly word: Word
  readonly id: string
  readonly from: string
  readonly at: number
  /** Grows with each message of the sender. */
  readonly n: number
  readonly body?: unknown
}
interface Question { readonly whose: Whose, readonly question: unknown }

const purpose = 'bus'
/** A message that is older was held back or is played again. */
const staleMs = 60_000
/** Redis cuts off subscribers whose messages it has to hold. */
const maxChars = 8 * 1024 * 1024

export async function createBus ({ store, sealer, node, timer, wall, newId, log, ackMs = 2_000, silenceMs = 15_000, max = 1_024 }: BusOptions): Promise<Bus> {
  const asked = new Map<string, Leg & { ready (): void, said (body: unknown): void, settle (error: Error | undefined, answer?: unknown): void }>()
  const served = new Map<string, Leg & { readonly stop: AbortController, go (): void }>()
  const [asking, serving] = [createShares(), createShares()]
  // The clocks of others may be ahead of ours by as much as behind.
  const seen = createSeen(wall, 2 * staleMs)
  let sent = 0
  let answer: ((question: unknown, call: BusCall) => Promise<unknown>) | undefined
  let closed = false

  async function say (to: string, word: Word, id: string, body?: unknown): Promise<void> {
    const text = JSON.stringify({ word, id, from: node, at: wall.now(), n: ++sent, body } satisfies Message)
    if (text.length > maxChars) throw new GatewayError('upstream_protocol', `What one process of the gateway had to tell another was larger than ${maxChars} characters. The call may have taken effect.`, { data: { outcome: 'unknown' } })
    await store.publish(nodeChannel(to), sealer.seal(purpose, [to], text))
  }

  /** For what the other side will miss soon enough by itself. */
  const tell = (to: string, word: Word, id: string, body?: unknown): void => {
    say(to, word, id, body).catch((err: unknown) => log.debug({ err, word }, 'a message to another process was lost'))
  }

  const leg = (to: string, id: string, silent: () => void): Leg => createLeg({ to, timer, firstMs: ackMs, silenceMs, beat: () => tell(to, 'beat', id), silent })

  const take = (shares: Shares, { tenant, caller }: Whose): (() => void) | undefined =>
    shares.take(1, [['all', max], [`tenant ${tenant}`, Math.ceil(max / 4)], [`caller ${tenant} ${caller}`, Math.ceil(max / 16)]])

  // A question may have come late, after the one that asked had been told that it did not: nothing is done before they say `go`.
  function serve (from: string, id: string, { whose, question }: Question): void {
    const run = answer
    const giveBack = run === undefined || closed ? undefined : take(serving, whose)
    if (run === undefined || giveBack === undefined) return tell(from, 'error', id, thrown(new GatewayError('too_many', 'The process that holds the call serves too many others. Retry later.')))
    const stop = new AbortController()
    let going = false
    const drop = (): void => {
      line.close()
      served.delete(id)
      giveBack()
    }
    const line = leg(from, id, () => {
      stop.abort(new GatewayError('cancelled', 'The process that asked is gone.'))
      if (!going) drop()
    })
    served.set(id, {
      ...line,
      stop,
      go () {
        if (going || stop.signal.aborted) return
        going = true
        line.heard()
        Promise.resolve().then(() => run(question, { notify: (said) => tell(from, 'said', id, said), signal: stop.signal }))
          .then((result) => say(from, 'answer', id, result))
          .catch((error: unknown) => tell(from, 'error', id, thrown(error)))
          .finally(drop)
      }
    })
    tell(from, 'ready', id)
  }

  function receive (sealed: string): void {
    try {
      hear(sealed)
    } catch (err) {
      // Whoever waits for it finds out by the silence.
      log.warn({ err }, 'dropped a message of another process that could not be read')
    }
  }

  function hear (sealed: string): void {
    const text = sealer.open(purpose, [node], sealed)
    if (text === undefined) return log.warn('dropped a message of the store that no process of this gateway has sent')
    const { word, id, from, at, n, body } = JSON.parse(text) as Message
    if (Math.abs(wall.now() - at) > staleMs) return log.warn({ from }, 'dropped a message of another process that is too old; do the clocks differ?')
    if (word === 'question') return seen.isNew(from, n) ? serve(from, id, body as Question) : log.warn({ from }, 'dropped a question of another process that had come before')
    const theirs = served.get(id)
    const ours = asked.get(id)
    const line = theirs ?? ours
    if (line !== undefined && (line.to !== from || !line.isNew(n))) return log.warn({ from, word }, 'dropped a message of another process that had come before, or is of none that is spoken with')
    if (word === 'go') return theirs?.go()
    if (word === 'abort') return theirs?.stop.abort(cancelled())
    theirs?.heard()
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
    ask (to, whose, question, { notify, signal }) {
      if (signal.aborted) return Promise.reject(cancelled())
      // We would not hear the answer.
      if (!store.live) return Promise.reject(new GatewayError('unavailable', 'The process that holds the call cannot be reached. Retry in a second.', { headers: { 'Retry-After': '1' } }))
      const giveBack = take(asking, whose)
      if (giveBack === undefined) return Promise.reject(new GatewayError('too_many', 'Too many calls are forwarded between processes. Retry later.'))
      const id = newId()
      return new Promise((resolve, reject) => {
        let going = false
        const line = leg(to, id, () => {
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
          giveBack()
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
        say(to, 'question', id, { whose, question } satisfies Question).catch((error: unknown) => settle(error as Error))
      })
    },
    serve (handler) {
      answer = handler
    },
    async close () {
      closed = true
      for (const [id, { to, stop }] of served) {
        tell(to, 'error', id, thrown(silent()))
        stop.abort(new GatewayError('shutting_down', 'The gateway is stopping.'))
      }
      for (const { settle } of [...asked.values()]) settle(new GatewayError('shutting_down', 'The gateway is stopping.'))
      await unsubscribe()
    }
  }
}
