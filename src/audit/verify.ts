// Is an audit log whole? Reads the records of any number of chains and says what was altered, removed, inserted or cut
// off.

import { type KeyObject, verify } from 'node:crypto'
import { isObject, type JsonObject } from '../protocol/messages.ts'
import { type ChainHead, hashOfRecord, splitSignature } from './chain.ts'
import { auditPublicKey } from './keys.ts'

/** Of a chain: records that are told from repeated ones, which a write that had to be made again leaves. */
const hashesKept = 10_000
/** Problems that are listed. */
const maxProblems = 100

export interface AuditReport {
  readonly records: number
  readonly chains: number
  readonly signatures: number
  /** The keys that records name, base64url. Without a key of one's own, these were believed. */
  readonly keys: readonly string[]
  /** What is wrong; at most a hundred. */
  readonly problems: readonly string[]
  /** Chains without an end: their gateway runs, or was killed, or their last records were cut off. */
  readonly open: readonly string[]
}

interface ChainState {
  seq: number
  hash: string
  isEnded: boolean
  readonly hashes: Map<number, string>
}

/**
 * @param lines without line breaks, of each chain in its order
 * @param trusted the key that must have signed them
 */
export async function verifyAudit(lines: AsyncIterable<string>, trusted: KeyObject | undefined): Promise<AuditReport> {
  const chains = new Map<string, ChainState>()
  const heads = new Map<string, ChainHead>()
  const keys = new Set<string>()
  const problems: string[] = []
  let [records, signatures] = [0, 0]
  const report = (problem: string): void => {
    if (problems.length < maxProblems) problems.push(problem)
  }

  function read(line: string): void {
    const record = parsed(line)
    if (record === undefined) return report(`line ${records} is no record of an audit log`)
    const { chain, seq, prev, kind } = record
    const at = `record ${seq} of ${chain}`
    const hash = hashOfRecord(line)
    const state = chains.get(chain)
    if (state !== undefined && seq <= state.seq) {
      if (state.hashes.get(seq) !== hash) report(`${at} comes again, and differs`)
      return
    }
    const signed = splitSignature(line)
    const isSigned = signed !== undefined
    if (state === undefined) {
      // A chain whose oldest segments are beyond their time begins with any record.
      if (seq === 1 && prev !== '') report(`${at} is no first record`)
    } else if (seq > state.seq + 1) report(`missing before ${at}: ${seq - state.seq - 1}`)
    else if (prev !== state.hash) report(`record ${state.seq} of ${chain}, or ${at}, was altered`)
    if (isSigned) checkSignature(record, signed, at)
    const hashes = (state?.hashes ?? new Map<number, string>()).set(seq, hash)
    hashes.delete(seq - hashesKept)
    chains.set(chain, { seq, hash, isEnded: isSigned && kind === 'end', hashes })
  }

  function checkSignature(
    record: Head,
    { signed, signature }: { signed: string; signature: Buffer },
    at: string
  ): void {
    signatures++
    const { publicKey, heads: others } = record.members
    if (typeof publicKey === 'string') keys.add(publicKey)
    const key = trusted ?? keyOf([...keys].at(-1))
    if (key === undefined || !verify(null, Buffer.from(signed), key, signature)) {
      report(`${at} is signed by another key, or was altered`)
      return
    }
    for (const other of Array.isArray(others) ? (others as unknown[]) : []) {
      if (!isHead(other)) continue
      const known = heads.get(other.chain)
      if (known === undefined || known.seq < other.seq) heads.set(other.chain, other)
    }
  }

  for await (const line of lines) {
    if (line.trim() === '') continue
    records++
    read(line)
  }
  for (const { chain, seq, hash } of heads.values()) {
    const state = chains.get(chain)
    if (state === undefined) report(`${chain} is missing: another chain knew it with ${seq} records`)
    else if (state.seq < seq) report(`${chain} is cut off after record ${state.seq}: another chain knew ${seq}`)
    else if ((state.hashes.get(seq) ?? hash) !== hash)
      report(`record ${seq} of ${chain} is not the one that another chain knew`)
  }
  if (records === 0) report('there are no records')
  const open = [...chains].filter(([, { isEnded }]) => !isEnded).map(([chain]) => chain)
  return { records, chains: chains.size, signatures, keys: [...keys], problems, open }
}

interface Head extends Pick<ChainHead, 'chain' | 'seq'> {
  readonly prev: string
  readonly kind: string
  readonly members: JsonObject
}

function parsed(line: string): Head | undefined {
  try {
    const members: unknown = JSON.parse(line)
    if (!isObject(members)) return undefined
    const { chain, seq, prev, kind } = members
    if (typeof chain !== 'string' || typeof prev !== 'string' || typeof kind !== 'string') return undefined
    return typeof seq === 'number' && Number.isSafeInteger(seq) ? { chain, seq, prev, kind, members } : undefined
  } catch {
    return undefined
  }
}

const isHead = (value: unknown): value is ChainHead =>
  isObject(value) &&
  typeof value['chain'] === 'string' &&
  typeof value['hash'] === 'string' &&
  typeof value['seq'] === 'number'

function keyOf(text: string | undefined): KeyObject | undefined {
  try {
    return text === undefined ? undefined : auditPublicKey(text)
  } catch {
    return undefined
  }
}
