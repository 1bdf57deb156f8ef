// The records of versions in the store, one by one: read, opened, written, and forgotten once nobody needs them.

import type { Log } from '../observe/log.ts'
import { controlHeadKey, controlVersionKey, tombstoneTtlMs } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'
import { decodeVersion, isWhole, tombstone, type VersionHead, type VersionRecord } from './version-record.ts'

/** A text, and the version that changed it last. */
export interface KeptText {
  readonly version: number
  /** undefined: it cannot be opened any more. */
  readonly text: string | undefined
}

const purpose = 'control'
const readAtOnce = 50

export interface RecordsParts {
  readonly store: Store
  readonly sealer: Sealer
  readonly log: Log
}

export function createVersionRecords({ store, sealer, log }: RecordsParts) {
  async function read(version: number): Promise<VersionRecord | undefined> {
    const text = await store.get(controlVersionKey(String(version)))
    return text === undefined ? undefined : decodeVersion(text, version)
  }

  /** @returns those that there are, by their number */
  async function readAll(versions: Iterable<number>): Promise<ReadonlyMap<number, VersionRecord>> {
    const numbers = [...new Set(versions)]
    const records = new Map<number, VersionRecord>()
    for (let at = 0; at < numbers.length; at += readAtOnce)
      for (const record of await Promise.all(numbers.slice(at, at + readAtOnce).map(read)))
        if (record !== undefined) records.set(record.version, record)
    return records
  }

  return {
    async readHead(): Promise<number> {
      const text = (await store.get(controlHeadKey)) ?? '0'
      return /^\d{1,15}$/.test(text) ? Number(text) : 0
    },
    read,
    readAll,

    opened(name: string, { version, sealed }: VersionRecord): KeptText {
      const text = sealer.open(purpose, [name], sealed[name] ?? '')
      if (text === undefined) log.error({ name, version }, 'a document in the store is damaged, and is left out')
      return { version, text }
    },

    /** @param places of texts that it does not change */
    encode(
      about: VersionHead & Pick<VersionRecord, 'past' | 'gone'>,
      changed: ReadonlyMap<string, string>,
      places: Readonly<Record<string, number>> = {}
    ): string {
      const { version } = about
      const all = { ...places, ...Object.fromEntries([...changed.keys()].map((name) => [name, version])) }
      const sealed = Object.fromEntries([...changed].map(([name, text]) => [name, sealer.seal(purpose, [name], text)]))
      return JSON.stringify({ ...about, places: all, sealed } satisfies VersionRecord)
    },

    /** Deletes it where nothing of it is needed; else it tells of its own texts only from now on. */
    async forget(record: VersionRecord, isNeeded: boolean): Promise<void> {
      const place = controlVersionKey(String(record.version))
      const { places: _places, gone: _gone, ...own } = record
      // Not deleted at once: a process that was held up for long must not take the number for a free one.
      if (!isNeeded) await store.set(place, tombstone, { ttlMs: tombstoneTtlMs })
      else if (isWhole(record)) await store.set(place, JSON.stringify(own))
    }
  }
}
