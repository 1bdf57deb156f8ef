// A chain of audit records: each names the hash of the one before it, and some are signed, so that whoever alters,
// removes or inserts a record afterwards is found out (verify.ts). A process has one chain for each tenant.

import { type KeyObject, hash, sign } from 'node:crypto'
import type { JsonObject } from '../protocol/messages.ts'

/** Where a chain stood at some time. */
export interface ChainHead {
  readonly chain: string
  readonly seq: number
  readonly hash: string
  /** ISO 8601. */
  readonly time: string
}

export type Chain = ReturnType<typeof createChain>

/**
 * @param name unique among all chains of the tenant
 * @param privateKey Ed25519
 */
export function createChain(name: string, privateKey: KeyObject, wall: { now(): number }) {
  let head: ChainHead = { chain: name, seq: 0, hash: '', time: '' }

  function next(kind: string, members: JsonObject): string {
    const [seq, time] = [head.seq + 1, new Date(wall.now()).toISOString()]
    return JSON.stringify({ chain: name, seq, prev: head.hash, time, kind, ...members })
  }

  function advance(line: string): string {
    head = { chain: name, seq: head.seq + 1, hash: hashOfRecord(line), time: new Date(wall.now()).toISOString() }
    return line
  }

  return {
    /** The last record. */
    get head() {
      return head
    },
    /** @returns the line of the next record, without a line break */
    record: (kind: string, members: JsonObject): string => advance(next(kind, members)),
    /** The same for one whose signature vouches for all before it. */
    signedRecord(kind: string, members: JsonObject): string {
      const line = next(kind, members)
      return advance(withSignature(line, sign(null, Buffer.from(line), privateKey).toString('base64url')))
    }
  }
}

/** SHA-256 of the line, base64url. */
export const hashOfRecord = (line: string): string => hash('sha256', line, 'base64url')

const withSignature = (line: string, signature: string): string => `${line.slice(0, -1)},"signature":"${signature}"}`

/** @returns what was signed, and the signature; undefined for a record without one */
export function splitSignature(line: string): { readonly signed: string; readonly signature: Buffer } | undefined {
  const match = /^(.*),"signature":"([A-Za-z0-9_-]+)"\}$/s.exec(line)
  if (match === null) return undefined
  const [, head = '', signature = ''] = match
  return { signed: `${head}}`, signature: Buffer.from(signature, 'base64url') }
}
