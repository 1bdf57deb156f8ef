// Audit records in the store: lines in segments of about a mebibyte, which an index lists in their order, so that
// records can be read page by page and the oldest be deleted as a whole.

import { auditHeadsKey, auditIndexKey, auditSegmentKey } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import type { ChainHead } from './chain.ts'

const MiB = 1024 * 1024
const segmentChars = MiB
/** Beyond so many batches a segment ends, too. */
const batchesPerSegment = 1_000
/** A segment that is written to must not become the oldest of a busy tenant; in milliseconds. */
const segmentMs = 60 * 60 * 1000
/** Heads of chains that are remembered, the latest of each process among them. */
const headsKept = 1_000

export interface Retention {
  readonly ttlMs: number
  /** Of one tenant. */
  readonly bytes: number
}

/** Where the records of one chain go. */
export function createSegments(
  store: Store,
  tenant: string,
  chain: string,
  { ttlMs, bytes }: Retention,
  clock: { now(): number }
) {
  const segmentsKept = Math.max(2, Math.ceil(bytes / segmentChars))
  let [segment, chars, batches, begunAt] = [0, 0, 0, 0]

  /** Before its first record: what is listed and is not there counts as empty. */
  async function begin(): Promise<void> {
    const index = await store.entries(auditIndexKey(tenant))
    for (const entry of index.slice(0, Math.max(0, index.length + 1 - segmentsKept))) {
      const [ofChain, number] = segmentOf(entry)
      await store.delete(auditSegmentKey(tenant, ofChain, number))
    }
    await store.append(auditIndexKey(tenant), JSON.stringify([chain, segment + 1]), { ttlMs, keep: segmentsKept })
    ;[segment, chars, batches, begunAt] = [segment + 1, 0, 0, clock.now()]
  }

  return {
    /** @param lines each with its line break. @throws GatewayError unavailable; then they may be there or not */
    async append(lines: string): Promise<void> {
      const isFull = chars >= segmentChars || batches >= batchesPerSegment || clock.now() - begunAt >= segmentMs
      if (segment === 0 || isFull) await begin()
      await store.append(auditSegmentKey(tenant, chain, String(segment)), lines, { ttlMs, keep: batchesPerSegment })
      chars += lines.length
      batches++
    },
    /** So that a chain which is cut off or removed is missed. */
    keepHead: (head: ChainHead): Promise<void> =>
      store.append(auditHeadsKey(tenant), JSON.stringify(head), { ttlMs, keep: headsKept }),
    /** The last known heads of the other chains of the tenant. */
    async otherHeads(): Promise<ChainHead[]> {
      const heads = (await store.entries(auditHeadsKey(tenant))).map((entry) => JSON.parse(entry) as ChainHead)
      return [...new Map(heads.map((head) => [head.chain, head])).values()].filter((head) => head.chain !== chain)
    }
  }
}

/** The records of a tenant, oldest segment first: some lines at a time, each with its line break. */
export async function* readAudit(store: Store, tenant: string): AsyncGenerator<string, void, undefined> {
  for (const entry of await store.entries(auditIndexKey(tenant))) {
    const [chain, number] = segmentOf(entry)
    yield* await store.entries(auditSegmentKey(tenant, chain, number))
  }
}

function segmentOf(entry: string): [chain: string, number: string] {
  const [chain, number] = JSON.parse(entry) as [string, number]
  return [chain, String(number)]
}
