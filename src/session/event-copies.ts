// Copies in the store of what is streamed to clients, for those that come back at another process or after a restart:
// limited per session, caller, tenant and process, never awaited; where one fails only the copy is lost.

import { createMemoryAccount, holdMemory, type MemoryShare } from '../limits/memory.ts'
import type { Log } from '../observe/log.ts'
import { eventsKept, eventsKey, eventsTtlMs } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import { type JsonText, stringOf } from '../protocol/json-text.ts'
import { parseOwnJson } from '../protocol/json.ts'
import { GatewayError, isRequestId, type RequestId } from '../protocol/messages.ts'
import type { WorkOwner } from '../time/fair-queue.ts'

/**
 * Characters that may be copied within `eventsTtlMs`: of one session, and of all at this process, of which a tenant and
 * a caller have their shares.
 */
export interface CopyLimits {
  readonly session: number
  readonly process: number
}

const defaultLimits: CopyLimits = { session: 8 * 1024 * 1024, process: 256 * 1024 * 1024 }
/** Of the memory of the process, where that is less: a store may be in memory. */
const memoryPart = 8

/** @param budgetBytes of the process */
export const copyLimitsFor = (budgetBytes: number): CopyLimits => ({
  ...defaultLimits,
  process: Math.min(defaultLimits.process, budgetBytes / memoryPart)
})

const endEntry = 'end'
/** In place of the event that primes, which has no data: who holds the stream, and the id of its request or its own. */
const heldEntry = /^held ([\w-]{1,64}) (.{1,8192})$/
/** The end, for whoever has this event. */
const lacksEntry = /^lacks (\d{1,15})$/
/** Whoever wrote the entry: only one line of JSON goes out. */
const eventEntry = /^(\d{1,15}):(\{[^\r\n]*\}|\[[^\r\n]*\])$/

/** Who can go on with a stream. */
export interface StreamHolder {
  readonly node: string
  /** Whom the stream of a call answers. */
  readonly id: RequestId
}

export type EventCopies = ReturnType<typeof createEventCopies>
export type EventCopy = ReturnType<EventCopies['open']>

export function createEventCopies(store: Store, clock: { now(): number }, log: Log, limits = defaultLimits) {
  const all = createMemoryAccount(limits.process)
  const accounts = new Map<string, { size: number; readonly until: number; readonly share: MemoryShare }>()

  function accountOf(sessionKey: string, { tenant, caller }: WorkOwner) {
    const known = accounts.get(sessionKey)
    if (known !== undefined && known.until >= clock.now()) return known
    known?.share.move(-known.size)
    const account = { size: 0, until: clock.now() + eventsTtlMs, share: all.share(tenant, caller) }
    accounts.set(sessionKey, account)
    return account
  }

  function take(sessionKey: string, owner: WorkOwner, size: number): boolean {
    const own = accountOf(sessionKey, owner)
    if (own.size + size > limits.session || !own.share.take(size)) return false
    own.size += size
    return true
  }

  return {
    /**
     * The copy of one stream.
     * @param owner whose share it counts to
     * @param firstAlone whether the first event is copied even where nothing follows it
     * @param holder copied with the event that primes
     */
    open(sessionKey: string, owner: WorkOwner, streamId: string, firstAlone: boolean, holder?: StreamHolder) {
      const key = eventsKey(sessionKey, streamId)
      let stored = false
      let dropped = false
      /** The number of the last event, where that is not in the store: that of a call is its answer. */
      let refused: number | undefined
      /** Whether the store says who can be asked for the rest of a call. */
      let namesHolder = false
      let first: (() => void) | undefined
      const append = (entry: string, keep: number): void => {
        if (dropped) return
        stored = true
        store
          // Where the process is killed, the call has ended with it: only the end has to be there at once.
          .append(key, entry, { ttlMs: eventsTtlMs, keep, isLazy: entry !== endEntry })
          .catch((err: unknown) => log.debug({ err }, 'an event could not be stored for resumption'))
      }
      const copyFirst = (): void => {
        first?.()
        first = undefined
      }
      return {
        /**
         * @param data one line of JSON; empty for an event that only primes
         * @param keep how many of the last events to keep
         */
        add(seq: number, data: JsonText, keep: number): void {
          const isPrime = data.length === 0 && holder !== undefined
          const head = isPrime ? `held ${holder.node} ${JSON.stringify(holder.id)}` : `${seq}:`
          const copy = (): void => {
            if (dropped) return
            refused = take(sessionKey, owner, head.length + data.length) ? undefined : seq
            if (refused !== undefined) return
            namesHolder ||= isPrime && streamId.startsWith('c')
            append(head + stringOf(data), keep)
          }
          copyFirst()
          if (seq > 0 || firstAlone) return copy()
          first = copy
          // An answer and its end are one step. After any other first event, the client may come back for what follows.
          queueMicrotask(copyFirst)
        },
        end(): void {
          first = undefined
          // Whoever comes back for the answer is told that nobody has it.
          if (stored) append(refused !== undefined && namesHolder ? `lacks ${refused}` : endEntry, eventsKept)
        },
        /** Its session has ended. */
        drop(): void {
          dropped = true
          store
            .delete(key)
            .catch((err: unknown) =>
              log.debug({ err }, 'the stored events of an ended session could not be deleted; they expire')
            )
        }
      }
    },
    /** @returns undefined where nothing is stored. @throws GatewayError unavailable */
    async read(sessionKey: string, streamId: string, after: number) {
      const entries = await store.entries(eventsKey(sessionKey, streamId))
      if (entries.length === 0) return undefined
      const last = entries.at(-1) ?? ''
      const ended = last === endEntry || Number(lacksEntry.exec(last)?.[1] ?? Infinity) <= after
      return { events: eventsAfter(entries, after), ended, holder: holderIn(entries[0]) }
    },
    /** Forgets expired accounts. */
    sweep(): void {
      for (const [key, { size, until, share }] of accounts) {
        if (until >= clock.now()) continue
        share.move(-size)
        accounts.delete(key)
      }
    }
  }
}

function holderIn(entry: string | undefined): StreamHolder | undefined {
  const [, node, text = ''] = heldEntry.exec(entry ?? '') ?? []
  if (node === undefined) return undefined
  const id = parseOwnJson(text)
  return isRequestId(id) ? { node, id } : undefined
}

function* eventsAfter(entries: readonly string[], after: number): Generator<{ seq: number; data: string }> {
  let last = after
  for (const entry of entries) {
    const [, text, data] = eventEntry.exec(entry) ?? []
    const seq = Number(text)
    if (data === undefined || seq <= last) continue
    last = seq
    yield { seq, data }
  }
}

/**
 * How many streams of one session may be resumed from the store at once: each holds all its stored events in memory,
 * for as long as its reader takes.
 */
const maxPerSession = 4
/** Counted for each, in bytes: what a session may have stored, most of which is plain text. */
const resumedBytes = defaultLimits.session

export function createResumeLimit() {
  const bySession = new Map<string, Set<AbortController>>()
  const stop = (sessionKey: string): void => {
    for (const resumed of bySession.get(sessionKey) ?? []) resumed.abort()
  }

  return {
    /**
     * Runs with a signal that is aborted when the session ends, or `wanted` is aborted.
     * @throws GatewayError too_many; whatever `run` throws
     */
    async run<T>(
      sessionKey: string,
      wanted: AbortSignal | undefined,
      memory: MemoryShare | undefined,
      run: (stop: AbortSignal) => Promise<T>
    ): Promise<T> {
      const running = bySession.get(sessionKey) ?? new Set<AbortController>()
      if (running.size >= maxPerSession) {
        const message =
          `This session resumes ${maxPerSession} streams at once, which is the limit. Read them ` +
          'before resuming more.'
        throw new GatewayError('too_many', message, { headers: { 'Retry-After': '1' } })
      }
      const held = memory && holdMemory(memory)
      held?.require(resumedBytes, 'Resuming the stream')
      const own = new AbortController()
      bySession.set(sessionKey, running.add(own))
      try {
        return await run(wanted === undefined ? own.signal : AbortSignal.any([wanted, own.signal]))
      } finally {
        held?.set(0)
        running.delete(own)
        if (running.size === 0) bySession.delete(sessionKey)
      }
    },
    stop,
    close(): void {
      for (const sessionKey of bySession.keys()) stop(sessionKey)
    }
  }
}
