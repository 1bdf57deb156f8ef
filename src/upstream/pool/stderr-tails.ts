// The last lines of standard error of each upstream, for whoever asks why it fails: bounded, counted for its tenant,
// and kept when its process is gone, because the last ones say why it went.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { type HeldMemory, holdMemory, type MemoryAccount } from '../../limits/memory.ts'
import type { Clock } from '../../time/clock.ts'
import { hashOfEverybody } from '../rpc/personal-hash.ts'

const maxTailLines = 50
const maxTailBytes = 16_384
/** Of an entry, besides its text. */
const entryBytes = 100

export interface StderrLine {
  /** On the clock of the pool, in milliseconds. */
  readonly at: number
  readonly text: string
  /** Lines that came before it and were too many at once. */
  readonly leftOut: number
}

/** What follows an error in Node and precedes it in Python: frames, members, brackets, the version. */
const isDetail = /^(?:\s|Node\.js v|[\W_]*$)/

/** V8 keeps a text in two bytes a character at most. */
const bytesOf = ({ text }: StderrLine): number => text.length * 2 + entryBytes

interface Tail {
  readonly lines: StderrLine[]
  readonly held: HeldMemory
  bytes: number
  last: string
}

export function createStderrTails(clock: Clock, memory: MemoryAccount) {
  /** By hash of the definition of everybody: of what people have of it, all together. */
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
    /** Where the tenant holds all the memory that it may, fewer lines are kept, or none. */
    add(definition: UpstreamDefinition, text: string, leftOut: number): void {
      const tail = tailOf(definition)
      if (!isDetail.test(text) || tail.last === '') tail.last = text
      const line = { at: clock.now(), text, leftOut }
      tail.lines.push(line)
      tail.bytes += bytesOf(line)
      while (tail.lines.length > 0 && isOver(tail)) tail.bytes -= bytesOf(tail.lines.shift() as StderrLine)
    },
    /** The oldest first. */
    of: ({ hash }: UpstreamDefinition): readonly StderrLine[] => tails.get(hashOfEverybody(hash))?.lines ?? [],
    /** The last that matters: of an error with its stack the one that says what it is. */
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
