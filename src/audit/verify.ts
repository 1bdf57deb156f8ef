// Is an audit log whole? Reads the records of any number of chains and says what was altered, removed, inserted or cut
// off; and what nothing vouches for, or is gone because its time was over.

import { type KeyObject, verify } from 'node:crypto'
import type { JsonObject } from '../protocol/messages.ts'
import {
  type AuditRecord,
  type ChainHead,
  checkpointMs,
  hashOfRecord,
  isChainHead,
  parsedRecord,
  recordsPerSignature,
  splitSignature
} from './chain.ts'
import { namedKey } from './keys.ts'
import { namedHead, verdictsOn, type KnownHead } from './known-heads.ts'
import type { KeptHead } from './segments.ts'

/** The records of a chain that are distinguished from repeated ones, which a repeated write leaves. */
const hashesKept = 10_000
/** The most records of a chain without a signature between them: a few come while one is being signed. */
const maxUnsigned = recordsPerSignature + 10
/** Between the first and the last record after a signature: a store that answers slowly holds signing up. */
const maxUnsignedMs = 5 * checkpointMs
/** Problems that are listed, and notes. */
const maxListed = 100

export interface AuditReport {
  readonly records: number
  readonly chains: number
  readonly signatures: number
  /** The keys that records name, base64url. Without a key of one's own, these were believed. */
  readonly keys: readonly string[]
  /** The problems; at most a hundred. */
  readonly problems: readonly string[]
  /** Notes about what may be in order; at most a hundred. */
  readonly notes: readonly string[]
}

interface ChainState {
  readonly first: AuditRecord
  last: AuditRecord
  hash: string
  /** The key that its first signed record names. */
  key: KeyObject | undefined
  signatures: number
  signedAt: number
  /** The records since the last signature. */
  unsigned: number
  unsignedFrom: number
  /** The time between them, in milliseconds. NaN: one has no time. */
  unsignedMs: number
  /** Of the first signed record: what it says of the one signed before it, and for how long records are kept. */
  cut: { readonly since: number; readonly retentionMs: number } | undefined
  hasEnded: boolean
  readonly hashes: Map<number, string>
}

/** The extent of a log that is not there as a whole. */
export interface AuditExtent {
  /** Earlier records are kept, and not read: what begins in the middle, and runs that are not there, are no faults. */
  readonly isPart: boolean
  /** What records that were made later say of other runs is left out: it may be of what was not read yet. Epoch ms. */
  readonly readFrom: number
  /** The records of each chain that are distinguished from repeated ones. */
  readonly hashes?: number
  /** The heads of the chains that the gateway keeps besides their records. */
  readonly heads?: readonly KeptHead[]
  /** The time for which records are kept, where that is shorter than they say, as of rotated files. */
  readonly retentionMs?: number
}

/**
 * @param lines without line breaks, of each chain in its order
 * @param trusted the keys of which one must have signed each; undefined: those that the records name
 * @param now the time of day: milliseconds since the epoch
 */
export async function verifyAudit(
  lines: AsyncIterable<string>,
  trusted: readonly KeyObject[] | undefined,
  now: number,
  extent: Partial<AuditExtent> = {}
): Promise<AuditReport> {
  const { isPart = false, readFrom = Infinity, hashes = hashesKept, retentionMs: longestMs = Infinity } = extent
  const { heads: ofGateway = [] } = extent
  const keptMs = (ms: unknown): number => Math.min(msOrEver(ms), longestMs)
  const chains = new Map<string, ChainState>()
  /** The furthest head of each chain that signed records name. */
  const named = new Map<string, KnownHead>()
  const goneAt = ({ time, retentionMs }: ChainHead, otherwise: unknown): number =>
    Date.parse(time) + keptMs(retentionMs ?? otherwise)
  /** The chains of which records were deleted for those of others. */
  const deleted = new Set<string>()
  const keys = new Set<string>()
  const problems: string[] = []
  const notes: string[] = []
  let [records, signatures] = [0, 0]
  const list = (found: string[], text: string): void => {
    if (found.length < maxListed) found.push(text)
  }
  const wrong = (text: string): void => list(problems, text)

  function read(line: string): void {
    const record = parsedRecord(line)
    if (record === undefined) {
      // What matters is whether its chain misses it.
      if (line.startsWith('{"chain":"')) return list(notes, `line ${records} was cut off while it was written`)
      return wrong(`line ${records} is no record of an audit log`)
    }
    const { chain, seq, prev, kind } = record
    const at = `record ${seq} of ${chain}`
    const hash = hashOfRecord(line)
    const known = chains.get(chain)
    if (known !== undefined && seq <= known.last.seq) {
      if (known.hashes.get(seq) !== hash) wrong(`${at} comes again, and differs`)
      return
    }
    if (known !== undefined) checkPlace(known, record, at)
    // A chain whose oldest segments are beyond their time begins with any record.
    else if (seq === 1 && (prev !== '' || kind !== 'begin')) wrong(`${at} is no first record`)
    const state = known ?? newState(record)
    chains.set(chain, state)
    state.last = record
    state.hash = hash
    state.hashes.set(seq, hash).delete(seq - hashes)
    const time = Date.parse(record.time)
    if (isSignedWell(state, record, line, at)) {
      const { since, retentionMs } = record.members
      state.cut ??= { since: Date.parse(String(since)), retentionMs: keptMs(retentionMs) }
      state.unsigned = 0
      state.signedAt = time
      state.signatures++
      if (kind === 'end') state.hasEnded = true
      return
    }
    if (state.unsigned === 0) [state.unsignedFrom, state.unsignedMs] = [time, Math.max(0, state.signedAt - time)]
    state.unsignedMs = Math.max(state.unsignedMs, Math.abs(time - state.unsignedFrom))
    if (++state.unsigned === maxUnsigned + 1) wrong(`${at} and ${maxUnsigned} before it have no signature`)
  }

  function checkPlace({ last, hash, hasEnded }: ChainState, { chain, seq, prev }: AuditRecord, at: string): void {
    if (hasEnded) wrong(`${at} comes after the end of its run`)
    else if (seq > last.seq + 1) wrong(`missing before ${at}: ${seq - last.seq - 1}`)
    else if (prev !== hash) wrong(`record ${last.seq} of ${chain}, or ${at}, was altered`)
  }

  /** @returns whether it has a signature, and a valid one */
  function isSignedWell(state: ChainState, { kind, members }: AuditRecord, line: string, at: string): boolean {
    const split = splitSignature(line)
    if (split === undefined) {
      if (signedKinds.has(kind)) wrong(`${at} is of the kind ${kind}, and has no signature`)
      return false
    }
    signatures++
    const named = namedKey(members['publicKey'])
    if (named !== undefined) keys.add(String(members['publicKey']))
    state.key ??= named
    const candidates = trusted ?? (state.key === undefined ? [] : [state.key])
    if (!candidates.some((key) => verify(null, Buffer.from(split.signed), key, split.signature))) {
      wrong(`${at} is signed by another key, or was altered`)
      return false
    }
    learn(members)
    return true
  }

  function learn({ heads: others, deleted: gone, retentionMs, time }: JsonObject): void {
    if (Date.parse(String(time)) > readFrom) return
    for (const other of Array.isArray(others) ? (others as unknown[]) : []) {
      if (!isChainHead(other)) continue
      named.set(other.chain, namedHead(named.get(other.chain), other, goneAt(other, retentionMs)))
    }
    for (const chain of Array.isArray(gone) ? (gone as unknown[]) : []) deleted.add(String(chain))
  }

  function checkWhole(chain: string, state: ChainState): void {
    const { first, last, signatures, unsigned, unsignedMs, hasEnded } = state
    if (first.seq > 1 && !isPart) checkBeginning(chain, state)
    if (signatures === 0 && !(isPart && first.seq > 1))
      wrong(`${chain} has no valid signature: nothing vouches for its records`)
    else if (unsigned > 0) {
      const unvouched = `what follows record ${last.seq - unsigned} of ${chain}: ${unsigned}`
      if (unsignedMs <= maxUnsignedMs) list(notes, `nothing vouches yet for ${unvouched}`)
      else wrong(`nothing vouches, over more than five minutes, for ${unvouched}; a gateway signs each minute`)
    }
    if (!hasEnded) list(notes, `${chain} has no end: its gateway runs, was killed, or its last records were cut off`)
  }

  /** The last record that is missing is younger than the signature before it: it may be gone where that is too old. */
  function checkBeginning(chain: string, { first: { seq }, cut }: ChainState): void {
    const begins = `${chain} begins with record ${seq}: those before`
    if (deleted.has(chain)) list(notes, `${begins} had to make room for others`)
    else if (cut !== undefined && cut.since + cut.retentionMs > now + maxUnsignedMs)
      wrong(`${begins} were removed before their time, or are in files that were not given`)
    else list(notes, `${begins} had to go, or were removed`)
  }

  for await (const line of lines) {
    if (line.trim() === '') continue
    records++
    read(line)
  }
  // Earlier versions did not say how long records are kept: then nobody knows whether what is gone was removed.
  const kept = ofGateway.map((head): KnownHead => ({
    ...head,
    goneAt: goneAt(head, 0),
    knownBy: 'the gateway',
    madeRoom: head.madeRoom
  }))
  for (const { isWrong, text } of verdictsOn([...named.values(), ...kept], chains, { deleted, isPart, now }))
    list(isWrong ? problems : notes, text)
  for (const [chain, state] of chains) checkWhole(chain, state)
  if (records === 0) wrong('there are no records')
  return { records, chains: chains.size, signatures, keys: [...keys], problems, notes }
}

const newState = (first: AuditRecord): ChainState => ({
  first,
  last: first,
  hash: '',
  key: undefined,
  signatures: 0,
  signedAt: 0,
  unsigned: 0,
  unsignedFrom: 0,
  unsignedMs: 0,
  cut: undefined,
  hasEnded: false,
  hashes: new Map()
})

const signedKinds: ReadonlySet<string> = new Set(['begin', 'checkpoint', 'end'])

const msOrEver = (ms: unknown): number => (typeof ms === 'number' ? ms : Infinity)
