// JSON text to value and back without loss. Refuses what JSON.parse lets through and what would hurt later: invalid UTF-8, a byte
// order mark, deep nesting (JSON.stringify of it overflows the stack). Numbers beyond a double keep their digits.

import { GatewayError } from './errors.ts'

export const maxDepth = 64

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * One JSON text in UTF-8 from a peer that we do not trust.
 * @throws GatewayError parse_error (RFC 8259; JSON-RPC 2.0 section 5.1)
 */
export function parseJson (bytes: Uint8Array): unknown {
  if (depthOf(bytes) > maxDepth) throw new GatewayError('parse_error', `The JSON text is nested deeper than ${maxDepth} levels.`)
  let text: string
  try {
    text = decoder.decode(bytes)
  } catch (cause) {
    throw new GatewayError('parse_error', 'The body is not valid UTF-8.', { cause })
  }
  try {
    return parseText(text)
  } catch {
    // Without its cause: that quotes the body, and causes go to the log.
    throw new GatewayError('parse_error', bytes.length === 0 ? 'The body is empty; send one JSON-RPC message.' : 'The body is not valid JSON.')
  }
}

// A false hit (digits inside a string) costs time, never correctness.
const longNumber = /[\d.]{16}|[eE][+-]?\d{3}/
const isLong = (source: string): boolean => source.length > 15 && (source.match(/\d/g)?.length ?? 0) > 15 || /[eE][+-]?\d{3}/.test(source)

interface WithSource { readonly source?: string }
type Reviver = (key: string, value: unknown, context: WithSource) => unknown
const parse = JSON.parse as (text: string, reviver?: Reviver) => unknown
const rawJson = (JSON as unknown as { rawJSON (text: string): unknown }).rawJSON

/**
 * JSON.parse, except that a number with more digits than a double holds stays as written when it is serialised again:
 * a 64-bit id in the arguments of a tool must reach the upstream as it was sent.
 * @throws SyntaxError
 */
export function parseText (text: string): unknown {
  if (!longNumber.test(text)) return parse(text)
  return parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && isLong(source) && String(value) !== source ? rawJson(source) : value)
}

/** The deepest nesting of arrays and objects, counted without parsing: brackets inside strings do not count. Linear, no recursion. */
export function depthOf (bytes: Uint8Array): number {
  let depth = 0
  let deepest = 0
  let inString = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (inString) {
      if (byte === 0x5c) at++
      else if (byte === 0x22) inString = false
    } else if (byte === 0x22) inString = true
    else if (byte === 0x5b || byte === 0x7b) deepest = Math.max(deepest, ++depth)
    else if (byte === 0x5d || byte === 0x7d) depth--
  }
  return deepest
}
