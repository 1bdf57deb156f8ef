// What is told to other processes, and needs no answer. Long messages wait for their turn as answers do, at the expense
// of whom they are for, and what is told under one name arrives in its order.

import { jsonSizeOf } from '../../limits/limits.ts'
import { holdMemory } from '../../limits/memory.ts'
import type { OutboxContext } from './bus-outbox.ts'
import type { BusCaller, BusKind } from './bus-places.ts'
import { type Flow, isShort } from './wire/bus-flow.ts'
import { type BusMessage, type BusMessages, busTextOf, isTooLarge, maxChars } from './wire/bus-messages.ts'

interface ToldMessage {
  readonly kind: BusKind
  /** Of a long one. */
  readonly whose?: BusCaller
  readonly said: unknown
}

/** Whom it is for, and a name for what keeps its order. */
export interface ToldAbout {
  readonly whose: BusCaller
  readonly about: string
}

const defaultAbout = (kind: BusKind): ToldAbout => ({ whose: { tenant: '', caller: kind }, about: kind })

export function createTold({ sendText }: BusMessages, flow: Flow, { memory, log, leftOut }: OutboxContext) {
  const listeners = new Map<BusKind, Array<(said: never, from: string) => void>>()
  /** What waits or leaves last under a name, where a long one does; whether it was heard. */
  const leaving = new Map<string, Promise<boolean>>()

  /** @returns whether to say it again would not help */
  function isLeft(error: unknown, kind: BusKind, { tenant }: BusCaller): boolean {
    if (isTooLarge(error)) log.warn({ kind, tenant }, 'a message to another process is too long')
    else log.debug({ err: error, kind }, 'a message to another process was lost')
    return isTooLarge(error)
  }

  return {
    /**
     * Tells another process, or every one, this one included, something that needs no answer.
     * @param about default: what is told of its kind
     * @returns false where it should be said again: nobody listens, there is no memory for a long one, or this is so of
     * what was to leave before it. True is no proof that it arrived. Never rejects
     */
    async tell(to: string, kind: BusKind, said: unknown, { whose, about } = defaultAbout(kind)): Promise<boolean> {
      const draft = busTextOf(said, whose)
      const bytes = jsonSizeOf(said, maxChars) + (typeof draft === 'string' ? draft.length : 0)
      const isSmall = isShort(draft)
      const head = JSON.stringify({ kind, ...(!isSmall && { whose }) } satisfies Omit<ToldMessage, 'said'>)
      const send = (text: string): Promise<number> =>
        sendText(to, 'told', about, `${head.slice(0, -1)},"said":${text}}`)
      const held = holdMemory(memory.share(whose.tenant, whose.caller))
      // What processes work by is short, and told whatever others hold; who causes much of it is refused elsewhere.
      if (isSmall) held.set(bytes)
      const hasRoom = isSmall || held.take(bytes)
      if (!hasRoom) leftOut(whose)
      const pass = (): Promise<boolean> =>
        flow
          .pass(to, whose, draft, send)
          .then(
            (listening) => listening > 0,
            (error: unknown) => isLeft(error, kind, whose)
          )
          .finally(() => held.set(0))
      const name = `${to} ${about}`
      const before = leaving.get(name)
      if (isSmall && before === undefined) return await pass()
      const leaves = (async () => hasRoom && (await before) !== false && (await pass()))().finally(() => {
        held.set(0)
        if (leaving.get(name) === leaves) leaving.delete(name)
      })
      leaving.set(name, leaves)
      return await leaves
    },
    /** Takes what is told. */
    hear(kind: BusKind, listener: (said: never, from: string) => void): void {
      listeners.set(kind, [...(listeners.get(kind) ?? []), listener])
    },
    receive({ from, body }: BusMessage): void {
      const { kind, said } = body as ToldMessage
      for (const listener of listeners.get(kind) ?? []) listener(said as never, from)
    }
  }
}
