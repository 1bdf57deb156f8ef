// The audit records of one tenant in this process: each takes its place in the chain, and those that cannot be kept are
// counted in it.

import type { JsonObject } from '../protocol/messages.ts'
import type { Log } from '../observe/log.ts'
import type { Clock } from '../time/clock.ts'
import { type Chain, recordsPerSignature, type RecordKind, type SignedKind } from './chain.ts'
import type { createSegments } from './segments.ts'
import { createWrites, type WriteLines } from './writes.ts'

export type Trail = ReturnType<typeof createTrail>

export interface TrailOptions {
  readonly chain: Chain
  /** Undefined: not kept in the store. */
  readonly segments: ReturnType<typeof createSegments> | undefined
  /** The other places that have them, by their names. */
  readonly sinks: Readonly<Record<string, WriteLines>>
  /** The characters that wait in all trails of the process. */
  readonly waiting: { chars: number }
  /** Called with each record as it is made. */
  readonly made: (line: string) => void
  readonly clock: Clock
  readonly log: Log
}

export function createTrail({ chain, segments, sinks, waiting, made, clock, log }: TrailOptions) {
  const writes = createWrites({ places: { store: segments?.append, ...sinks }, waiting, clock, log })
  function push(line: string): void {
    writes.push(line)
    made(line)
  }
  let unsigned = 0
  let lost = 0
  let hasEnded = false

  function sign(kind: SignedKind, members: JsonObject): void {
    recordLost()
    unsigned = 0
    push(chain.signedRecord(kind, members))
  }

  function recordLost(): void {
    if (lost === 0 || hasEnded) return
    push(chain.record('lost', { records: lost }))
    lost = 0
  }

  /** Signs, writes, and keeps how far the chain is, so that what is gone later is missed. Never rejects. */
  async function writeSigned(kind: SignedKind, members: JsonObject): Promise<void> {
    sign(kind, members)
    const { head } = chain
    await writes.retry()
    await writes.written()
    if (!writes.isComplete('store')) return
    await segments?.keepHead(head).catch((err: unknown) => log.debug({ err }, 'the head of a chain is not kept'))
  }

  function addRequired(kind: RecordKind, members: JsonObject): void {
    if (hasEnded) return void lost++
    push(chain.record(kind, members))
    if (++unsigned >= recordsPerSignature) sign('checkpoint', {})
  }

  return {
    /** The first record. */
    begin: (members: JsonObject): Promise<void> => writeSigned('begin', members),
    /** A record, which is lost where too much waits already. */
    add(kind: RecordKind, members: JsonObject): void {
      if (!writes.hasRoom()) return void lost++
      recordLost()
      addRequired(kind, members)
    },
    /** A record that is never lost while the process lives: whoever adds it asks `isFull` before. */
    addRequired,
    /** No record would be taken now. */
    get isFull() {
      return !writes.hasRoom()
    },
    /** The last attempt to write failed, or takes too long. */
    get isFailing() {
      return writes.isFailing
    },
    /** Whether the trail has its last record, and all records are written. */
    get isOver() {
      return hasEnded && writes.isEmpty
    },
    /** Resolves when all records so far are written, or could not be within some seconds. Never rejects. */
    written: writes.written,
    /** Signs what is not signed yet, and names how far the other chains of the tenant were. Never rejects. */
    async checkpoint(kind: 'checkpoint' | 'end'): Promise<void> {
      if (kind === 'checkpoint' && unsigned === 0) return
      const others = await segments?.others().catch((err: unknown) => {
        log.debug({ err }, 'other chains are not known now')
        return undefined
      })
      if (hasEnded) return await writes.written()
      const done = writeSigned(kind, { ...others })
      hasEnded = kind === 'end'
      await done
    },
    /** @returns how many records could not be written */
    close: (): number => lost + writes.close()
  }
}
