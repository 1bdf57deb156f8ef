// Audit records of the store: page by page; and whether the newest are whole. A long log is verified in part, so that
// one question costs the gateway little; the rest is for `gatehouse audit verify`.

import { auditIndexKey, auditSegmentKey } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import { nextTurn } from '../time/turns.ts'
import { keptHeads, segmentMs, segmentOf } from './segments.ts'
import { type AuditReport, verifyAudit } from './verify.ts'

/** Segments that one page is looked for in: each is about a mebibyte. */
const segmentsPerPage = 4
/** Between a record and its place in a segment, clocks that differ included, in milliseconds. */
const longestDelayMs = 6 * 60 * 60 * 1000

export interface WantedRecords {
  readonly limit: number
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined
  /** undefined: all. */
  readonly kind?: string | undefined
  /** Epoch milliseconds: made at or after it. */
  readonly since?: number | undefined
  /** Made before it. */
  readonly until?: number | undefined
}

/**
 * The newest records first: the newest segment first, and in each the newest line.
 * @returns undefined where the cursor is none. `nextCursor` null: there are no more
 * @throws GatewayError unavailable
 */
export async function readAuditBackwards(
  store: Store,
  tenant: string,
  { limit, cursor, kind, since = -Infinity, until = Infinity }: WantedRecords
): Promise<{ readonly lines: readonly string[]; readonly nextCursor: string | null } | undefined> {
  const index = await store.entries(auditIndexKey(tenant))
  const [begin, before] = cursor === undefined ? [index.at(-1), Infinity] : placeIn(cursor)
  if (begin === undefined && cursor !== undefined) return undefined
  // What was deleted meanwhile is not there any more, and neither is what came before it.
  const start = begin === undefined ? -1 : index.lastIndexOf(begin)
  const lines: string[] = []
  for (let at = start; at >= 0; at--) {
    const entry = index[at] ?? ''
    const found = (await store.entries(auditSegmentKey(tenant, ...segmentOf(entry)))).join('').split('\n').slice(0, -1)
    for (let line = Math.min(found.length, at === start ? before : Infinity) - 1; line >= 0; line--) {
      const text = found[line] ?? ''
      const { time, kind: own } = headOf(text)
      if (!(time >= since && time < until) || (kind !== undefined && own !== kind)) continue
      lines.push(text)
      if (lines.length === limit) return { lines, nextCursor: cursorOf(entry, line) }
    }
    // No segment before this one was written to so late.
    if (headOf(found.at(-1) ?? '').time < since - segmentMs - longestDelayMs) break
    if (start - at + 1 === segmentsPerPage && at > 0) return { lines, nextCursor: cursorOf(index[at - 1] ?? '') }
  }
  return { lines, nextCursor: null }
}

/**
 * All records that are wanted, the oldest segment first: lines with their ends, those of a segment at a time.
 * @throws GatewayError unavailable
 */
export async function* auditLines(
  store: Store,
  tenant: string,
  { kind, since = -Infinity, until = Infinity }: Pick<WantedRecords, 'kind' | 'since' | 'until'>
): AsyncGenerator<string, void, undefined> {
  for (const entry of await store.entries(auditIndexKey(tenant))) {
    const found = (await store.entries(auditSegmentKey(tenant, ...segmentOf(entry)))).join('').split('\n').slice(0, -1)
    const wanted = found.filter((line) => {
      const { time, kind: own } = headOf(line)
      return time >= since && time < until && (kind === undefined || own === kind)
    })
    if (wanted.length > 0) yield `${wanted.join('\n')}\n`
    // No segment after this one begins so early.
    if (headOf(found[0] ?? '').time > until + segmentMs + longestDelayMs) return
    await nextTurn()
  }
}

/** As a chain makes them (chain.ts): to read whole lines would take long, and most are not wanted. */
const headOfLine = /^\{"chain":"[^"]*","seq":\d+,"prev":"[^"]*","time":"([^"]*)","kind":"([^"]*)"/

function headOf(line: string): { readonly time: number; readonly kind: string | undefined } {
  const [, time = '', kind] = headOfLine.exec(line) ?? []
  return { time: Date.parse(time), kind }
}

/** @param before a number of a line of the segment; not given: all of it */
const cursorOf = (entry: string, before?: number): string =>
  Buffer.from(JSON.stringify([entry, before ?? null])).toString('base64url')

function placeIn(cursor: string): [entry: string | undefined, before: number] {
  try {
    const [entry, before] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as [unknown, unknown]
    if (typeof entry === 'string' && (before === null || Number.isSafeInteger(before)))
      return [entry, (before as number | null) ?? Infinity]
  } catch {
    // Said by what is returned.
  }
  return [undefined, 0]
}

/** Of which a verification reads the newest, unless it is asked for all. */
const segmentsVerified = 64
/** Of each run, where all of a long log is read: a write that is made again follows soon. */
const hashesOfLongLog = 1_000
/** In one turn of the event loop. */
const recordsPerTurn = 100
/** By which the clocks of two processes may differ, in milliseconds. */
const clockDifferenceMs = 10_000

export interface StoredAuditReport extends AuditReport {
  /** All that is kept was read. */
  readonly isWhole: boolean
}

/** How far a verification reads, and whom it tells how far it is. */
export interface Verifying {
  /** The newest; Infinity: all that are kept. */
  readonly maxSegments?: number
  readonly signal?: AbortSignal
  readonly passed?: (segments: number, all: number) => void
}

/**
 * With the keys that the records name, and against the heads that are kept of their chains.
 * @param now the time of day: milliseconds since the epoch
 * @throws GatewayError unavailable; the reason of the signal
 */
export async function verifyStoredAudit(
  store: Store,
  tenant: string,
  now: number,
  { maxSegments = segmentsVerified, signal, passed }: Verifying = {}
): Promise<StoredAuditReport> {
  const heads = await keptHeads(store, tenant)
  const index = await store.entries(auditIndexKey(tenant))
  const part = index.slice(-maxSegments)
  const isPart = part.length < index.length

  async function* lines(): AsyncGenerator<string, void, undefined> {
    let read = 0
    for (const [at, entry] of part.entries()) {
      signal?.throwIfAborted()
      passed?.(at, part.length)
      for (const line of (await store.entries(auditSegmentKey(tenant, ...segmentOf(entry)))).join('').split('\n')) {
        yield line
        if (++read % recordsPerTurn === 0) await nextTurn()
      }
    }
  }

  const hashes = part.length > segmentsVerified ? { hashes: hashesOfLongLog } : {}
  const extent = { isPart, readFrom: now - clockDifferenceMs, heads, ...hashes }
  return { ...(await verifyAudit(lines(), undefined, now, extent)), isWhole: !isPart }
}
