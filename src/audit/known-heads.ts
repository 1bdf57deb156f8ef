// How far runs were, as signed records of other runs name them, and as the gateway keeps it besides; and whether a log
// has what is known so. What the store says by itself excuses nothing that a signed record names.

import type { AuditRecord, ChainHead } from './chain.ts'

export interface KnownHead extends Pick<ChainHead, 'chain' | 'seq' | 'hash'> {
  /** When its records may be gone: epoch milliseconds. NaN: never. */
  readonly goneAt: number
  readonly knownBy: 'another run' | 'the gateway'
  /** Whether the store says that its records made room for others: nobody signs that. */
  readonly madeRoom: boolean
}

interface HeadVerdict {
  readonly isWrong: boolean
  readonly text: string
}

interface FoundChain {
  readonly last: Pick<AuditRecord, 'seq'>
  /** The hashes of its last records, by their number. */
  readonly hashes: ReadonlyMap<number, string>
}

interface Circumstances {
  /** The chains of which records were deleted for those of others, as signed records say. */
  readonly deleted: ReadonlySet<string>
  /** Whether runs that are not there are no faults. */
  readonly isPart: boolean
  /** Epoch milliseconds. */
  readonly now: number
}

/**
 * Runs have from the store what they say of each other: nothing that comes there later makes one end sooner.
 * @param before what other signed records name of the chain
 * @param goneAt epoch milliseconds
 */
export function namedHead(before: KnownHead | undefined, { chain, seq, hash }: ChainHead, goneAt: number): KnownHead {
  const furthest = before !== undefined && before.seq >= seq ? before : { chain, seq, hash }
  return { ...furthest, goneAt: Math.max(before?.goneAt ?? 0, goneAt), knownBy: 'another run', madeRoom: false }
}

/** @returns one for each chain of which something is to be said: what is wrong, where anything known of it says so */
export function verdictsOn(
  heads: readonly KnownHead[],
  chains: ReadonlyMap<string, FoundChain>,
  circumstances: Circumstances
): HeadVerdict[] {
  const furthestFirst = heads.toSorted((one, other) => other.seq - one.seq)
  return [...Map.groupBy(furthestFirst, ({ chain }) => chain)].flatMap(([chain, all]) => {
    const verdicts = all.flatMap((head) => verdictOn(head, chains.get(chain), circumstances) ?? [])
    return verdicts.find(({ isWrong }) => isWrong) ?? verdicts[0] ?? []
  })
}

function verdictOn(
  { chain, seq, hash, goneAt, knownBy, madeRoom }: KnownHead,
  found: FoundChain | undefined,
  { deleted, isPart, now }: Circumstances
): HeadVerdict | undefined {
  const wrong = (text: string): HeadVerdict => ({ isWrong: true, text })
  if (found !== undefined) {
    const { last, hashes } = found
    if (last.seq < seq)
      return wrong(
        `${chain} is cut off after record ${last.seq}: ${knownBy} knew ${seq}, ${seq - last.seq} are missing`
      )
    if ((hashes.get(seq) ?? hash) === hash) return undefined
    return wrong(`record ${seq} of ${chain} is not the one that ${knownBy} knew`)
  }
  if (isPart) return undefined
  const gone = `${chain} is gone: its ${seq} records`
  if (deleted.has(chain) || madeRoom) return { isWrong: false, text: `${gone} had to make room for others` }
  if (goneAt < now) return { isWrong: false, text: `${gone} were beyond their time` }
  return wrong(`${chain} is missing: ${knownBy} knew it with ${seq} records`)
}
