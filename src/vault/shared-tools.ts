// The tools of an upstream that each person connects, for people who have not connected it yet: as another person's
// connection (the owner's) listed them last. Only with `listing: shared` in the configuration, because the list of an
// account may be private. If people get different lists, that of the owner is shown, so that it does not alternate.

import { personKeyOf } from '../auth/principal.ts'
import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { parseOwnJson } from '../protocol/json.ts'
import { isObject, type JsonObject } from '../protocol/messages.ts'
import { digest, listingTtlMs, sharedToolsChannel, sharedToolsKey, sharedToolsOfKey } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import { hashOfEverybody } from '../upstream/rpc/personal-hash.ts'
import { isPersonal } from './personal-views.ts'

const areShared = ({ auth }: UpstreamDefinition): boolean =>
  auth !== undefined && 'listing' in auth && auth.listing === 'shared'

/** After so long without a list of the owner, another person may become the owner; in milliseconds. */
const ownerMs = 60 * 60 * 1000

/** @returns whether this person is the owner of the shown list */
async function isOwner(store: Store, hash: string, person: string): Promise<boolean> {
  const key = sharedToolsOfKey(hash)
  if (await store.set(key, person, { ttlMs: ownerMs, when: 'absent' })) return true
  return await store.set(key, person, { ttlMs: ownerMs, when: { is: person } })
}

/**
 * Stores the list of a person's connection, if the person is the owner. An empty list replaces nothing, because the
 * account may lack the permission to see any tool.
 *
 * @throws GatewayError unavailable
 */
export async function shareTools(
  store: Store,
  definition: UpstreamDefinition,
  tools: readonly JsonObject[]
): Promise<void> {
  if (definition.person === undefined || tools.length === 0 || !areShared(definition)) return
  const hash = hashOfEverybody(definition.hash)
  if (!(await isOwner(store, hash, digest(personKeyOf(definition.person))))) return
  const key = sharedToolsKey(hash)
  const text = JSON.stringify(tools)
  const isNew = (await store.get(key)) !== text
  await store.set(key, text, { ttlMs: listingTtlMs })
  if (isNew) await store.publish(sharedToolsChannel, hash)
}

export async function createSharedTools(store: Store, log: Log) {
  const listeners = new Map<string, Set<() => void>>()
  const tell = (hash: string): void => {
    for (const listener of listeners.get(hash) ?? []) listener()
  }
  const unsubscribe = await store.subscribe(sharedToolsChannel, tell)
  store.onLost(() => {
    for (const hash of listeners.keys()) tell(hash)
  })

  async function read(hash: string): Promise<readonly JsonObject[]> {
    try {
      const value: unknown = parseOwnJson((await store.get(sharedToolsKey(hash))) ?? '[]')
      return Array.isArray(value) ? value.filter(isObject) : []
    } catch (err) {
      log.debug({ err }, 'the tools of an upstream that others have connected cannot be read')
      return []
    }
  }

  return {
    /** @returns undefined if people without a connection see no tools */
    of(definition: UpstreamDefinition) {
      if (!isPersonal(definition) || !areShared(definition)) return undefined
      const hash = hashOfEverybody(definition.hash)
      return {
        read: () => read(hash),
        /** @returns a function that removes the listener */
        onChange(listener: () => void): () => void {
          const all = listeners.get(hash) ?? new Set()
          listeners.set(hash, all.add(listener))
          return () => {
            if (all.delete(listener) && all.size === 0) listeners.delete(hash)
          }
        }
      }
    },
    close: unsubscribe
  }
}
