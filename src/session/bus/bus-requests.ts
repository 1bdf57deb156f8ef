// Requests of this process to others. Each is sent once, and waited for while the other side proves that it is there.

import { jsonSizeOf, jsonSizeSteps } from '../../limits/limits.ts'
import { type HeldMemory, holdMemory, type MemoryAccount, type MemoryShare } from '../../limits/memory.ts'
import { isLongText } from '../../protocol/json-text.ts'
import { GatewayError } from '../../protocol/messages.ts'
import type { Store } from '../../store/port.ts'
import type { Clock } from '../../time/clock.ts'
import { runSteps } from '../../time/turns.ts'
import {
  busCallCancelled,
  decodeError,
  type EncodedError,
  ProcessGone,
  processSilent,
  processUnreachable
} from './bus-errors.ts'
import { askForMissed, createGap } from './bus-gaps.ts'
import type { BusCaller, BusKind, BusQuestion, LongQuestion, TakePlace } from './bus-places.ts'
import type { BusCall } from './bus-server.ts'
import { type Flow, isShort } from './wire/bus-flow.ts'
import { type BusMessage, type BusMessages, busTextOf, isTooLarge, maxChars } from './wire/bus-messages.ts'
import type { PeerWatch } from './wire/bus-peers.ts'

/** What requests leave by, and who looks whether they arrive. */
interface Wire {
  readonly messages: BusMessages
  readonly flow: Flow
  readonly peers: PeerWatch
  readonly clock: Clock
}

interface RequestsOptions {
  readonly store: Pick<Store, 'live' | 'onLost'>
  /** This process. */
  readonly node: string
  readonly memory: Pick<MemoryAccount, 'share'>
}

/** Of a longer one, who answers it fetches the text. In a message there is room for the rest of it. */
const maxQuestionChars = maxChars - 65_536

export type BusRequests = ReturnType<typeof createBusRequests>

export function createBusRequests({ store, node, memory }: RequestsOptions, wire: Wire, take: TakePlace) {
  const sent = new Map<string, SentRequest>()
  let count = 0
  askForMissed({ store, clock: wire.clock }, sent)

  return {
    /** Those that are not answered, by id. */
    sent,
    /**
     * Asks another process, once; an abort of `signal` is passed on. All values are JSON.
     * @param call default: nothing that precedes the answer is wanted, and it is waited for to its end
     * @throws GatewayError invalid_state where it is gone, upstream_lost where it fell silent while it worked,
     * too_many, unavailable; RpcError and GatewayError as the other side threw them
     */
    async request(
      to: string,
      kind: BusKind,
      whose: BusCaller,
      question: unknown,
      { notify, signal }: BusCall = { notify() {}, signal: new AbortController().signal }
    ): Promise<unknown> {
      if (signal.aborted) throw busCallCancelled()
      // The answer would not arrive.
      if (!store.live) throw processUnreachable()
      const giveBack = take(kind, whose)
      if (giveBack === undefined)
        throw new GatewayError('too_many', 'Too many calls are forwarded between processes. Retry later.')
      const id = `${node}-${++count}`
      const asked = new SentRequest(wire, { id, to, whose }, notify)
      const giveUp = (): void => asked.giveUp(busCallCancelled())
      sent.set(id, asked)
      signal.addEventListener('abort', giveUp, { once: true })
      try {
        void asked.leave(kind, question, memory.share(whose.tenant, whose.caller))
        return await asked.answer
      } finally {
        sent.delete(id)
        giveBack()
        signal.removeEventListener('abort', giveUp)
      }
    },
    /** @returns whether it is about a request that is not answered */
    receive(message: BusMessage): boolean {
      const asked = sent.get(message.id)
      if (asked?.to !== message.from) return false
      asked.receive(message)
      return true
    },
    /** The text of a long question, for the process that answers it. */
    textOf(id: string, from: string): string | undefined {
      const asked = sent.get(id)
      return asked?.to === from ? asked.text : undefined
    },
    close(): void {
      for (const asked of sent.values()) asked.settle(new GatewayError('shutting_down', 'The gateway is stopping.'))
    }
  }
}

/** One request, until it is answered. A class, because there are many at a time. */
class SentRequest {
  readonly to: string
  readonly whose: BusCaller
  /** Of the question, where it is fetched. */
  text: string | undefined
  private readonly id: string
  private readonly wire: Wire
  private readonly notify: (said: unknown) => void
  private readonly outcome = Promise.withResolvers<unknown>()
  private readonly isMissing: (isGap: boolean) => boolean
  private readonly unfollow: () => void
  /** From when it leaves. */
  private beat: ReturnType<BusMessages['watch']> | undefined
  private releaseText: (() => void) | undefined
  /** Whether it may have been begun; told to, or at once. */
  private working = false
  private told = false
  /** Whether it is answered, or given up. */
  private over = false
  /** Of what the other side said on it. */
  private last = 0

  constructor(
    wire: Wire,
    { id, to, whose }: { readonly id: string; readonly to: string; readonly whose: BusCaller },
    notify: (said: unknown) => void
  ) {
    this.wire = wire
    this.id = id
    this.to = to
    this.whose = whose
    this.notify = notify
    this.isMissing = createGap(wire.clock, () => void this.askAgain().catch(() => {}))
    this.unfollow = wire.peers.follow(to, this.onGone)
  }

  get answer(): Promise<unknown> {
    return this.outcome.promise
  }

  get isWorking(): boolean {
    return this.working
  }

  /** Sends it when its turn comes. Rejects never; what waits is counted, also after it was given up. */
  async leave(kind: BusKind, question: unknown, share: MemoryShare): Promise<void> {
    const held = holdMemory(share)
    const release = held.retain()
    try {
      const draft = busTextOf(question, share)
      const isSmall = isShort(draft)
      const size = isLongText(question) ? await runSteps(jsonSizeSteps(question), share) : jsonSizeOf(question)
      const bytes = size + (typeof draft === 'string' ? draft.length : 0)
      // There are few at a time, and some are about what is held.
      if (isSmall) held.set(bytes)
      else held.require(bytes, 'The request')
      const ready = typeof draft === 'string' ? draft : async () => this.shortened(kind, await draft(), held)
      await this.wire.flow.pass(this.to, share, ready, async (text) => {
        if (this.over) throw busCallCancelled()
        return await this.send(this.text === undefined ? kind : 'long', text)
      })
    } catch (error) {
      // It may have arrived although the store did not confirm it in time, or counted no listener of another node: what
      // may be worked on is not refused, nor run elsewhere.
      if (!this.working || isTooLarge(error)) this.settle(error as Error)
    } finally {
      release()
    }
  }

  askAgain(): Promise<unknown> {
    return this.wire.messages.send(this.to, 'again', this.id, this.last)
  }

  receive({ word, body, seq, after }: BusMessage): void {
    if (this.over) return
    if (seq !== undefined && seq <= this.last) return
    if (seq !== undefined && this.isMissing((after ?? seq - 1) > this.last)) return this.beat?.renew()
    this.last = seq ?? this.last
    if (word === 'answer') return this.settle(undefined, body)
    if (word === 'error') return this.settle(decodeError(body as EncodedError))
    if (word === 'gone') return this.settle(new ProcessGone())
    this.beat?.renew()
    if (word === 'said') this.notify(body)
    if (word !== 'ready' || this.told) return
    this.working = this.told = true
    this.wire.messages.send(this.to, 'go', this.id).catch(() => this.settle(processSilent()))
  }

  /** Whoever works on it hears so. */
  giveUp(error: Error): void {
    if (this.beat !== undefined) this.wire.messages.trySend(this.to, 'abort', this.id)
    this.settle(error)
  }

  settle(error: Error | undefined, answer?: unknown): void {
    if (this.over) return
    this.over = true
    this.beat?.close()
    this.unfollow()
    this.text = undefined
    this.releaseText?.()
    if (error === undefined) this.outcome.resolve(answer)
    else this.outcome.reject(error)
  }

  private readonly onGone = (): void => this.giveUp(this.working ? processSilent() : new ProcessGone())

  /** @returns in place of a text that is longer than a message: where it is fetched */
  private shortened(kind: BusKind, text: string, held: HeldMemory): string {
    if (this.over) throw busCallCancelled()
    if (text.length <= maxQuestionChars) return text
    this.text = text
    this.releaseText = held.retain()
    return JSON.stringify({ kind, id: this.id, chars: text.length } satisfies LongQuestion)
  }

  private async send(kind: BusKind, question: string): Promise<number> {
    const { messages } = this.wire
    const heardAt = messages.heardAt(this.to)
    this.working = heardAt !== undefined
    this.beat = messages.watch(this.to, this.id, this.onGone)
    const head = JSON.stringify({ kind, whose: this.whose } satisfies Omit<BusQuestion, 'question'>)
    const body = `${head.slice(0, -1)},"question":${question}}`
    return await messages.sendText(this.to, 'question', this.id, body, { heardAt })
  }
}
