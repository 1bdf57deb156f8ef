// Audit records in the store: lines in segments of about a mebibyte, which an index lists in their order, so that
// records can be read page by page and the oldest be deleted as a whole.

import { isObject, type JsonObject } from '../protocol/messages.ts'
import { auditHeadsKey, auditIndexKey, auditSegmentKey } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import { isChainHead, type ChainHead } from './chain.ts'

const MiB = 1024 * 1024
const segmentChars = MiB
/** Beyond so many batches a segment ends, too. */
const batchesPerSegment = 1_000
/**
 * The longest time of a segment, in milliseconds: what an idle process wrote long ago must not stay with what it writes
 * now.
 */
export const segmentMs = 6 * 60 * 60 * 1000
/** The time between two looks whether its segment was deleted because others wrote much, in milliseconds. */
const listedMs = 60_000
/** Heads of chains that are remembered, the latest of each process among them. */
const headsKept = 200
/** A chain whose oldest segments were deleted for others: it stands among the heads. */
interface MadeRoom {
  readonly deleted: string
}
/** Other chains that one record names. */
const headsPerRecord = 100

export interface Retention {
  readonly ttlMs: number
  /** The most bytes of the records of one tenant. */
  readonly bytes: number
}

/** Creates the segments of one chain. */
export function createSegments(
  store: Store,
  tenant: string,
  chain: string,
  { ttlMs, bytes }: Retention,
  wall: { now(): number }
) {
  const segmentsKept = Math.max(2, Math.ceil(bytes / segmentChars))
  let segment = 0
  let chars = 0
  let batches = 0
  let begunAt = 0
  let listedAt = 0
  /** How far the other chains were when this one named them last. */
  const named = new Map<string, number>()
  /** Of which the oldest segments had to go, since this was last told. */
  const deleted = new Set<string>()

  const keep = (entry: ChainHead | MadeRoom): Promise<void> =>
    store.append(auditHeadsKey(tenant), JSON.stringify(entry), { ttlMs, keep: headsKept })

  /** Begins a segment before its first record: a listed segment that is missing counts as empty. */
  async function begin(): Promise<void> {
    const index = await store.entries(auditIndexKey(tenant))
    for (const entry of index.slice(0, Math.max(0, index.length + 1 - segmentsKept))) {
      const [ofChain, number] = segmentOf(entry)
      await store.delete(auditSegmentKey(tenant, ofChain, number))
      if (!deleted.has(ofChain)) await keep({ deleted: ofChain })
      deleted.add(ofChain)
    }
    // The index outlives the segment, which lives on with each batch.
    const lives = { ttlMs: ttlMs + segmentMs, keep: segmentsKept }
    await store.append(auditIndexKey(tenant), JSON.stringify([chain, segment + 1]), lives)
    const now = wall.now()
    segment++
    chars = 0
    batches = 0
    begunAt = now
    listedAt = now
  }

  async function isDeleted(): Promise<boolean> {
    if (wall.now() - listedAt < listedMs) return false
    listedAt = wall.now()
    return !(await store.entries(auditIndexKey(tenant))).includes(JSON.stringify([chain, segment]))
  }

  return {
    /** @param lines each with its line break. @throws GatewayError unavailable; then they may be there or not */
    async append(lines: string): Promise<void> {
      const isFull = chars >= segmentChars || batches >= batchesPerSegment || wall.now() - begunAt >= segmentMs
      if (segment === 0 || isFull || (await isDeleted())) await begin()
      await store.append(auditSegmentKey(tenant, chain, String(segment)), lines, { ttlMs, keep: batchesPerSegment })
      chars += lines.length
      batches++
    },
    /** Keeps the head, so that a chain which is cut off or removed is missed. */
    keepHead: (head: ChainHead): Promise<void> => keep({ ...head, retentionMs: ttlMs }),
    /**
     * What a signed record says of the other chains of the tenant: `heads`, how far they are, of those that went on
     * since they were last named here; and `deleted`, of which records were deleted for the limit of bytes. And for how
     * long records are kept.
     */
    async others(): Promise<JsonObject> {
      const oldest = wall.now() - ttlMs
      const last = new Map<string, ChainHead>()
      for (const entry of await store.entries(auditHeadsKey(tenant))) {
        const head = entryIn(entry)
        // Of a chain that is older the records are gone, too.
        if (isChainHead(head) && head.chain !== chain && Date.parse(head.time) > oldest) last.set(head.chain, head)
      }
      const heads = [...last.values()].filter((head) => named.get(head.chain) !== head.seq).slice(-headsPerRecord)
      for (const each of named.keys()) if (!last.has(each)) named.delete(each)
      for (const head of heads) named.set(head.chain, head.seq)
      const gone = [...deleted]
      deleted.clear()
      return { retentionMs: ttlMs, ...(heads.length > 0 && { heads }), ...(gone.length > 0 && { deleted: gone }) }
    }
  }
}

/** What is none is left out: whatever stands in the store, signing goes on, and verifying answers. */
function entryIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export interface KeptHead extends ChainHead {
  /** The oldest records, or all of them, were deleted for those of others. */
  readonly madeRoom: boolean
}

/**
 * How far each chain of a tenant was when it was signed last, of those that are remembered. What was written before it
 * is there: to find out whether it still is, read this first.
 * @throws GatewayError unavailable
 */
export async function keptHeads(store: Store, tenant: string): Promise<KeptHead[]> {
  const last = new Map<string, ChainHead>()
  const madeRoom = new Set<string>()
  for (const entry of await store.entries(auditHeadsKey(tenant))) {
    const known = entryIn(entry)
    if (isChainHead(known)) last.set(known.chain, known)
    else if (isObject(known)) madeRoom.add(String(known['deleted']))
  }
  return [...last.values()].map((head) => ({ ...head, madeRoom: madeRoom.has(head.chain) }))
}

/** The records of a tenant, oldest segment first: some lines at a time, each with its line break. */
export async function* readAudit(store: Store, tenant: string): AsyncGenerator<string, void, undefined> {
  for (const entry of await store.entries(auditIndexKey(tenant))) {
    const [chain, number] = segmentOf(entry)
    yield* await store.entries(auditSegmentKey(tenant, chain, number))
  }
}

export function segmentOf(entry: string): [chain: string, number: string] {
  const [chain, number] = JSON.parse(entry) as [string, number]
  return [chain, String(number)]
}
