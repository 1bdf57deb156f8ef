// The first look at a JSON text, in steps: it limits what the text may consist of before any of it is parsed, and finds
// where long values can be cut. It judges no more of the grammar than that takes.

import { inexactNumber, type NumberSpan } from './json-numbers.ts'
import type { Units } from './json-text.ts'

export interface JsonLimits {
  readonly maxDepth: number
  readonly maxValues: number
  /**
   * Takes the memory for so many values of a long text, before they are made.
   * @throws JsonLimitError, GatewayError where there is none
   */
  readonly reserve?: ((values: number) => void) | undefined
  /** Does anybody pass it on? Then long values keep their part of it, see `keepSource`. */
  readonly keepsSource?: boolean
}

/** The lengths of steps, in characters or bytes. Tests take short ones. */
export interface StepLengths {
  readonly piece: number
  readonly stringPiece: number
  /** Scanned in one step. */
  readonly scan: number
  /** The characters of a string that are looked at one by one, before its end is searched for. */
  readonly near: number
}
/** Characters of one number: 4096-bit integers have 1,234 digits. */
const maxNumberLength = 4_096
/**
 * Numbers that no double holds. Each takes ten times the memory of another one, and several times as long.
 */
export const maxInexact = 5_000
/**
 * Of one object. V8 keeps so many as a hash table, and whatever lists or copies them does all of them in one go: 10 ms
 * for these. No text of a single step (protocol/json.ts) is long enough for more.
 */
export const maxMembers = 10_000

/** The text may be JSON, and holds too much of something; the message is the end of "The JSON text ...". */
export class JsonLimitError extends SyntaxError {}

/** An array, an object or a string that is longer than a piece. */
export interface LongValue {
  readonly start: number
  readonly end: number
  readonly kind: 'array' | 'object' | 'string'
  readonly parts: readonly Part[]
}

/** Elements between two commas; or one element that is long. */
export interface Part {
  readonly from: number
  readonly to: number
  readonly long?: LongValue
}

/** An array or object that the scan is in. */
interface OpenValue {
  readonly start: number
  readonly isArray: boolean
  /** The place where the elements begin that are in no part yet. */
  from: number
  /** Behind the last comma, or the bracket. */
  element: number
  /** The current element, where it is long. */
  long: LongValue | undefined
  commas: number
  readonly parts: Part[]
}

/** Finds where the parts of long values begin and end, and the numbers that need care. */
export function* scanJson(
  json: Units,
  { maxDepth, maxValues }: JsonLimits,
  { piece: pieceLength, scan: scanLength, near: nearLength }: StepLengths
) {
  const open: OpenValue[] = []
  const numbers: NumberSpan[] = []
  let root: LongValue | undefined
  let current: OpenValue | undefined
  let values = 1
  let isMember = false
  let pause = scanLength

  function ended(value: LongValue): void {
    if (current === undefined) {
      if (root !== undefined) throw new SyntaxError('not valid JSON')
      root = value
      return
    }
    if (current.long !== undefined) throw new SyntaxError('not valid JSON')
    if (current.element > current.from) current.parts.push({ from: current.from, to: current.element - 1 })
    current.from = current.element
    current.long = value
  }

  function count(): void {
    if (++values > maxValues) throw new JsonLimitError(`holds more than ${maxValues} values`)
  }

  for (let at = 0; at < json.length; at++) {
    if (at >= pause) {
      pause = at + scanLength
      yield
    }
    const unit = json.at(at)
    if (unit === 0x22) {
      const start = at
      for (at = stringEnd(json, at + 1, pause, nearLength); at < json.length;) {
        if (json.at(at) === 0x22) break
        pause = at + scanLength
        yield
        at = stringEnd(json, at, pause, nearLength)
      }
      if (at >= json.length) throw new SyntaxError('not valid JSON')
      if (at - start <= pieceLength) continue
      if (current?.isArray === false && !isMember) throw new JsonLimitError('holds a member name of excessive length')
      ended({ start, end: at + 1, kind: 'string', parts: [] })
    } else if (unit === 0x2c) {
      count()
      if (current === undefined) throw new SyntaxError('not valid JSON')
      if (++current.commas === maxMembers && !current.isArray)
        throw new JsonLimitError(`holds an object of more than ${maxMembers} members`)
      const { long, from } = current
      if (long !== undefined) current.parts.push({ from, to: at, long })
      else if (at - from > pieceLength) current.parts.push({ from, to: at })
      if (long !== undefined || at - from > pieceLength) current.from = at + 1
      current.long = undefined
      current.element = at + 1
      isMember = false
    } else if (unit === 0x3a) isMember = true
    else if (unit === 0x5b || unit === 0x7b) {
      count()
      if (open.length === maxDepth) throw new JsonLimitError(`is nested deeper than ${maxDepth} levels`)
      const from = at + 1
      current = { start: at, isArray: unit === 0x5b, from, element: from, long: undefined, commas: 0, parts: [] }
      open.push(current)
      isMember = false
    } else if (unit === 0x5d || unit === 0x7d) {
      const closed = open.pop()
      if (closed === undefined || closed.isArray !== (unit === 0x5d)) throw new SyntaxError('not valid JSON')
      current = open.at(-1)
      const { start, from, long, parts, isArray } = closed
      if (at - start <= pieceLength) continue
      parts.push(long === undefined ? { from, to: at } : { from, to: at, long })
      ended({ start, end: at + 1, kind: isArray ? 'array' : 'object', parts })
    } else if (unit === 0x2d || (unit >= 0x30 && unit <= 0x39)) {
      const start = at
      while (at + 1 < json.length && isNumberUnit(json.at(at + 1))) at++
      if (at - start >= maxNumberLength)
        throw new JsonLimitError(`holds a number of more than ${maxNumberLength} characters`)
      if (at - start < 4 || !inexactNumber(json, start, at + 1)) continue
      if (numbers.length === maxInexact)
        throw new JsonLimitError(`holds more than ${maxInexact} numbers that no double holds; send them as strings`)
      numbers.push([start, at + 1])
    }
  }
  if (open.length > 0) throw new SyntaxError('not valid JSON')
  return { root, numbers, values }
}

/**
 * @param from a place in a string where no escape is under way
 * @param nearLength characters that are looked at one by one, before its end is searched for
 * @returns its closing quote, or such a place at `until` or behind it; the length of the text where it does not end
 */
export function stringEnd(json: Units, from: number, until: number, nearLength: number): number {
  let at = from
  let searchFrom = at + nearLength
  while (at < until) {
    if (at >= searchFrom) {
      // To search for each escape would take longer than to parse them; and, where quotes are near each other, for each
      // quote.
      const quote = json.find(0x22, at)
      if (quote === -1) return json.length
      if (!isEscaped(json, quote, at)) return quote
      at = quote + 1
      searchFrom = at + nearLength
    } else {
      const unit = json.at(at)
      if (unit === 0x22) return at
      at += unit === 0x5c ? 2 : 1
    }
  }
  return Math.min(at, json.length)
}

/**
 * Does a backslash escape this character of a string? Not where that is itself the second of two.
 * @param from a place before it where no escape is under way
 */
export function isEscaped(json: Units, at: number, from: number): boolean {
  let first = at
  while (first > from && json.at(first - 1) === 0x5c) first--
  return (at - first) % 2 === 1
}

export const isNumberUnit = (unit: number): boolean =>
  (unit >= 0x30 && unit <= 0x39) || unit === 0x2e || unit === 0x65 || unit === 0x45 || unit === 0x2b || unit === 0x2d
