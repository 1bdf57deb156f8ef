// Decodes bytes from an upstream to JSON values, within limits; limits the size of its lists.

import { freeBuffer } from '../../limits/free-buffer.ts'
import { visible } from '../../observe/text-log.ts'
import { maxValues, parseShort, shortLength } from '../../protocol/json.ts'
import { type JsonLimits, JsonLimitError } from '../../protocol/json-scan.ts'
import { jsonSteps } from '../../protocol/json-steps.ts'
import { decoded, NotUtf8Error } from '../../protocol/json-text.ts'

/**
 * The deepest nesting. More than for clients, because a result may hold a document; JSON.stringify can do thousands.
 */
const maxLevels = 512
/** Pieces are joined above this number: a Buffer takes about a hundred bytes besides its content. */
const mergeAt = 1_024
export const maxPages = 100
/** The longest cursor of a list, in characters: those of all pages are kept while the list is read. */
export const maxCursorLength = 8_192
/** The longest list, in characters of JSON: 4 Mi characters for the four lists of an upstream. */
const maxListLength = 1_048_576

/**
 * Decodes one JSON text in steps: bytes in UTF-8, or text that was decoded before.
 * @param reserve see `JsonLimits`
 * @throws SyntaxError whose message ends a sentence about the text, and quotes nothing of it
 */
export function* decodeSteps(
  data: Buffer | string,
  reserve?: JsonLimits['reserve']
): Generator<undefined, unknown, undefined> {
  const isShort = data.length <= shortLength
  const limits = { maxDepth: maxLevels, maxValues, reserve, keepsSource: true }
  try {
    if (!isShort) return yield* jsonSteps(data, limits)
    return parseShort(typeof data === 'string' ? data : decoded(data), limits)
  } catch (error) {
    // V8's own message would quote the text, which may be private.
    throw error instanceof JsonLimitError || error instanceof NotUtf8Error
      ? error
      : new SyntaxError('is not valid JSON')
  }
}

/** Text of an upstream, safe for a log line or an error: one line, cut, without control or direction characters. */
export function printable(text: string, maxLength: number): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
  return visible(cut)
}

/** Finds the id in the beginning or the end of a response that was too long to keep: servers write it first or last. */
export function idIn(head: string, tail: string): number | undefined {
  const found = /^\s*\{"jsonrpc":"2\.0","id":(\d{1,15})[,}]/.exec(head) ?? /,"id":(\d{1,15})\}\s*$/.exec(tail)
  return found === null ? undefined : Number(found[1])
}

/** @returns whether one list of an upstream is still short enough with this entry */
export function createListBudget(): (entry: unknown) => boolean {
  let spent = 0
  return (entry) => (spent += JSON.stringify(entry).length) <= maxListLength
}

/** Bytes that come in pieces, joined once: many tiny pieces take little more memory than the bytes. */
export class ByteChunks {
  private parts: Buffer[] = []
  /** How many chunks at the front are merged already: merging them again would take quadratic time. */
  private merged = 0
  private length = 0

  get size(): number {
    return this.length
  }

  add(chunk: Buffer): void {
    this.parts.push(chunk)
    this.length += chunk.length
    if (this.parts.length - this.merged < mergeAt) return
    this.parts.push(Buffer.concat(this.parts.splice(this.merged)))
    this.merged = this.parts.length
  }

  /** Joins the chunks and frees their memory. Each chunk must own its ArrayBuffer. */
  takeAll(): Buffer {
    const { parts } = this
    const whole = this.take()
    if (parts.length > 1) parts.forEach(freeBuffer)
    return whole
  }

  take(): Buffer {
    const [whole = Buffer.alloc(0)] = this.parts.length > 1 ? [Buffer.concat(this.parts, this.length)] : this.parts
    this.parts = []
    this.merged = 0
    this.length = 0
    return whole
  }
}
