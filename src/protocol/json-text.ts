// Text of JSON: what is known of it already, because it was read or written before, and how long it will be.

/** Text of JSON. A long one is bytes, in parts: no turn of the event loop has to make or to encode all of it. */
export type JsonText = string | LongText

export interface LongText {
  readonly parts: readonly Buffer[]
  /** The length in bytes. */
  readonly length: number
}

/** Characters of a text that is written in steps, at least. */
const longTextLength = 131_072
/** The number of members from which listing them takes as long as writing them. */
const manyMembers = 1_000
const namesOfLarge = new WeakMap<object, readonly string[]>()

/** The names of the members of a value that is not changed any more. */
export function namesOf(value: object): readonly string[] {
  const known = namesOfLarge.get(value)
  if (known !== undefined) return known
  const names = Object.keys(value)
  if (names.length > manyMembers) namesOfLarge.set(value, names)
  return names
}

/**
 * Nobody reads the members any more, though many may hold on to the object.
 * @returns false where there are too many to take them out in one step, and then they stay
 */
export function letGoOfMembers(object: Record<string, unknown>): boolean {
  const names = namesOf(object)
  if (names.length > manyMembers) return false
  for (const name of names) delete object[name]
  return true
}

const keptTexts = new WeakMap<object, LongText>()

/**
 * Of what was parsed, and is passed on unchanged. A property that no copy of the object gets, and nobody lists. Not a
 * `WeakMap`: its values survive young collections, 64 KiB of garbage for each call.
 */
const source = Symbol('source')
interface HasSource {
  readonly [source]?: Source
}
/** Text, or its bytes in UTF-8. */
export type Source = string | Buffer

/** @param text that the value was read from, in one line; no member name comes twice in it */
export const keepSource = (value: object, text: Source): unknown =>
  Object.defineProperty(value, source, { value: text })

/** Characters or bytes of the text that is kept for a value, or for members of it. */
export function sourceLengthOf(value: object): number {
  const whole = sourceOf(value)?.length
  if (whole !== undefined) return whole
  let length = 0
  for (const member of Object.values(value)) length += sourceOf(member)?.length ?? 0
  return length
}

/** @returns undefined where it is not kept */
export const sourceOf = (value: unknown): Source | undefined =>
  typeof value === 'object' && value !== null ? (value as HasSource)[source] : undefined

/** The message, and its result. */
const levelsWithSources = 2

const holdsSource = (value: unknown, levels: number): boolean =>
  sourceOf(value) !== undefined ||
  (levels > 0 &&
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.values(value).some((member) => holdsSource(member, levels - 1)))

/** Returns the text of JSON.stringify for a message; values of which the source is kept are not written again. */
export function textOfMessage(message: unknown): JsonText {
  const pieces: Source[] = ['']
  addPieces(pieces, message, levelsWithSources)
  if (pieces.length === 1) return pieces[0] as string
  const parts = pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece))
  return { parts, length: lengthOf(parts) }
}

/** @param pieces the last one is text, which is continued */
function addPieces(pieces: Source[], value: unknown, levels: number): void {
  const known = sourceOf(value)
  if (known !== undefined) return addPiece(pieces, known)
  if (!holdsSource(value, levels)) return addPiece(pieces, JSON.stringify(value))
  let before = '{'
  for (const [name, member] of Object.entries(value as object)) {
    if (member === undefined) continue
    addPiece(pieces, `${before}${JSON.stringify(name)}:`)
    addPieces(pieces, member, levels - 1)
    before = ','
  }
  addPiece(pieces, '}')
}

function addPiece(pieces: Source[], piece: Source): void {
  if (typeof piece === 'string') pieces[pieces.length - 1] += piece
  else pieces.push(piece, '')
}

/** In bytes. */
export const lengthOf = (parts: readonly Buffer[]): number => parts.reduce((sum, part) => sum + part.length, 0)

/** The array is not changed any more, and its text is known: it is sent with each message that the array is part of. */
export function keepText<T>(array: readonly T[], text: LongText): readonly T[] {
  keptTexts.set(array, text)
  return array
}

/** @returns undefined where it is not known */
export const keptTextOf = (array: readonly unknown[]): LongText | undefined => keptTexts.get(array)

/** Is the text of a member known? */
export const holdsKeptText = (object: object): boolean =>
  Object.values(object).some((member) => Array.isArray(member) && keptTexts.has(member))

/** A JSON array of what these texts say. */
export function arrayOf(texts: readonly JsonText[]): JsonText {
  if (texts.every((text) => typeof text === 'string')) return `[${texts.join()}]`
  const parts = texts.flatMap((text, at) => [
    Buffer.from(at === 0 ? '[' : ','),
    ...(typeof text === 'string' ? [Buffer.from(text)] : text.parts)
  ])
  parts.push(Buffer.from(']'))
  return { parts, length: lengthOf(parts) }
}

export const stringOf = (text: JsonText): string =>
  typeof text === 'string' ? text : Buffer.concat(text.parts).toString()

/** @returns roughly what is left of the room after the text of the value: less than nothing where it is too long */
export function roomAfter(value: unknown, room: number): number {
  if (typeof value === 'string') return room - value.length
  let left = room - 8
  if (typeof value !== 'object' || value === null) return left
  if (Array.isArray(value)) {
    if (keptTexts.has(value)) return -1
    for (let at = 0; at < value.length && left >= 0; at++) left = roomAfter(value[at], left)
    return left
  }
  const members = value as Record<string, unknown>
  const known = namesOfLarge.get(value)
  if (known !== undefined) {
    for (let at = 0; at < known.length && left >= 0; at++) left = roomAfterMember(members, known[at] ?? '', left)
    return left
  }
  // Every message comes by here: unlike a list of the names, this allocates nothing.
  for (const name in members) {
    if (left < 0) return left
    left = roomAfterMember(members, name, left)
  }
  return left
}

const roomAfterMember = (members: Readonly<Record<string, unknown>>, name: string, room: number): number =>
  roomAfter(members[name], room - name.length - 3)

/** Returns one text for equal JSON values: members are sorted by name (after RFC 8785), undefined ones left out. */
export function canonicalJsonOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJsonOf).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  return `{${Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonicalJsonOf(member)}`)
    .join(',')}}`
}

/** Does it take long to write the value? */
export const isLongText = (value: unknown): boolean => roomAfter(value, longTextLength) < 0

/** Bytes that are no text; the message is the end of a sentence about them. */
export class NotUtf8Error extends SyntaxError {}
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** @throws NotUtf8Error */
export function decoded(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw new NotUtf8Error('is not valid UTF-8')
  }
}

// Either is read in place, of bytes no text is made as a whole: those of more than 128 KiB have pages of their own.

/** Code units of a text, or bytes. What stands for something in JSON is one of either, and the same. */
export interface Units {
  readonly isBytes: boolean
  readonly length: number
  /** @returns NaN or undefined, neither of which is any, beyond the end */
  at(index: number): number
  /** @returns -1 where it does not come */
  find(unit: number, from: number): number
  /** @throws NotUtf8Error */
  text(from: number, to: number): string
}

export class TextUnits implements Units {
  readonly isBytes = false
  readonly length: number
  private readonly whole: string
  constructor(whole: string) {
    this.whole = whole
    this.length = whole.length
  }
  at(index: number): number {
    return this.whole.charCodeAt(index)
  }
  find(unit: number, from: number): number {
    return this.whole.indexOf(String.fromCharCode(unit), from)
  }
  text(from: number, to: number): string {
    return this.whole.slice(from, to)
  }
}

class ByteUnits implements Units {
  readonly isBytes = true
  readonly length: number
  private readonly whole: Buffer
  constructor(whole: Buffer) {
    this.whole = whole
    this.length = whole.length
  }
  at(index: number): number {
    return this.whole[index] as number
  }
  find(unit: number, from: number): number {
    return this.whole.indexOf(unit, from)
  }
  text(from: number, to: number): string {
    return decoded(this.whole.subarray(from, to))
  }
}

export const unitsOf = (source: Source): Units =>
  typeof source === 'string' ? new TextUnits(source) : new ByteUnits(source)
