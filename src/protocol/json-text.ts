// Writes a long JSON value in short steps, so that whoever drives them can let others run in between. A short one is
// left to JSON.stringify.

/** Text of JSON. A long one is bytes, in parts: no turn of the event loop has to make or to encode all of it. */
export type JsonText = string | LongText

export interface LongText {
  readonly parts: readonly Buffer[]
  /** In bytes. */
  readonly length: number
}

/** Characters that are written in one step; about a millisecond, whatever they hold. */
const partLength = 65_536
/** Characters of a text that is written in steps, at least. */
const longTextLength = 131_072
/** To list the members of an object takes as long as to write them, where they are many. */
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
 * `WeakMap`: what its values hold is promoted to the old objects, 64 KiB of garbage for each call that should die young.
 */
const source = Symbol('source')
interface HasSource {
  readonly [source]?: string
}

/** @param text that the value was read from, in one line; no member name comes twice in it */
export const keepSource = (value: object, text: string): unknown =>
  Object.defineProperty(value, source, { value: text })

/** Characters of the text that is kept for a value, or for members of it. */
export function sourceLengthOf(value: object): number {
  const whole = sourceOf(value)?.length
  if (whole !== undefined) return whole
  let length = 0
  for (const member of Object.values(value)) length += sourceOf(member)?.length ?? 0
  return length
}

const sourceOf = (value: unknown): string | undefined =>
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

/** What JSON.stringify gives for a message; values of which the source is kept are not written again. */
export function textOfMessage(message: unknown, levels = levelsWithSources): string {
  const known = sourceOf(message)
  if (known !== undefined) return known
  if (!holdsSource(message, levels)) return JSON.stringify(message)
  const members = Object.entries(message as object).flatMap(([name, member]) =>
    member === undefined ? [] : [`${JSON.stringify(name)}:${textOfMessage(member, levels - 1)}`]
  )
  return `{${members.join()}}`
}

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
  return { parts, length: parts.reduce((sum, part) => sum + part.length, 0) }
}

export const stringOf = (text: JsonText): string =>
  typeof text === 'string' ? text : Buffer.concat(text.parts).toString()

/** @returns roughly what is left of the room after the text of the value: less than nothing where it is too long */
function roomAfter(value: unknown, room: number): number {
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

/** One text for equal JSON values: members are sorted by name (after RFC 8785), undefined ones left out. */
export function canonicalJsonOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJsonOf).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  return `{${Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonicalJsonOf(member)}`)
    .join(',')}}`
}

/** There or one before: no half of a character that takes two units is written alone. */
function cutAt(text: string, at: number): number {
  if (at >= text.length) return text.length
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00 ? at - 1 : at
}

/** Does it take long to write the value? */
export const isLongText = (value: unknown): boolean => roomAfter(value, longTextLength) < 0

/**
 * What JSON.stringify gives for the value, which is none of those that it has no text for.
 * @param change what becomes of each part of the text
 * @param canonical what `canonicalJsonOf` gives instead
 */
export function* longTextSteps(
  value: unknown,
  change?: (part: string) => string,
  canonical = false
): Generator<undefined, LongText, undefined> {
  const parts: Buffer[] = []
  let length = 0
  let part = ''

  function end(): void {
    if (part === '') return
    const bytes = Buffer.from(change === undefined ? part : change(part))
    parts.push(bytes)
    length += bytes.length
    part = ''
  }

  function* write(each: unknown): Generator<undefined, void, undefined> {
    if (typeof each === 'string' && each.length > partLength) return yield* writeString(each)
    const known = sourceOf(each)
    if (known !== undefined) return yield* writeSource(known)
    if (roomAfter(each, partLength) >= 0) part += canonical ? canonicalJsonOf(each) : (JSON.stringify(each) ?? 'null')
    else if (Array.isArray(each)) yield* writeArray(each)
    else {
      let before = '{'
      const names = namesOf(each as object)
      for (const name of canonical ? [...names].sort() : names) {
        const member = (each as Record<string, unknown>)[name]
        if (member === undefined) continue
        part += `${before}${JSON.stringify(name)}:`
        before = ','
        yield* write(member)
      }
      part += before === '{' ? '{}' : '}'
    }
    if (part.length < partLength) return
    end()
    yield
  }

  function* writeArray(array: readonly unknown[]): Generator<undefined, void, undefined> {
    const known = keptTexts.get(array)
    if (known !== undefined) {
      end()
      parts.push(...known.parts)
      length += known.length
      return
    }
    let before = '['
    for (const element of array) {
      part += before
      before = ','
      yield* write(element)
    }
    part += ']'
  }

  function* writeSource(text: string): Generator<undefined, void, undefined> {
    for (let from = 0; from < text.length;) {
      const to = cutAt(text, from + partLength)
      part += text.slice(from, to)
      from = to
      if (part.length < partLength) continue
      end()
      yield
    }
  }

  function* writeString(text: string): Generator<undefined, void, undefined> {
    part += '"'
    for (let from = 0; from < text.length;) {
      const to = cutAt(text, from + partLength)
      part += JSON.stringify(text.slice(from, to)).slice(1, -1)
      from = to
      end()
      yield
    }
    part += '"'
  }

  yield* write(value)
  end()
  return { parts, length }
}
