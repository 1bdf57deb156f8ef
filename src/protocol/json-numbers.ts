// Numbers of a JSON text that a double would change: they are kept as they were written.

import type { Units } from './json-text.ts'
import { ownPart } from './own-text.ts'

export type NumberSpan = readonly [start: number, end: number]

const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON

/** Would a double change the number? Fifteen significant digits always fit; more do if it prints as the same text. */
export function inexactNumber(json: Units, start: number, end: number): boolean {
  let digits = 0
  /** Up to the last digit that is no zero. */
  let significant = 0
  let exponent = false
  for (let at = start; at < end && !exponent; at++) {
    const unit = json.at(at)
    if (unit === 0x65 || unit === 0x45) exponent = true
    else if (unit >= 0x30 && unit <= 0x39 && (unit !== 0x30 || digits > 0)) {
      digits++
      if (unit !== 0x30) significant = digits
    }
  }
  // Of very long ones, a double is infinite, or zero.
  if (!exponent && significant <= 15 && end - start < 300) return false
  const source = json.text(start, end)
  const value = Number(source)
  // Not a number at all, or a member name: the parser refuses it.
  if (Number.isNaN(value) || isName(json, end)) return false
  if (!Number.isFinite(value)) return true
  return (significant > 15 && String(value) !== source) || (value === 0 && significant > 0)
}

function isName(json: Units, end: number): boolean {
  let at = end
  while (isBlank(json.at(at))) at++
  return json.at(at) === 0x3a
}

const isBlank = (unit: number): boolean => unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09

/**
 * JSON.parse, except that these numbers are serialised again exactly as they were written: a 64-bit id in the arguments
 * of a tool must reach the upstream unchanged.
 * @throws SyntaxError
 */
export function markNumbers(text: string, numbers: readonly NumberSpan[]): unknown {
  // A reviver costs seconds on a large text. Instead each of these numbers is parsed as a string that no other string
  // of the text can equal: it begins with a control character, which JSON only allows as an escape, and the text has no
  // such escape.
  const mark = freeMark(text)
  let marked = ''
  let from = 0
  numbers.forEach(([start, end], index) => {
    marked += `${text.slice(from, start)}"\\u00${mark}${index}"`
    from = end
  })
  const first = String.fromCharCode(Number.parseInt(mark, 16))
  return unmarked(
    JSON.parse(marked + text.slice(from)),
    first,
    numbers.map(([start, end]) => rawJson(ownPart(text, start, end)))
  )
}

/** Two hex digits of a control character that the text does not hold in escaped form. */
function freeMark(text: string): string {
  const escapes = text.toLowerCase()
  for (let code = 0; code < 0x20; code++) {
    const hex = code.toString(16).padStart(2, '0')
    // The short escapes (\b, \t, \n, \f, \r) would be a second spelling.
    if (![0x08, 0x09, 0x0a, 0x0c, 0x0d].includes(code) && !escapes.includes(`\\u00${hex}`)) return hex
  }
  throw new SyntaxError('the text escapes every control character and has numbers of many digits')
}

/** Puts the numbers back in place of their marks. Not recursive, because the caller may allow deep nesting. */
function unmarked(value: unknown, mark: string, numbers: readonly unknown[]): unknown {
  const number = (text: string): unknown => (text.startsWith(mark) ? numbers[Number(text.slice(1))] : undefined)
  if (typeof value === 'string') return number(value) ?? value
  const open: unknown[] = typeof value === 'object' && value !== null ? [value] : []
  for (let holder = open.pop(); holder !== undefined; holder = open.pop()) {
    const members = holder as Record<string | number, unknown>
    // Not `Object.keys` of an array: they are as many strings.
    for (const key of Array.isArray(holder) ? holder.keys() : Object.keys(members)) {
      const item = members[key]
      if (typeof item === 'string') members[key] = number(item) ?? item
      else if (typeof item === 'object' && item !== null) open.push(item)
    }
  }
  return value
}
