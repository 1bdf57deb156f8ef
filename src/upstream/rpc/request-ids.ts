// Ids of requests to an upstream. On a connection without a stream for each call an answer belongs to the call whose id
// it has: whoever can write one line of a server's output could answer the next call of anybody, if ids were counted.

import { hash } from 'node:crypto'
import type { LentSession, UpstreamSession } from '../../protocol/seams.ts'

/** Servers that keep an id in 32 bits answer a larger one with another id. */
const mask = 0x7fff_ffff
/** Of a session that several connections have, one after the other. */
const idsInTurn = 2 ** 24
/**
 * Where a connection begins in its turn, below this: should a store lose what was written, and two have the same turn,
 * they hardly have the same ids.
 */
export const maxStart = 2 ** 23

/** In a series that is lent to another connection. */
export const lentIds = 2 ** 10
/** Of a turn: what comes after these is for the connection that has it alone. */
const lendableIds = idsInTurn * 0.75

export interface RequestIds {
  (): number
  /** Gives a series of `lentIds` ids away. @returns where it begins, for `createLentIds`; undefined: no more */
  lend(): number | undefined
  /** Is it an id of the series that was given away from there, also by one of those before in the session? */
  isIn(from: number, id: unknown): boolean
}

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
export function createRequestIds(random: () => number, turn = 0, start = 0): RequestIds {
  const { first, idOf, placeOf } = createOrder(random)
  const begin = first + turn * idsInTurn
  let count = (begin + start) & mask

  function next(): number {
    count = (count + 1) & mask
    const id = idOf(count)
    // Many servers take 0 for no id.
    return id === 0 ? next() : id
  }
  const lend = (): number | undefined => {
    const from = count
    if (((from - begin) & mask) + lentIds > lendableIds) return undefined
    count = (count + lentIds) & mask
    return from
  }
  const isIn = (from: number, id: unknown): boolean =>
    typeof id === 'number' && ((placeOf(id) - from - 1) & mask) < lentIds
  return Object.assign(next, { lend, isIn })
}

/**
 * Ids of a series that another connection has given away: none of those that it gives itself, before or after.
 * @param random the same numbers as there
 * @returns `next`: undefined once there are none left
 */
export function createLentIds(random: () => number, from: number) {
  const { idOf } = createOrder(random)
  let given = 0
  function next(): number | undefined {
    if (given >= lentIds) return undefined
    const id = idOf((from + ++given) & mask)
    return id === 0 ? next() : id
  }
  return { next, left: () => lentIds - given }
}

/** The secret order. @returns `idOf`: of each place in it another id; `placeOf`: the other way round */
function createOrder(random: () => number) {
  const secret = (): number => Math.floor(random() * 2 ** 32)
  const rounds = Array.from({ length: 4 }, () => ({ add: secret(), factor: secret() | 1 }))
  return {
    first: secret(),
    idOf(count: number): number {
      let id = count
      // Each step can be reversed, so that different counts give different ids: a sum, a product with an odd number,
      // and the upper bits on the lower ones.
      for (const { add, factor } of rounds) {
        id = Math.imul((id + add) & mask, factor) & mask
        id ^= id >>> 16
      }
      return id
    },
    placeOf(id: number): number {
      let count = id
      for (const { add, factor } of rounds.toReversed()) {
        count ^= count >>> 16
        count = (Math.imul(count, inverseOf(factor)) - add) & mask
      }
      return count
    }
  }
}

/** @returns by what a product with the odd number is undone, modulo 2^32 (Newton: each step doubles the right bits) */
function inverseOf(factor: number): number {
  let inverse = factor
  for (let bits = 3; bits < 32; bits *= 2) inverse = Math.imul(inverse, 2 - Math.imul(factor, inverse))
  return inverse
}

export type SessionIds = ReturnType<typeof createSessionIds>

/** Of a connection over HTTP, which gives some away, or has those of another one. */
export function createSessionIds({ secret, turn }: Pick<UpstreamSession, 'secret' | 'turn'>, start: number) {
  const own = createRequestIds(numbersFrom(secret), turn, start)
  let lent: ReturnType<typeof createLentIds> | undefined
  let [from, isOver] = [0, false]
  return {
    /** @returns undefined where none are left */
    next: (): number | undefined => (lent === undefined ? own() : lent.next()),
    /** @returns undefined where they have no end */
    series: () => lent && { from, left: isOver ? 0 : lent.left() },
    isIn: own.isIn,
    /** Those that are left are for requests that are on their way. */
    end(): void {
      isOver = true
    },
    lend: own.lend,
    use(session: LentSession): void {
      ;[from, isOver] = [session.ids, false]
      lent = createLentIds(numbersFrom(session.secret), session.ids)
    }
  }
}
