// What is told to other processes, and needs no answer. Long messages wait for their turn as answers do, at the expense
// of whom they are for, and what is told under one name arrives in its order.

import { jsonSizeOf } from '../../limits/limits.ts'
import { holdMemory } from '../../limits/memory.ts'
import type { OutboxContext } from './bus-outbox.ts'
import type { BusCaller, BusKind } from './bus-places.ts'
import { type Flow, shortBytes } from './wire/bus-flow.ts'
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

export function createTold({ send, sendText }: BusMessages, flow: Flow, { memory, log, leftOut }: OutboxContext) {
  const listeners = new Map<BusKind, (said: never, from: string) => void>()
  /** What waits or leaves last under a name, where a long one does; whether it was heard. */
  const leaving = new Map<string, Promise<boolean>>()

  async function leave(to: string, id: string, { kind, whose, said }: ToldMessage): Promise<boolean> {
    try {
      const sent = { kind, whose, said }
      const listening =
        whose === undefined
          ? await send(to, 'told', id, sent)
          : await sendText(to, 'told', id, await busTextOf(sent, whose))
      return listening > 0
    } catch (err) {
      // To say it again would not help.
      if (isTooLarge(err)) log.warn({ kind, tenant: whose?.tenant }, 'a message to another process is too long')
      else log.debug({ err, kind }, 'a message to another process was lost')
      return isTooLarge(err)
    }
  }

  return {
    /**
     * Tells another process, or every one, this one included, something that needs no answer.
     * @param about default: what is told of its kind
     * @returns false where it should be said again: nobody listens, there is no memory for it, or this is so of what
     * was to leave before it. True is no proof that it arrived. Never rejects
     */
    async tell(to: string, kind: BusKind, said: unknown, { whose, about } = defaultAbout(kind)): Promise<boolean> {
      const bytes = jsonSizeOf(said, maxChars)
      const isShort = bytes <= shortBytes
      const send = (): Promise<boolean> => leave(to, about, { kind, ...(!isShort && { whose }), said })
      const held = holdMemory(memory.share(whose.tenant, whose.caller))
      const hasRoom = held.take(bytes)
      if (!hasRoom) leftOut(whose)
      const pass = (): Promise<boolean> => flow.pass(to, whose, bytes, send).finally(() => held.set(0))
      const name = `${to} ${about}`
      const before = leaving.get(name)
      if (isShort && hasRoom && before === undefined) return await pass()
      const leaves = (async () => hasRoom && (await before) !== false && (await pass()))().finally(() => {
        held.set(0)
        if (leaving.get(name) === leaves) leaving.delete(name)
      })
      leaving.set(name, leaves)
      return await leaves
    },
    /** Takes what is told; once for each kind. */
    hear(kind: BusKind, listener: (said: never, from: string) => void): void {
      listeners.set(kind, listener)
    },
    receive({ from, body }: BusMessage): void {
      const { kind, said } = body as ToldMessage
      listeners.get(kind)?.(said as never, from)
    }
  }
}
