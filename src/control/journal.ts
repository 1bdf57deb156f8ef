// Named texts in the store, with versions: each change of one or several of them is a new version, written as one value
// under its number, and only where nobody has written that number. So of two writers one wins, and no change is half
// written. Texts are sealed: what they hold is a secret to whoever sees a dump of single keys.
//
// The record of a version holds the texts that it changed, and for each other text the version that has it. Kept are
// the records of the last versions; of each text those of its own last versions, so that nobody who changes one text
// again and again pushes out what there was of another; and older ones whose texts are still in use.

import { randomBytes } from 'node:crypto'
import { GatewayError } from '../protocol/messages.ts'
import { controlHeadKey, controlVersionKey, removedNamesKept, versionsPerTenant } from '../store/keys.ts'
import { createPastVersions } from './past-versions.ts'
import { createVersionRecords, type KeptText, type RecordsParts } from './version-records.ts'
import { decodeVersion, isWhole, type VersionHead, type VersionRecord, type WholeRecord } from './version-record.ts'

/** Calls must not overlap: one after the other. */
export function createJournal(parts: RecordsParts) {
  const { store, sealer, log } = parts
  const records = createVersionRecords(parts)
  const { readHead, read, readAll, opened, encode } = records
  let head: WholeRecord | undefined
  /** Undefined until they have been read. */
  let texts: Map<string, KeptText> | undefined
  /** Of each text, and of those that were removed last: the versions that changed it, the oldest first. */
  let changes = new Map<string, readonly number[]>()
  const { history, at, forgetOlder } = createPastVersions(records, () => ({ version: versionNow(), changes }))

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
    const own = await readAll([...Object.values(places), ...Object.values(gone)])
    const found = new Map<string, KeptText>()
    const foundChanges = new Map<string, readonly number[]>()
    for (const [name, version] of Object.entries({ ...gone, ...places })) {
      const holder = own.get(version)
      if (holder !== undefined) foundChanges.set(name, changesIn(holder, name))
      if (places[name] === undefined) continue
      if (holder === undefined) log.error({ name, version }, 'a document is missing in the store, and is left out')
      found.set(name, holder === undefined ? { version, text: undefined } : opened(name, holder))
    }
    head = record
    texts = found
    changes = foundChanges
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

    history,
    at
  }
}

/** Records of before their texts' versions were kept tell of their own only. */
const changesIn = ({ version, past }: VersionRecord, name: string): readonly number[] => [
  ...(past?.[name] ?? []),
  version
]
