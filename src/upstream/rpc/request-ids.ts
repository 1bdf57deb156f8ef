// Ids of requests to an upstream. On a connection without a stream for each call an answer belongs to the call whose id
// it has: whoever can write one line of a server's output could answer the next call of anybody, if ids were counted.

import { hash } from 'node:crypto'

/** Servers that keep an id in 32 bits answer a larger one with another id. */
const mask = 0x7fff_ffff
/** Of a session that several connections have, one after the other. */
const idsInTurn = 2 ** 24
/**
 * Where a connection begins in its turn, below this: should a store lose what was written, and two have the same turn,
 * they hardly have the same ids.
 */
export const maxStart = 2 ** 23

/** @returns the same numbers between 0 and 1 for the same secret: 16 of them, again and again */
export function numbersFrom(secret: string): () => number {
  const digest = hash('sha512', secret, 'buffer')
  let at = 0
  return () => digest.readUInt32BE((at++ % 16) * 4) / 2 ** 32
}

/**
 * @param random between 0 and 1
 * @param start below `maxStart`
 * @returns gives a positive integer below 2^31, in a secret order: none comes twice in the life of a connection
 * (2025-11-25 basic "Requests": an id MUST NOT have been used before in the session), and of the connections that have
 * one session in turn, made from the same numbers, each has others
 */
export function createRequestIds(random: () => number, turn = 0, start = 0): () => number {
  const secret = (): number => Math.floor(random() * 2 ** 32)
  const rounds = Array.from({ length: 4 }, () => ({ add: secret(), factor: secret() | 1 }))
  let count = (secret() + turn * idsInTurn + start) & mask

  return function next(): number {
    count = (count + 1) & mask
    let id = count
    // Each step can be reversed, so that different counts give different ids: a sum, a product with an odd number, and
    // the upper bits on the lower ones.
    for (const { add, factor } of rounds) {
      id = Math.imul((id + add) & mask, factor) & mask
      id ^= id >>> 16
    }
    // Many servers take 0 for no id.
    return id === 0 ? next() : id
  }
}
