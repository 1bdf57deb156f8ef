// JSON text to value and back without loss: numbers that do not fit a double keep their digits. Refuses what JSON.parse
// accepts and what does harm later: invalid UTF-8, a byte order mark, deep nesting (JSON.stringify overflows the
// stack), millions of values (each takes far more memory than its text).

import { GatewayError } from './messages.ts'
import { isNumberUnit, type JsonLimits, JsonLimitError, stringEnd } from './json-scan.ts'
import { finished, jsonSteps } from './json-steps.ts'
import { decoded, NotUtf8Error, TextUnits } from './json-text.ts'

export const maxDepth = 64
/** About 15 MiB of memory, where all of them are empty objects. */
export const maxValues = 250_000

/** Bytes or characters: reading what is no longer than this is a step of its own. */
export const shortLength = 32_768

const limits = { maxDepth, maxValues }

/**
 * One JSON text in UTF-8 from an untrusted peer, in steps.
 * @param reserve see `JsonLimits`
 * @throws GatewayError parse_error (RFC 8259; JSON-RPC 2.0 section 5.1); invalid_request where it is nested too deeply
 * or holds too many values
 */
export function* parseJsonSteps(
  bytes: Buffer,
  reserve?: JsonLimits['reserve']
): Generator<undefined, unknown, undefined> {
  const isShort = bytes.length <= shortLength
  try {
    return isShort ? parseShort(decoded(bytes), limits) : yield* jsonSteps(bytes, { ...limits, reserve })
  } catch (error) {
    if (error instanceof GatewayError) throw error
    if (error instanceof NotUtf8Error) throw new GatewayError('parse_error', `The body ${error.message}.`)
    if (error instanceof JsonLimitError) {
      const isTooMany = /(values|members)$/.test(error.message)
      const advice = isTooMany ? ' Send long lists as text, or in several calls.' : ''
      throw new GatewayError('invalid_request', `The JSON text ${error.message}.${advice}`)
    }
    // The cause is dropped: it quotes the body, and causes go to the log.
    throw new GatewayError('parse_error', `The body is ${bytes.length === 0 ? 'empty' : 'not valid JSON'}.`)
  }
}

export const parseJson = (bytes: Buffer): unknown => finished(parseJsonSteps(bytes))

/**
 * A text of at most `shortLength` at once; most are.
 * @throws SyntaxError a JsonLimitError where a limit is exceeded
 */
export function parseShort(text: string, limits: JsonLimits): unknown {
  // It is too short for too many values; numbers that need care, and what it says of a limit, are left to the scan.
  return needsScan(text, limits.maxDepth) ? finished(jsonSteps(text, limits)) : JSON.parse(text)
}

/** Of messages that were within the limits. */
const ownLimits = { maxDepth: 2 * maxDepth, maxValues: Infinity }

/** A text that this gateway has written. @throws SyntaxError */
export const parseOwnJson = (text: string): unknown =>
  needsScan(text, Infinity) ? finished(parseOwnJsonSteps(text)) : JSON.parse(text)

/** The same in steps. @param reserve see `JsonLimits` */
export const parseOwnJsonSteps = (text: string, reserve?: JsonLimits['reserve']): ReturnType<typeof jsonSteps> =>
  jsonSteps(text, { ...ownLimits, reserve })

const longNumber = /[\d.]{16}|\d[eE][+-]?\d{3}/
/** Characters of a string that are looked at one by one; nearly all names end before. */
const nearLength = 64

/** Is it nested deeper, or has it a number that no double may hold? Whether it is JSON is left to JSON.parse. */
function needsScan(text: string, maxDepth: number): boolean {
  const json = new TextUnits(text)
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === 0x22) at = stringEnd(json, at + 1, text.length, nearLength)
    else if (unit === 0x5b || unit === 0x7b) {
      if (++depth > maxDepth) return true
    } else if (unit === 0x5d || unit === 0x7d) depth--
    else if (unit >= 0x30 && unit <= 0x39) {
      const start = at
      while (isNumberUnit(text.charCodeAt(at + 1))) at++
      if (at - start >= 4 && longNumber.test(text.slice(start, at + 1))) return true
    }
  }
  return false
}
