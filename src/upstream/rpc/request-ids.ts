// Ids of requests to an upstream. Without a stream for each call, only the id tells which call a response belongs to.
// If ids were sequential, anybody who can make a server print a line could answer the next call of another caller.

import { hash } from 'node:crypto'
import type { LentSession, UpstreamSession } from '../../protocol/seams.ts'

/** Servers that keep an id in 32 bits answer a larger one with another id. */
const mask = 0x7fff_ffff
/** The ids of one turn. A session that several connections use one after the other has a turn for each of them. */
const idsInTurn = 2 ** 24
/**
 * A connection begins at a random place of its turn, below this: if the store loses a write and two connections get the
 * same turn, they are unlikely to use the same ids.
 */
export const maxStart = 2 ** 23

/** The number of ids in a series that is lent to another connection. */
export const lentIds = 2 ** 10
/** The ids of a turn that may be lent; the rest is for the connection whose turn it is. */
const lendableIds = idsInTurn * 0.75

export interface RequestIds {
  (): number
  /** Reserves a series of `lentIds` ids. @returns its start, for `createLentIds`; undefined: no series is left */
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
 * Creates positive ids below 2^31 in a secret order. No id comes twice on a connection (2025-11-25 basic "Requests": an
 * id MUST NOT have been used before in the session), nor in two turns of the same session.
 * @param random returns numbers from 0 to 1 (1 excluded); the same numbers for all turns of a session
 * @param turn how many connections have used the session before
 * @param start where the ids begin in the turn, below `maxStart`
 */
export function createRequestIds(random: () => number, turn = 0, start = 0): RequestIds {
  const { first, idOf, placeOf } = createOrder(random)
  const begin = first + turn * idsInTurn
  let count = (begin + start) & mask

  function next(): number {
    count = (count + 1) & mask
    const id = idOf(count)
    // 0 is skipped, because many servers treat it as a missing id.
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
 * Creates the ids of a series that another connection has lent and does not use itself.
 * @param random returns the same numbers as for that connection
 * @param from the start of the series, from `lend`
 * @returns `next` returns undefined when no id is left
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
      // Each step is reversible, so different counts give different ids: add, multiply by an odd number, and xor the
      // upper bits into the lower ones.
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

/** The ids of an HTTP connection: of its own turn, of which it can lend some, or of a series that was lent to it. */
export function createSessionIds({ secret, turn }: Pick<UpstreamSession, 'secret' | 'turn'>, start: number) {
  const own = createRequestIds(numbersFrom(secret), turn, start)
  let lent: ReturnType<typeof createLentIds> | undefined
  let [from, isOver] = [0, false]
  return {
    /** @returns undefined if none is left */
    next: (): number | undefined => (lent === undefined ? own() : lent.next()),
    /** @returns undefined if they are not limited */
    series: () => lent && { from, left: isOver ? 0 : lent.left() },
    isIn: own.isIn,
    /** Ends the ids: the remaining ones are for requests that are being sent already. */
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
