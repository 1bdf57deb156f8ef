// JSON text to value and back without loss: numbers that do not fit a double keep their digits. Refuses what JSON.parse
// accepts and what does harm later: invalid UTF-8, a byte order mark, deep nesting (JSON.stringify overflows the
// stack), millions of values (each takes far more memory than its text).

import { GatewayError, isObject } from './messages.ts'

export const maxDepth = 64
/** About 15 MiB of memory, where all of them are empty objects. */
export const maxValues = 250_000

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * One JSON text in UTF-8 from an untrusted peer.
 * @throws GatewayError parse_error (RFC 8259; JSON-RPC 2.0 section 5.1); invalid_request where it is nested too deeply
 * or holds too many values
 */
export function parseJson(bytes: Uint8Array): unknown {
  const { depth, values } = sizeOf(bytes)
  if (depth > maxDepth)
    throw new GatewayError('invalid_request', `The JSON text is nested deeper than ${maxDepth} levels.`)
  if (values > maxValues)
    throw new GatewayError(
      'invalid_request',
      `The JSON text holds more than ${maxValues} values. Send long lists as text, or in several calls.`
    )
  let text: string
  try {
    text = decoder.decode(bytes)
  } catch (cause) {
    throw new GatewayError('parse_error', 'The body is not valid UTF-8.', { cause })
  }
  try {
    return parseText(text)
  } catch {
    // The cause is dropped: it quotes the body, and causes go to the log.
    throw new GatewayError(
      'parse_error',
      bytes.length === 0 ? 'The body is empty; send one JSON-RPC message.' : 'The body is not valid JSON.'
    )
  }
}

// A false match (digits inside a string) costs a scan and nothing else.
const longNumber = /[\d.]{16}|[eE][+-]?\d{3}/
const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON

/**
 * JSON.parse, except that a number with more digits than a double holds is serialised again exactly as it was written:
 * a 64-bit id in the arguments of a tool must reach the upstream unchanged.
 * @throws SyntaxError
 */
export function parseText(text: string): unknown {
  const numbers = longNumber.test(text) ? inexactNumbers(text) : []
  if (numbers.length === 0) return JSON.parse(text)
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
    numbers.map(([start, end]) => rawJson(text.slice(start, end)))
  )
}

/** Positions of the numbers that a double would change, in order. */
function inexactNumbers(text: string): Array<readonly [start: number, end: number]> {
  const found: Array<readonly [number, number]> = []
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === 0x22) at = endOfString(text, at)
    else if (unit === 0x2d || (unit >= 0x30 && unit <= 0x39)) {
      const start = at
      while (at + 1 < text.length && isNumberUnit(text.charCodeAt(at + 1))) at++
      // Before a colon it would be a member name, which must be a string: the parser refuses it.
      if (at - start >= 4 && !isExact(text.slice(start, at + 1)) && !isName(text, at + 1)) found.push([start, at + 1])
    }
  }
  return found
}

const colon = /[ \t\r\n]*:/y

function isName(text: string, end: number): boolean {
  colon.lastIndex = end
  return colon.test(text)
}

/** @returns the index of the closing quote, or of the last character where there is none */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === 0x5c) at++
    else if (unit === 0x22) return at
  }
  return text.length - 1
}

const isNumberUnit = (unit: number): boolean =>
  (unit >= 0x30 && unit <= 0x39) || unit === 0x2e || unit === 0x65 || unit === 0x45 || unit === 0x2b || unit === 0x2d

/**
 * Does a double keep its value? Fifteen significant digits always fit; more do if the double prints as the same text.
 */
function isExact(source: string): boolean {
  const value = Number(source)
  if (!Number.isFinite(value)) return Number.isNaN(value) // Not a number at all: the parser refuses it.
  if (String(value) === source) return true
  const digits = source.replaceAll(/[eE].*$|\D/g, '')
  // Loops, because `0+$` takes quadratic time in zeros that do not stand at the end.
  let start = 0
  let end = digits.length
  while (digits[start] === '0') start++
  while (end > start && digits[end - 1] === '0') end--
  return end - start <= 15 && (value !== 0 || start === end)
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

export const depthOf = (bytes: Uint8Array): number => sizeOf(bytes).depth

/** The deepest nesting, and the number of values (empty arrays and objects may count twice), without parsing. */
function sizeOf(bytes: Uint8Array) {
  let depth = 0
  let deepest = 0
  let values = 1
  let inString = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (inString) {
      if (byte === 0x5c) at++
      else if (byte === 0x22) inString = false
    } else if (byte === 0x22) inString = true
    else if (byte === 0x2c) values++
    else if (byte === 0x5b || byte === 0x7b) {
      values++
      deepest = Math.max(deepest, ++depth)
    } else if (byte === 0x5d || byte === 0x7d) depth--
  }
  return { depth: deepest, values }
}

/** One text for equal JSON values: members are sorted by name (after RFC 8785), undefined ones left out. */
export function canonicalJsonOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJsonOf).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value) ?? 'null'
  return `{${Object.keys(value)
    .sort()
    .filter((name) => value[name] !== undefined)
    .map((name) => `${JSON.stringify(name)}:${canonicalJsonOf(value[name])}`)
    .join(',')}}`
}
