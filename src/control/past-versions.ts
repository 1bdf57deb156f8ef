// What there was before: the last versions of all texts, and those of single ones, which are kept longer.

import { versionsKept } from '../store/keys.ts'
import type { createVersionRecords, KeptText } from './version-records.ts'
import { isWhole, type VersionHead } from './version-record.ts'

interface Present {
  /** The newest. */
  readonly version: number
  /** Of each text, and of those that were removed last: the versions that changed it, the oldest first. */
  readonly changes: ReadonlyMap<string, readonly number[]>
}

export function createPastVersions(
  { read, readAll, opened, forget }: ReturnType<typeof createVersionRecords>,
  present: () => Present
) {
  /** @param dropped versions that were pushed out of those of a text */
  async function forgetOlder(dropped: readonly number[]): Promise<void> {
    const { version: newest, changes } = present()
    const oldest = newest - versionsKept + 1
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
    const versions = present().changes.get(name) ?? []
    const then = versions.findLast((each) => each <= version)
    const record = await read(then ?? versions[0] ?? 0)
    if (then === undefined) return versions.length === 0 || record?.past?.[name]?.length === 0 ? 'none' : undefined
    if (record === undefined) return undefined
    return record.sealed[name] === undefined ? 'none' : opened(name, record)
  }

  return {
    forgetOlder,
    /**
     * The last versions, the newest first.
     * @param before a number
     * @param names of the versions that changed one of them, all that are kept; undefined: of all, the last
     * @throws GatewayError unavailable
     */
    async history(before: number, limit: number, names?: readonly string[]): Promise<VersionHead[]> {
      const { version: newest, changes } = present()
      const own = new Set(names?.flatMap((name) => changes.get(name) ?? []))
      const oldest = Math.max(1, newest - versionsKept + 1)
      const all = Array.from({ length: newest - oldest + 1 }, (_, at) => oldest + at)
      const numbers = names === undefined ? all : [...own].sort((a, b) => a - b)
      const wanted = numbers.filter((number) => number < before).slice(-limit)
      const found = await readAll(wanted)
      return wanted.toReversed().flatMap((number) => found.get(number) ?? [])
    },

    /**
     * The texts as they were then; undefined where that is not known any more: of all texts it is for the last
     * versions, of some for theirs.
     * @param names undefined: all
     * @throws GatewayError unavailable
     */
    async at(version: number, names?: readonly string[]): Promise<ReadonlyMap<string, KeptText> | undefined> {
      const { version: newest } = present()
      if (version > newest || version < 1) return undefined
      const record = version > newest - versionsKept ? await read(version) : undefined
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
