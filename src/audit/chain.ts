// A chain of audit records: each names the hash of the one before it, and some are signed, so that whoever alters,
// removes or inserts a record afterwards is found out (verify.ts). Of each tenant a process has one chain at a time.

import { type KeyObject, hash, sign } from 'node:crypto'
import { isObject, type JsonObject } from '../protocol/messages.ts'

/** The head of a chain at some time. */
export interface ChainHead {
  readonly chain: string
  readonly seq: number
  readonly hash: string
  /** ISO 8601. */
  readonly time: string
  /** The time for which its records are kept. Not given: by an earlier version, or it is not known. */
  readonly retentionMs?: number
}

export type Chain = ReturnType<typeof createChain>

/** Records after which one is signed, and milliseconds after which one is where there is any. */
export const recordsPerSignature = 1_000
export const checkpointMs = 60_000

/** Kinds of records that are always signed. A chain begins with `begin`, and nothing comes after `end`. */
/** What records are of; the last three are signed. */
export const recordKinds = [
  ...(['call', 'refused', 'session', 'login', 'change', 'lost'] as const),
  ...(['begin', 'checkpoint', 'end'] as const)
] as const
export type RecordKind = (typeof recordKinds)[number]
export type SignedKind = 'begin' | 'checkpoint' | 'end'

/**
 * @param name unique among all chains
 * @param keys Ed25519. Each signed record names the public one, since the first may be beyond its time
 */
export function createChain(
  name: string,
  { privateKey, publicKey }: { readonly privateKey: KeyObject; readonly publicKey: string },
  wall: { now(): number }
) {
  let head: ChainHead = { chain: name, seq: 0, hash: '', time: '' }
  /** The time of the last signed record. */
  let since: string | undefined

  /** @param finish makes the line of the record, of its line without a signature */
  function add(kind: RecordKind, members: JsonObject, finish: (line: string) => string): string {
    const seq = head.seq + 1
    const time = new Date(wall.now()).toISOString()
    const line = finish(oneLine(JSON.stringify({ chain: name, seq, prev: head.hash, time, kind, ...members })))
    head = { chain: name, seq, hash: hashOfRecord(line), time }
    return line
  }

  return {
    name,
    /** The last record. */
    get head() {
      return head
    },
    /** @returns the line of the next record, without a line break */
    record: (kind: RecordKind, members: JsonObject): string => add(kind, members, (line) => line),
    /** Makes a signed record, whose signature covers all before it, and which names the time of the one before it. */
    signedRecord(kind: SignedKind, members: JsonObject): string {
      const line = add(kind, { publicKey, ...(since !== undefined && { since }), ...members }, (unsigned) =>
        withSignature(unsigned, sign(null, Buffer.from(unsigned), privateKey).toString('base64url'))
      )
      since = head.time
      return line
    }
  }
}

/** SHA-256 of the line, base64url. */
export const hashOfRecord = (line: string): string => hash('sha256', line, 'base64url')

/**
 * JSON escapes all line breaks but NEL, LS and PS, which some readers take for such (Unicode 16 section 5.8): a record
 * that holds what a caller sent would be several lines to them.
 */
const oneLine = (json: string): string =>
  json.replace(/[\u0085\u2028\u2029]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)

const withSignature = (line: string, signature: string): string => `${line.slice(0, -1)},"signature":"${signature}"}`

/** @returns what was signed, and the signature; undefined for a record without one */
export function splitSignature(line: string): { readonly signed: string; readonly signature: Buffer } | undefined {
  const match = /^(.*),"signature":"([A-Za-z0-9_-]+)"\}$/s.exec(line)
  if (match === null) return undefined
  const [, head = '', signature = ''] = match
  return { signed: `${head}}`, signature: Buffer.from(signature, 'base64url') }
}

/** The form of a chain's name: a report prints nothing that the writer of the log chose. */
const chainName = /^[\w()-]{1,100}\/[\w-]{1,100}$/

/** A record as a reader finds it. */
export interface AuditRecord extends Pick<ChainHead, 'chain' | 'seq' | 'time'> {
  readonly prev: string
  readonly kind: string
  readonly members: JsonObject
}

/** @returns undefined for what is none */
export function parsedRecord(line: string): AuditRecord | undefined {
  try {
    const members: unknown = JSON.parse(line)
    if (!isObject(members)) return undefined
    const { chain, seq, prev, time, kind } = members
    if (!isChainName(chain) || typeof prev !== 'string' || typeof kind !== 'string') return undefined
    if (typeof time !== 'string' || !Number.isSafeInteger(seq) || Number(seq) < 1) return undefined
    return { chain, seq: Number(seq), prev, time, kind, members }
  } catch {
    return undefined
  }
}

const isChainName = (value: unknown): value is string => typeof value === 'string' && chainName.test(value)

export const isChainHead = (value: unknown): value is ChainHead =>
  isObject(value) &&
  isChainName(value['chain']) &&
  typeof value['hash'] === 'string' &&
  typeof value['time'] === 'string' &&
  Number.isSafeInteger(value['seq'])
