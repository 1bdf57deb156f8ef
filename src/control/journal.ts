// Named texts in the store, with versions: each change of one or several of them is a new version, written as one value
// under its number, and only where nobody has written that number. So of two writers one wins, and no change is half
// written. Texts are sealed: what they hold is a secret to whoever sees a dump of single keys.
//
// The record of a version holds the texts that it changed, and for each other text the version that has it. Records of
// the last versions are kept, and older ones whose texts are still in use.

import { randomBytes } from 'node:crypto'
import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/messages.ts'
import { controlHeadKey, controlVersionKey, tombstoneTtlMs, versionsKept } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'
import { decodeVersion, tombstone, type VersionHead, type VersionRecord } from './version-record.ts'

/** A text, and the version that changed it last. */
export interface KeptText {
  readonly version: number
  /** undefined: it cannot be opened any more. */
  readonly text: string | undefined
}

const purpose = 'control'
const readAtOnce = 50

interface JournalParts {
  readonly store: Store
  readonly sealer: Sealer
  readonly log: Log
}

/** Calls must not overlap: one after the other. */
export function createJournal(parts: JournalParts) {
  const { store, sealer, log } = parts
  const { readHead, read, opened, textsOf, encode, forgetBefore } = createRecords(parts)
  let head: VersionRecord | undefined
  /** Undefined until they have been read. */
  let texts: Map<string, KeptText> | undefined

  const versionNow = (): number => head?.version ?? 0

  function take(record: VersionRecord, into: Map<string, KeptText>): void {
    for (const name of into.keys()) if (record.places[name] === undefined) into.delete(name)
    for (const name of Object.keys(record.sealed)) into.set(name, opened(name, record))
    head = record
  }

  async function begin(): Promise<void> {
    let record = await read(await readHead())
    const next = async (): Promise<VersionRecord | undefined> => await read((record?.version ?? 0) + 1)
    for (let after = await next(); after !== undefined; after = await next()) record = after
    const found = record === undefined ? new Map<string, KeptText>() : await textsOf(record)
    ;[head, texts] = [record, found]
  }

  /** The store has lost the newest versions, as a Redis does that restarts empty: this process still has them. */
  async function restore(record: VersionRecord, known: ReadonlyMap<string, KeptText>): Promise<void> {
    log.error({ version: record.version }, 'the store has lost changes of the configuration: they are written again')
    const whole = [...known].flatMap(([name, { text }]) => (text === undefined ? [] : [[name, text] as const]))
    await store.set(controlVersionKey(String(record.version)), encode(record, new Map(whole)), { when: 'absent' })
    await store.set(controlHeadKey, String(record.version))
    await begin()
  }

  return {
    get version() {
      return versionNow()
    },
    get loaded() {
      return texts !== undefined
    },
    texts: (): ReadonlyMap<string, KeptText> => texts ?? new Map<string, KeptText>(),

    /**
     * Reads what others have written.
     * @param mayHaveLost the store was away, and may be another one now, which has not all that was written
     * @throws GatewayError unavailable
     */
    async pull(mayHaveLost = false): Promise<'same' | 'grown' | 'replaced'> {
      if (!sealer.ready) throw new GatewayError('unavailable', 'The key of the store cannot be had yet.')
      if (texts === undefined) {
        await begin()
        return 'grown'
      }
      const before = versionNow()
      const [last, first] = await Promise.all([readHead(), read(before + 1)])
      for (let record = first; record !== undefined; record = await read(record.version + 1)) take(record, texts)
      if (head !== undefined && (last < before || mayHaveLost)) {
        const own = await read(head.version)
        if (own === undefined) await restore(head, texts)
        else if (own.id !== head.id) {
          // Another process has written this number while the store knew nothing of ours.
          await begin()
          return 'replaced'
        } else if (last < before) await store.set(controlHeadKey, String(head.version))
      }
      if (last > versionNow()) await begin()
      return versionNow() === before ? 'same' : 'grown'
    },

    /**
     * Writes the next version, after `pull`.
     * @param changed new texts by name; undefined: removed
     * @returns false where another writer was first: pull, judge again, and try again
     * @throws GatewayError unavailable: then it may have been written, or not
     */
    async append(
      about: Pick<VersionHead, 'author' | 'action' | 'names' | 'at'>,
      changed: ReadonlyMap<string, string | undefined>
    ): Promise<boolean> {
      if (texts === undefined) throw new GatewayError('unavailable', 'The configuration in the store is not read yet.')
      const version = versionNow() + 1
      const others = Object.fromEntries(
        [...texts].flatMap(([name, kept]) => (changed.has(name) ? [] : [[name, kept.version] as const]))
      )
      const written = new Map(
        [...changed].flatMap(([name, text]) => (text === undefined ? [] : [[name, text] as const]))
      )
      const id = randomBytes(12).toString('base64url')
      const text = encode({ ...about, id, version }, written, others)
      if (!(await store.set(controlVersionKey(String(version)), text, { when: 'absent' }))) return false
      const record = decodeVersion(text, version)
      if (record !== undefined) take(record, texts)
      // From here on it is done, whatever fails: the number is found by counting on from an older one.
      try {
        await store.set(controlHeadKey, String(version))
        await forgetBefore(version - versionsKept + 1)
      } catch (err) {
        log.debug({ err, version }, 'the store went away after a change was written')
      }
      return true
    },

    /** The last versions, the newest first. @param before a number @throws GatewayError unavailable */
    async history(before: number, limit: number): Promise<VersionHead[]> {
      const newest = Math.min(before - 1, versionNow())
      const oldest = Math.max(1, newest - limit + 1, versionNow() - versionsKept + 1)
      const numbers = Array.from({ length: Math.max(0, newest - oldest + 1) }, (_, at) => newest - at)
      return (await Promise.all(numbers.map(read))).filter((record) => record !== undefined)
    },

    /** All texts as they were then; undefined where that version is not kept. @throws GatewayError unavailable */
    async at(version: number): Promise<ReadonlyMap<string, KeptText> | undefined> {
      if (version > versionNow() || version <= versionNow() - versionsKept) return undefined
      const record = version === 0 ? undefined : await read(version)
      return record && (await textsOf(record))
    }
  }
}

/** The records of versions, one by one. */
function createRecords({ store, sealer, log }: JournalParts) {
  async function readHead(): Promise<number> {
    const text = (await store.get(controlHeadKey)) ?? '0'
    return /^\d{1,15}$/.test(text) ? Number(text) : 0
  }

  async function read(version: number): Promise<VersionRecord | undefined> {
    const text = await store.get(controlVersionKey(String(version)))
    return text === undefined ? undefined : decodeVersion(text, version)
  }

  function opened(name: string, { version, sealed }: VersionRecord): KeptText {
    const text = sealer.open(purpose, [name], sealed[name] ?? '')
    if (text === undefined) log.error({ name, version }, 'a document in the store is damaged, and is left out')
    return { version, text }
  }

  /** All texts of a version. @throws Error where a record is missing */
  async function textsOf({ places }: VersionRecord): Promise<Map<string, KeptText>> {
    const versions = [...new Set(Object.values(places))]
    const records = new Map<number, VersionRecord>()
    for (let at = 0; at < versions.length; at += readAtOnce)
      for (const record of await Promise.all(versions.slice(at, at + readAtOnce).map(read)))
        if (record !== undefined) records.set(record.version, record)
    return new Map(
      Object.entries(places).map(([name, version]) => {
        const record = records.get(version)
        if (record === undefined) log.error({ name, version }, 'a document is missing in the store, and is left out')
        return [name, record === undefined ? { version, text: undefined } : opened(name, record)]
      })
    )
  }

  function encode(about: VersionHead, changed: ReadonlyMap<string, string>, others = {}): string {
    const { id, version, at, author, action, names } = about
    const places = { ...others, ...Object.fromEntries([...changed.keys()].map((name) => [name, version])) }
    const sealed = Object.fromEntries([...changed].map(([name, text]) => [name, sealer.seal(purpose, [name], text)]))
    return JSON.stringify({ id, version, at, author, action, names, places, sealed } satisfies VersionRecord)
  }

  /** Deletes what no version that is kept needs. */
  async function forgetBefore(version: number): Promise<void> {
    const [leaving, oldest] = await Promise.all([read(version - 1), read(version)])
    if (leaving === undefined || oldest === undefined) return
    const needed = new Set(Object.values(oldest.places))
    const candidates = new Set([leaving.version, ...Object.values(leaving.places)])
    for (const each of candidates)
      // Not deleted at once: a process that was held up for long must not take the number for a free one.
      if (!needed.has(each)) await store.set(controlVersionKey(String(each)), tombstone, { ttlMs: tombstoneTtlMs })
  }

  return { readHead, read, opened, textsOf, encode, forgetBefore }
}
