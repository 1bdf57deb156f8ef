// Tasks that ended here and not at their servers, in the store. Each caller has so many places, which are taken in turn: a new task takes
// the place of the oldest one, whichever process made it, and nothing has to be counted or cleared away.

import { hash } from 'node:crypto'
import type { JsonObject, Result } from '../protocol/messages.ts'
import type { Upstream } from '../protocol/seams.ts'
import { bridgedTaskCountKey, bridgedTaskCountTtlMs, bridgedTaskKey } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import type { Call } from './call.ts'

export interface KeptTask {
  readonly task: JsonObject
  readonly result?: Result
}

export interface KeptTasks {
  /**
   * Keeps what a call ended with.
   * @param of the task, with the id that it gets
   * @returns undefined where the result is larger than `maxKept`
   * @throws GatewayError unavailable
   */
  add (call: Call, upstream: Upstream, of: (id: string) => JsonObject, result: Result, ttlMs: number): Promise<KeptTask | undefined>
  /** Keeps the end of a task that its server knows under `id`. @param task small @throws GatewayError unavailable */
  mark (call: Call, upstream: Upstream, id: string, task: JsonObject, ttlMs: number): Promise<void>
  /** What `add` or `mark` keeps under this id. @throws GatewayError unavailable */
  find (call: Call, upstream: Upstream, id: string): Promise<KeptTask | undefined>
}

/** Bytes of JSON. As much as is held of a stream to a client. */
export const maxKept = 4 * 1024 * 1024
/** Places of one caller at one endpoint by the size of the result, so that a few large ones leave the small ones alone: 36 MiB in all. */
const rings = [{ places: 64, bytes: 64 * 1024 }, { places: 16, bytes: 1024 * 1024 }, { places: 4, bytes: maxKept }]
/** Places for tasks of servers. */
const marks = 1_024

const ownId = /^own\.(\d+-\d+)\./

interface Entry extends KeptTask {
  readonly upstream: string
  readonly id: string
}

/** Is it the id of a task that ended here? */
export const isKept = (id: string): boolean => ownId.test(id)

export function createKeptTasks ({ store, mint }: { readonly store: Store, readonly mint: () => string }): KeptTasks {
  const keyOf = ({ live: { endpoint, session: { record: { owner } } } }: Call, place: string): string =>
    bridgedTaskKey(owner.tenant, endpoint, owner.issuer, owner.subject, owner.clientId, place)
  const countOf = ({ live: { endpoint, session: { record: { owner } } } }: Call, ring: string): string =>
    bridgedTaskCountKey(owner.tenant, endpoint, owner.issuer, owner.subject, owner.clientId, ring)

  /** A task of ours says in its id where it is. One of a server has a place that follows from its id, and may lose it to another. */
  function placeOf (upstream: Upstream, id: string): string {
    const [, own] = ownId.exec(id) ?? []
    return own ?? `mark-${parseInt(hash('sha256', JSON.stringify([upstream.name, id])).slice(0, 8), 16) % marks}`
  }

  async function put (call: Call, place: string, entry: Entry, ttlMs: number): Promise<void> {
    await store.set(keyOf(call, place), JSON.stringify(entry), { ttlMs })
  }

  return {
    async add (call, upstream, of, result, ttlMs) {
      const size = Buffer.byteLength(JSON.stringify(result))
      const at = rings.findIndex(({ bytes }) => size <= bytes)
      const ring = rings[at]
      if (ring === undefined) return undefined
      const turn = await store.count(countOf(call, String(at)), 1, bridgedTaskCountTtlMs)
      const place = `${at}-${turn % ring.places}`
      const id = `own.${place}.${mint()}`
      const kept = { task: of(id), result }
      await put(call, place, { ...kept, upstream: upstream.name, id }, ttlMs)
      return kept
    },
    mark: (call, upstream, id, task, ttlMs) => put(call, placeOf(upstream, id), { task, upstream: upstream.name, id }, ttlMs),
    async find (call, upstream, id) {
      const text = await store.get(keyOf(call, placeOf(upstream, id)))
      if (text === undefined) return undefined
      const entry = JSON.parse(text) as Entry
      return entry.id === id && entry.upstream === upstream.name ? entry : undefined
    }
  }
}
