// Requests of this process to others. Each is sent once, and waited for while the other side proves that it is there.

import { GatewayError } from '../../protocol/messages.ts'
import type { Store } from '../../store/port.ts'
import type { Clock } from '../../time/clock.ts'
import {
  busCallCancelled,
  decodeError,
  type EncodedError,
  ProcessGone,
  processSilent,
  unreachable
} from './bus-errors.ts'
import { askForMissed, createGap } from './bus-gaps.ts'
import type { BusCaller, BusKind, TakePlace } from './bus-places.ts'
import type { BusCall, BusQuestion } from './bus-server.ts'
import type { BusMessage, BusMessages } from './wire/bus-messages.ts'
import type { PeerWatch } from './wire/bus-peers.ts'

interface RequestsOptions {
  readonly store: Pick<Store, 'live' | 'onLost'>
  /** This process. */
  readonly node: string
  readonly clock: Clock
}

export type BusRequests = ReturnType<typeof createBusRequests>

export function createBusRequests(
  { store, node, clock }: RequestsOptions,
  messages: BusMessages,
  peers: PeerWatch,
  take: TakePlace
) {
  const sent = new Map<string, SentRequest>()
  let count = 0
  askForMissed({ store, clock }, sent)

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
      if (!store.live) throw unreachable()
      const giveBack = take(kind, whose)
      if (giveBack === undefined)
        throw new GatewayError('too_many', 'Too many calls are forwarded between processes. Retry later.')
      const id = `${node}-${++count}`
      const asked = new SentRequest({ messages, peers, clock }, { to, id, whose }, notify)
      const giveUp = (): void => asked.giveUp(busCallCancelled())
      sent.set(id, asked)
      signal.addEventListener('abort', giveUp, { once: true })
      try {
        asked.leave({ kind, whose, question })
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
    close(): void {
      for (const asked of sent.values()) asked.settle(new GatewayError('shutting_down', 'The gateway is stopping.'))
    }
  }
}

interface SentContext {
  readonly messages: BusMessages
  readonly peers: PeerWatch
  readonly clock: Clock
}

/** One request, until it is answered. A class, because there are many at a time. */
class SentRequest {
  readonly to: string
  readonly whose: BusCaller
  private readonly id: string
  private readonly context: SentContext
  private readonly notify: (said: unknown) => void
  private readonly outcome = Promise.withResolvers<unknown>()
  private readonly isMissing: (isGap: boolean) => boolean
  private readonly unfollow: () => void
  private beat: ReturnType<BusMessages['watch']> | undefined
  /** Whether it may have been begun; told to, or at once. */
  private working = false
  private told = false
  /** Whether it is answered, or given up. */
  private over = false
  /** Of what the other side said on it. */
  private last = 0

  constructor(
    context: SentContext,
    { to, id, whose }: Pick<SentRequest, 'to' | 'whose'> & { readonly id: string },
    notify: (said: unknown) => void
  ) {
    this.context = context
    this.to = to
    this.id = id
    this.whose = whose
    this.notify = notify
    this.isMissing = createGap(context.clock, () => void this.askAgain().catch(() => {}))
    this.unfollow = context.peers.follow(to, this.onGone)
  }

  get answer(): Promise<unknown> {
    return this.outcome.promise
  }

  get isWorking(): boolean {
    return this.working
  }

  leave(body: BusQuestion): void {
    const { messages } = this.context
    const heardAt = messages.heardAt(this.to)
    this.working = heardAt !== undefined
    this.beat = messages.watch(this.to, this.id, this.onGone)
    // It may have arrived although the store did not confirm it in time, or counted no listener of another node: what
    // may be worked on is not refused, nor run elsewhere.
    messages.send(this.to, 'question', this.id, body, { heardAt }).catch((error: unknown) => {
      if (!this.working || isTooLarge(error)) this.settle(error as Error)
    })
  }

  askAgain(): Promise<unknown> {
    return this.context.messages.send(this.to, 'again', this.id, this.last)
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
    this.context.messages.send(this.to, 'go', this.id).catch(() => this.settle(processSilent()))
  }

  /** Whoever works on it hears so. */
  giveUp(error: Error): void {
    this.context.messages.trySend(this.to, 'abort', this.id)
    this.settle(error)
  }

  settle(error: Error | undefined, answer?: unknown): void {
    if (this.over) return
    this.over = true
    this.beat?.close()
    this.unfollow()
    if (error === undefined) this.outcome.resolve(answer)
    else this.outcome.reject(error)
  }

  private readonly onGone = (): void => this.giveUp(this.working ? processSilent() : new ProcessGone())
}

/** Then it was not sent. */
const isTooLarge = (error: unknown): boolean => error instanceof GatewayError && error.code === 'upstream_protocol'
