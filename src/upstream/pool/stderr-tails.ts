// The last lines of standard error of each upstream, which show operators why it fails. They are bounded, count for the
// memory of the tenant, and stay after the end of the process, because the last ones often tell its reason.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { type HeldMemory, holdMemory, type MemoryAccount } from '../../limits/memory.ts'
import type { Clock } from '../../time/clock.ts'
import { hashOfEverybody } from '../rpc/personal-hash.ts'

const maxTailLines = 50
const maxTailBytes = 16_384
/** The memory of an entry besides its text, in bytes. */
const entryBytes = 100

export interface StderrLine {
  /** When the line came, on the clock of the pool, in milliseconds. */
  readonly at: number
  readonly text: string
  /** The number of lines before it that were dropped, because too many came at once. */
  readonly leftOut: number
}

/** Lines of a stack trace other than the error itself: frames, members, brackets, the version of Node. */
const isDetail = /^(?:\s|Node\.js v|[\W_]*$)/

/** V8 stores a string in at most two bytes a character. */
const bytesOf = ({ text }: StderrLine): number => text.length * 2 + entryBytes

interface Tail {
  readonly lines: StderrLine[]
  readonly held: HeldMemory
  bytes: number
  last: string
}

export function createStderrTails(clock: Clock, memory: MemoryAccount) {
  /** By hash of the definition without personal credentials: personal definitions share one tail. */
  const tails = new Map<string, Tail>()

  function tailOf({ hash: own, tenant, name }: UpstreamDefinition): Tail {
    const hash = hashOfEverybody(own)
    const known = tails.get(hash)
    if (known !== undefined) return known
    const held = holdMemory(memory.share(tenant, `standard error of ${name}`))
    const made = { lines: [], held, bytes: 0, last: '' }
    tails.set(hash, made)
    return made
  }

  const isOver = ({ lines, bytes, held }: Tail): boolean =>
    lines.length > maxTailLines || bytes > maxTailBytes || !held.fit(bytes)

  return {
    /** Adds a line. If the tenant's memory is used up, fewer lines are kept, or none. */
    add(definition: UpstreamDefinition, text: string, leftOut: number): void {
      const tail = tailOf(definition)
      if (!isDetail.test(text) || tail.last === '') tail.last = text
      const line = { at: clock.now(), text, leftOut }
      tail.lines.push(line)
      tail.bytes += bytesOf(line)
      while (tail.lines.length > 0 && isOver(tail)) tail.bytes -= bytesOf(tail.lines.shift() as StderrLine)
    },
    /** The lines of an upstream, the oldest first. */
    of: ({ hash }: UpstreamDefinition): readonly StderrLine[] => tails.get(hashOfEverybody(hash))?.lines ?? [],
    /** The last significant line: for an error with a stack trace, the line with its message. */
    lastOf: (hash: string): string | undefined => tails.get(hash)?.last,
    retain(hashes: Pick<ReadonlySet<string>, 'has'>): void {
      for (const [hash, { held }] of tails) {
        if (hashes.has(hash)) continue
        held.set(0)
        tails.delete(hash)
      }
    }
  }
}
