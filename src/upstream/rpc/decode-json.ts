// Bytes of an upstream to a JSON value. Refuses invalid UTF-8, and nesting on which JSON.stringify would overflow.

import { isUtf8 } from 'node:buffer'
import { depthOf, parseText } from '../../protocol/json.ts'

/** Deeper than what we take from clients: a result may carry a document. JSON.stringify manages thousands of levels. */
const maxLevels = 512

/**
 * One JSON text in UTF-8.
 * @throws SyntaxError that says what is wrong, without any of the text
 */
export function decodeJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new SyntaxError('not valid UTF-8')
  // Shorter texts cannot reach the limit: each level needs two characters.
  if (bytes.length > 2 * maxLevels && depthOf(bytes) > maxLevels)
    throw new SyntaxError(`nested deeper than ${maxLevels} levels`)
  return parse(bytes.toString())
}

/**
 * The same for text that was decoded before.
 * @throws SyntaxError
 */
export function decodeJsonText(text: string): unknown {
  if (text.length > 2 * maxLevels && depthOf(Buffer.from(text)) > maxLevels)
    throw new SyntaxError(`nested deeper than ${maxLevels} levels`)
  return parse(text)
}

function parse(text: string): unknown {
  try {
    return parseText(text)
  } catch {
    // The message of V8 quotes the text, which may be private.
    throw new SyntaxError('not valid JSON')
  }
}

/** Text of an upstream made fit for a log line or an error: one line, no control or direction characters, not long. */
export function printable(text: string, maxLength: number): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
  return cut.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`
  )
}

/** The id of a response of which only the ends are known: servers write it first or last. */
export function idIn(head: string, tail: string): number | undefined {
  const found = /^\s*\{"jsonrpc":"2\.0","id":(\d{1,15})[,}]/.exec(head) ?? /,"id":(\d{1,15})\}\s*$/.exec(tail)
  return found === null ? undefined : Number(found[1])
}
