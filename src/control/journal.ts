// Named texts in the store, with versions: each change of one or several of them is a new version, written as one value
// under its number, and only where nobody has written that number. So of two writers one wins, and no change is half
// written. Texts are sealed: what they hold is a secret to whoever sees a dump of single keys.
//
// The record of a version holds the texts that it changed, and for each other text the version that has it. Kept are
// the records of the last versions; of each text those of its own last versions, so that nobody who changes one text
// again and again pushes out what there was of another; and older ones whose texts are still in use.

import { randomBytes } from 'node:crypto'
import { GatewayError } from '../protocol/messages.ts'
import { controlHeadKey, controlVersionKey, removedNamesKept, versionsKept, versionsPerTenant } from '../store/keys.ts'
import { createVersionRecords, type KeptText, type RecordsParts } from './version-records.ts'
import { decodeVersion, isWhole, type VersionHead, type VersionRecord, type WholeRecord } from './version-record.ts'

/** Calls must not overlap: one after the other. */
export function createJournal(parts: RecordsParts) {
  const { store, sealer, log } = parts
  const { readHead, read, readAll, opened, encode, forget } = createVersionRecords(parts)
  let head: WholeRecord | undefined
  /** Undefined until they have been read. */
  let texts: Map<string, KeptText> | undefined
  /** Of each text, and of those that were removed last: the versions that changed it, the oldest first. */
  let changes = new Map<string, readonly number[]>()

  const versionNow = (): number => head?.version ?? 0

  function take(record: WholeRecord, into: Map<string, KeptText>): void {
    const { places, sealed, gone, names } = record
    for (const name of into.keys()) if (places[name] === undefined) into.delete(name)
    for (const name of Object.keys(sealed)) into.set(name, opened(name, record))
    for (const name of names) changes.set(name, changesIn(record, name))
    for (const name of changes.keys())
      if (places[name] === undefined && gone?.[name] === undefined) changes.delete(name)
    head = record
  }

  async function begin(): Promise<void> {
    const record = await last(await read(await readHead()))
    const { places = {}, gone = {} } = record ?? {}
    const records = await readAll([...Object.values(places), ...Object.values(gone)])
    const found = new Map<string, KeptText>()
    const foundChanges = new Map<string, readonly number[]>()
    for (const [name, version] of Object.entries({ ...gone, ...places })) {
      const own = records.get(version)
      if (own !== undefined) foundChanges.set(name, changesIn(own, name))
      if (places[name] === undefined) continue
      if (own === undefined) log.error({ name, version }, 'a document is missing in the store, and is left out')
      found.set(name, own === undefined ? { version, text: undefined } : opened(name, own))
    }
    ;[head, texts, changes] = [record, found, foundChanges]
  }

  /** The newest version, counted on from one shortly before. */
  async function last(from: VersionRecord | undefined): Promise<WholeRecord | undefined> {
    const after = await read((from?.version ?? 0) + 1)
    if (isWhole(after)) return await last(after)
    return isWhole(from) ? from : undefined
  }

  /** The store has lost the newest versions, as a Redis does that restarts empty: this process still has them. */
  async function restore({ places: _places, sealed: _sealed, ...about }: WholeRecord): Promise<void> {
    const { version } = about
    log.error({ version }, 'the store has lost changes of the configuration: they are written again')
    const whole = [...(texts ?? [])].flatMap(([name, { text }]) => (text === undefined ? [] : [[name, text] as const]))
    const past = whole.map(([name]) => [name, (changes.get(name) ?? []).filter((each) => each < version)] as const)
    const text = encode({ ...about, past: Object.fromEntries(past) }, new Map(whole))
    await store.set(controlVersionKey(String(version)), text, { when: 'absent' })
    await store.set(controlHeadKey, String(version))
    await begin()
  }

  /** @param dropped versions that were pushed out of those of a text */
  async function forgetOlder(dropped: readonly number[]): Promise<void> {
    const oldest = versionNow() - versionsKept + 1
    const [leaving, first] = await Promise.all([read(oldest - 1), read(oldest)])
    if (leaving === undefined || !isWhole(first)) return
    const replaced = first.names.map((name) => leaving.places?.[name] ?? 0)
    for (const record of (await readAll([oldest - 1, ...replaced, ...dropped])).values()) {
      const { version, names, sealed } = record
      if (version >= oldest) continue
      const own = [...names, ...Object.keys(sealed)]
      const isNeeded = own.some((name) => changes.get(name)?.includes(version) || first.places[name] === version)
      await forget(record, isNeeded)
    }
  }

  /** What a version that is none of the last had under this name; undefined where that is not known any more. */
  async function textThen(name: string, version: number): Promise<KeptText | 'none' | undefined> {
    const versions = changes.get(name) ?? []
    const then = versions.findLast((each) => each <= version)
    const record = await read(then ?? versions[0] ?? 0)
    if (then === undefined) return versions.length === 0 || record?.past?.[name]?.length === 0 ? 'none' : undefined
    if (record === undefined) return undefined
    return record.sealed[name] === undefined ? 'none' : opened(name, record)
  }

  return {
    get version() {
      return versionNow()
    },
    get loaded() {
      return texts !== undefined
    },
    texts: (): ReadonlyMap<string, KeptText> => texts ?? new Map<string, KeptText>(),
    /** Those that are kept of the versions that changed a text, the oldest first; the last may have removed it. */
    versionsOf: (name: string): readonly number[] => changes.get(name) ?? [],

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
      const [newest, first] = await Promise.all([readHead(), read(before + 1)])
      for (let record = first; isWhole(record); record = await read(record.version + 1)) take(record, texts)
      if (head !== undefined && (newest < before || mayHaveLost)) {
        const own = await read(head.version)
        if (own === undefined) await restore(head)
        else if (own.id !== head.id) {
          // Another process has written this number while the store knew nothing of ours.
          await begin()
          return 'replaced'
        } else if (newest < before) await store.set(controlHeadKey, String(head.version))
      }
      if (newest > versionNow()) await begin()
      return versionNow() === before ? 'same' : 'grown'
    },

    /**
     * Writes the next version, after `pull`.
     * @param changed new texts by name; undefined: removed
     * @returns false where another writer was first: pull, judge again, and try again
     * @throws GatewayError unavailable: then it may have been written, or not
     */
    async append(
      about: Pick<VersionHead, 'author' | 'action' | 'at'>,
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
      const names = [...changed.keys()]
      const before = names.map((name) => [name, changes.get(name) ?? []] as const)
      const past = Object.fromEntries(
        before.map(([name, versions]) => [name, versions.slice(-(versionsPerTenant - 1))])
      )
      const removed = names.filter((name) => !written.has(name)).map((name) => [name, version] as const)
      const earlier = Object.entries(head?.gone ?? {}).filter(([name]) => !changed.has(name))
      const allGone = [...earlier.sort(([, a], [, b]) => a - b), ...removed]
      const gone = Object.fromEntries(allGone.slice(-removedNamesKept))
      const dropped = [
        ...before.flatMap(([, versions]) => versions.slice(0, -(versionsPerTenant - 1))),
        ...allGone.slice(0, -removedNamesKept).flatMap(([name]) => changes.get(name) ?? [])
      ]
      const id = randomBytes(12).toString('base64url')
      const text = encode({ ...about, id, version, names, past, gone }, written, others)
      if (!(await store.set(controlVersionKey(String(version)), text, { when: 'absent' }))) return false
      const record = decodeVersion(text, version)
      if (isWhole(record)) take(record, texts)
      // From here on it is done, whatever fails: the number is found by counting on from an older one.
      try {
        await store.set(controlHeadKey, String(version))
        await forgetOlder(dropped)
      } catch (err) {
        log.debug({ err, version }, 'the store went away after a change was written')
      }
      return true
    },

    /**
     * The last versions, the newest first.
     * @param before a number
     * @param names of the versions that changed one of them, all that are kept; undefined: of all, the last
     * @throws GatewayError unavailable
     */
    async history(before: number, limit: number, names?: readonly string[]): Promise<VersionHead[]> {
      const own = new Set(names?.flatMap((name) => changes.get(name) ?? []))
      const oldest = Math.max(1, versionNow() - versionsKept + 1)
      const all = Array.from({ length: versionNow() - oldest + 1 }, (_, at) => oldest + at)
      const numbers = names === undefined ? all : [...own].sort((a, b) => a - b)
      const wanted = numbers.filter((number) => number < before).slice(-limit)
      const found = await readAll(wanted)
      return wanted.toReversed().flatMap((number) => found.get(number) ?? [])
    },

    /**
     * The texts as they were then; undefined where that is not known any more: of all texts it is for the last versions,
     * of some for theirs.
     * @param names undefined: all
     * @throws GatewayError unavailable
     */
    async at(version: number, names?: readonly string[]): Promise<ReadonlyMap<string, KeptText> | undefined> {
      if (version > versionNow() || version < 1) return undefined
      const record = version > versionNow() - versionsKept ? await read(version) : undefined
      if (isWhole(record)) {
        const places = Object.entries(record.places).filter(([name]) => names?.includes(name) !== false)
        const records = await readAll(places.map(([, number]) => number))
        return new Map(
          places.map(([name, number]) => {
            const own = records.get(number)
            return [name, own === undefined ? { version: number, text: undefined } : opened(name, own)]
          })
        )
      }
      if (names === undefined) return undefined
      const found = await Promise.all(names.map(async (name) => [name, await textThen(name, version)] as const))
      if (found.some(([, text]) => text === undefined)) return undefined
      return new Map(found.flatMap(([name, text]) => (text === undefined || text === 'none' ? [] : [[name, text]])))
    }
  }
}

/** Records of before their texts' versions were kept tell of their own only. */
const changesIn = ({ version, past }: VersionRecord, name: string): readonly number[] => [
  ...(past?.[name] ?? []),
  version
]
