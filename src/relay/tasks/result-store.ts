// Results of calls that ended at the gateway and are told as tasks, in the store. Each caller has a fixed number of
// slots, which are used in turn: a new task replaces the oldest, whichever process stored it, so that nothing has to
// be counted or cleared.

import { hash } from 'node:crypto'
import type { JsonObject, Result } from '../../protocol/messages.ts'
import type { Upstream } from '../../protocol/seams.ts'
import { bridgedTaskCountKey, bridgedTaskCountTtlMs, bridgedTaskKey } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import { sessionBindingOf, type LegacyCall } from '../call/call.ts'

export interface StoredTask {
  readonly task: JsonObject
  readonly result?: Result
}

export interface ResultStore {
  /**
   * Stores what a call ended with.
   * @param taskOf the task, with the id that it gets
   * @returns undefined where the result is larger than `maxStoredBytes`
   * @throws GatewayError unavailable
   */
  add(
    call: LegacyCall,
    upstream: Upstream,
    taskOf: (id: string) => JsonObject,
    result: Result,
    ttlMs: number
  ): Promise<StoredTask | undefined>
  /** Stores the end of a task that its server knows under `id`. @param task small @throws GatewayError unavailable */
  mark(call: LegacyCall, upstream: Upstream, id: string, task: JsonObject, ttlMs: number): Promise<void>
  /** What `add` or `mark` stored under this id. @throws GatewayError unavailable */
  find(call: LegacyCall, upstream: Upstream, id: string): Promise<StoredTask | undefined>
}

/** Bytes of JSON. As much as is held of a stream to a client. */
export const maxStoredBytes = 4 * 1024 * 1024
/**
 * Of one caller at one endpoint by the size of the result, so that large results do not replace small ones: 36 MiB in
 * all.
 */
const slotsBySize = [
  { slots: 64, maxBytes: 64 * 1024 },
  { slots: 16, maxBytes: 1024 * 1024 },
  { slots: 4, maxBytes: maxStoredBytes }
]
/** For the ends of tasks of servers. */
const markSlots = 1_024

const ownId = /^own\.(\d+-\d+)\./

interface Entry extends StoredTask {
  readonly upstream: string
  readonly id: string
}

/** Is it the id of a task that ended here? */
export const isStoredTaskId = (id: string): boolean => ownId.test(id)

export function createResultStore(store: Store, newId: () => string): ResultStore {
  const keyOf = ({ session }: LegacyCall, slot: string): string => bridgedTaskKey(...sessionBindingOf(session), slot)

  /**
   * The id of a task of the gateway names its slot. One of a server has a slot that follows from its id, and may lose
   * it to another.
   */
  function slotOf(upstream: Upstream, id: string): string {
    const [, own] = ownId.exec(id) ?? []
    return own ?? `mark-${parseInt(hash('sha256', JSON.stringify([upstream.name, id])).slice(0, 8), 16) % markSlots}`
  }

  async function put(call: LegacyCall, slot: string, entry: Entry, ttlMs: number): Promise<void> {
    await store.set(keyOf(call, slot), JSON.stringify(entry), { ttlMs })
  }

  return {
    async add(call, upstream, taskOf, result, ttlMs) {
      const bytes = Buffer.byteLength(JSON.stringify(result))
      const at = slotsBySize.findIndex(({ maxBytes }) => bytes <= maxBytes)
      const size = slotsBySize[at]
      if (size === undefined) return undefined
      const countKey = bridgedTaskCountKey(...sessionBindingOf(call.session), String(at))
      const turn = await store.count(countKey, 1, bridgedTaskCountTtlMs)
      const slot = `${at}-${turn % size.slots}`
      const id = `own.${slot}.${newId()}`
      const stored = { task: taskOf(id), result }
      await put(call, slot, { ...stored, upstream: upstream.name, id }, ttlMs)
      return stored
    },
    mark: (call, upstream, id, task, ttlMs) =>
      put(call, slotOf(upstream, id), { task, upstream: upstream.name, id }, ttlMs),
    async find(call, upstream, id) {
      const text = await store.get(keyOf(call, slotOf(upstream, id)))
      if (text === undefined) return undefined
      const entry = JSON.parse(text) as Entry
      return entry.id === id && entry.upstream === upstream.name ? entry : undefined
    }
  }
}
