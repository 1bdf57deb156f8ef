// Listens to events of all processes on the store. A listener renews its interest every few seconds, and the other
// processes send it their events several times a second. Without a listener, nothing is sent.

import type { LiveEvents, LiveKind, LiveListener } from '../../observe/live.ts'
import { everyNode } from '../../store/keys.ts'
import type { Bus } from '../../session/bus/bus.ts'
import { every, type Clock, type Timer } from '../../time/clock.ts'

/** How often a listener says that it still is one, and how long it is believed. In milliseconds. */
const renewMs = 4_000
const believedMs = 10_000
/** How often events are sent to another process; how many at once, and their characters. */
const sendMs = 250
const maxEventsSent = 250
const maxCharsSent = 512 * 1024
/** Of these, left to what says how much was left out. */
const shortChars = 65_536
/** Listeners at other processes. */
const maxFarListeners = 256

interface Wanted {
  readonly id: string
  /** undefined: it listens no more. */
  readonly kind?: LiveKind | undefined
  /** null: those of all tenants. */
  readonly tenants: readonly string[] | null
}

interface Seen {
  readonly id: string
  readonly events: ReadonlyArray<readonly [tenant: string, text: string]>
  /** Events that there was no room for. */
  readonly dropped: number
}

interface FarListener {
  readonly node: string
  readonly id: string
  stop: () => void
  until: number
  events: Array<readonly [string, string]>
  chars: number
  dropped: number
}

export interface WatchListener extends LiveListener {
  /** Another process had more to send than there was room for. */
  missed(count: number): void
}

export type Watch = ReturnType<typeof createWatch>

export function createWatch({
  live,
  bus,
  clock
}: {
  readonly live: LiveEvents
  readonly bus: Pick<Bus, 'tell' | 'hear' | 'node' | 'shared'>
  readonly clock: Clock
}) {
  const near = new Map<string, WatchListener>()
  const far = new Map<string, FarListener>()
  let sending: Timer | undefined
  let listened = 0

  bus.hear('watch', (said: Wanted, from) => {
    if (from === bus.node) return
    const key = `${from} ${said.id}`
    const known = far.get(key)
    if (said.kind === undefined) return leave(key, known)
    if (known !== undefined) known.until = clock.now() + believedMs
    else if (far.size < maxFarListeners) join(key, from, said, said.kind)
  })

  bus.hear('seen', ({ id, events, dropped }: Seen) => {
    const listener = near.get(id)
    if (listener === undefined) return
    for (const [tenant, text] of events) if (listener.tenants?.has(tenant) !== false) listener.take(tenant, text)
    if (dropped > 0) listener.missed(dropped)
  })

  function join(key: string, node: string, { id, tenants }: Wanted, kind: LiveKind): void {
    const made: FarListener = { node, id, stop() {}, until: clock.now() + believedMs, events: [], chars: 0, dropped: 0 }
    far.set(key, made)
    made.stop = live.listen({
      kind,
      tenants: tenants === null ? undefined : new Set(tenants),
      take(tenant, text, short) {
        const hasRoom = (chars: number): boolean => made.chars + chars <= maxCharsSent
        // Room is left for what is short.
        const said = hasRoom(text.length + (short === undefined ? 0 : shortChars)) ? text : short
        if (said === undefined || made.events.length >= maxEventsSent || !hasRoom(said.length))
          return void made.dropped++
        made.events.push([tenant, said])
        made.chars += said.length
      }
    })
    sending ??= every(clock, sendMs, sendAll)
  }

  function leave(key: string, listener: FarListener | undefined): void {
    listener?.stop()
    far.delete(key)
    if (far.size > 0) return
    sending?.close()
    sending = undefined
  }

  function sendAll(): void {
    for (const [key, listener] of far) {
      const { node, id, events, dropped, until } = listener
      if (clock.now() > until) {
        leave(key, listener)
        continue
      }
      if (events.length === 0 && dropped === 0) continue
      Object.assign(listener, { events: [], chars: 0, dropped: 0 })
      void bus.tell(node, 'seen', { id, events, dropped } satisfies Seen)
    }
  }

  return {
    /** @returns what stops it; idempotent */
    listen(listener: WatchListener): () => void {
      const stop = live.listen(listener)
      if (!bus.shared) return stop
      const id = String(++listened)
      const { kind, tenants } = listener
      const say = (wanted: Wanted): void => void bus.tell(everyNode, 'watch', wanted)
      const renew = (): void => say({ id, kind, tenants: tenants === undefined ? null : [...tenants] })
      near.set(id, listener)
      renew()
      const timer = every(clock, renewMs, renew)
      return () => {
        stop()
        timer.close()
        if (near.delete(id)) say({ id, tenants: [] })
      }
    },
    close(): void {
      for (const [key, listener] of far) leave(key, listener)
    }
  }
}
