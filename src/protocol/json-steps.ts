// Reads a JSON text in short steps, so that whoever drives them can let others run in between. Arrays, objects and
// strings that are longer than a piece are put together from pieces, which JSON.parse reads: it stays the judge of what
// is JSON.

import { markNumbers, type NumberSpan } from './json-numbers.ts'
import { isEscaped, type JsonLimits, type LongValue, type Part, scanJson, type StepLengths } from './json-scan.ts'
import { keepSource, type Source, type Units, unitsOf } from './json-text.ts'
import { isRawJson } from './messages.ts'

const stepLengths: StepLengths = {
  // Parsing takes 5 ms at most, whatever it holds: objects with names that differ take longest.
  piece: 32_768,
  // A long string is read faster than values. Of more than this, the engine gives each piece a page of its own.
  stringPiece: 98_304,
  scan: 65_536,
  near: 64
}

/** Beyond so many values of a text, none keeps its text: to count them would take too long. */
const maxCountedValues = 10_000

/** The result of steps that are all done at once. */
export function finished<T>(steps: Generator<undefined, T, undefined>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

/**
 * @param source text, or its bytes
 * @throws SyntaxError a JsonLimitError where a limit is exceeded, a NotUtf8Error where the bytes are no text
 */
export function* jsonSteps(
  source: Source,
  limits: JsonLimits,
  lengths = stepLengths
): Generator<undefined, unknown, undefined> {
  const json = unitsOf(source)
  const { root, numbers, values } = yield* scanJson(json, limits, lengths)
  limits.reserve?.(values)
  const builder = new Builder(json, numbers, lengths.stringPiece)
  if (root === undefined) return builder.parse('', 0, json.length, '')
  mustBeBlank(json.text(0, root.start))
  mustBeBlank(json.text(root.end, json.length))
  const value = yield* builder.build(root)
  // A line break would end the line of an event stream.
  const isLine = (): boolean => [0x0a, 0x0d].every((lineBreak) => json.find(lineBreak, 0) === -1)
  if (limits.keepsSource === true && values <= maxCountedValues && isLine() && countValues(value) === values)
    for (const [each, start, end] of builder.built)
      // A part holds the whole text: a small one of a large message would take as much memory as all of it.
      if ((end - start) * 2 >= json.length) keepSource(each, partOf(source, start, end))
  return value
}

/**
 * Puts long values together. A class, because there is one for each message: of a generator function that is made anew,
 * V8 makes a hidden class, which is old from the first and holds all that the function refers to.
 */
class Builder {
  /** The arrays and objects that are long, and where they stand in the text. */
  readonly built: Array<readonly [value: object, start: number, end: number]> = []
  private readonly json: Units
  private readonly numbers: readonly NumberSpan[]
  private readonly stringPiece: number
  private nextNumber = 0

  constructor(json: Units, numbers: readonly NumberSpan[], stringPiece: number) {
    this.json = json
    this.numbers = numbers
    this.stringPiece = stringPiece
  }

  parse(open: string, from: number, to: number, close: string): unknown {
    const { json, numbers } = this
    const own: NumberSpan[] = []
    // In characters of the piece.
    let counted = from
    let length = open.length
    const placeOf = (at: number): number => {
      length += json.text(counted, at).length
      counted = at
      return length
    }
    for (let span = numbers[this.nextNumber]; span !== undefined && span[0] < to; span = numbers[++this.nextNumber])
      own.push([placeOf(span[0]), placeOf(span[1])])
    const piece = `${open}${json.text(from, to)}${close}`
    return own.length === 0 ? JSON.parse(piece) : markNumbers(piece, own)
  }

  *build({ start, end, kind, parts }: LongValue): Generator<undefined, unknown, undefined> {
    if (kind === 'string') return yield* longString(this.json, start, end, this.stringPiece)
    const array: unknown[] = []
    const object: Record<string, unknown> = {}
    const [open, close] = kind === 'array' ? '[]' : '{}'
    for (const { from, to, long } of parts) {
      yield
      // An empty string in place of the long value: nothing may stand on either side of it.
      const piece = this.parse(open ?? '', from, long?.start ?? to, long === undefined ? (close ?? '') : `""${close}`)
      const value = long === undefined ? undefined : yield* this.build(long)
      if (long !== undefined) mustBeBlank(this.json.text(long.end, to))
      if (Array.isArray(piece)) {
        mustHold(piece.length, parts, long)
        if (long !== undefined) array.push(value)
        else for (const element of piece) array.push(element)
      } else {
        const members = piece as Record<string, unknown>
        const names = Object.keys(members)
        mustHold(names.length, parts, long)
        for (const name of names) setMember(object, name, long === undefined ? members[name] : value)
      }
    }
    const value = kind === 'array' ? array : object
    this.built.push([value, start, end])
    return value
  }
}

const partOf = (source: Source, start: number, end: number): Source =>
  typeof source === 'string' ? source.slice(start, end) : source.subarray(start, end)

/**
 * As the scan of its text counts them. Where a member name comes twice, the text has more: which of the two a reader
 * takes is not known, so that such a text is not passed on.
 */
function countValues(value: unknown): number {
  let count = 1
  const add = (each: unknown): void => {
    if (typeof each !== 'object' || each === null || isRawJson(each)) return
    const members: readonly unknown[] = Array.isArray(each) ? each : Object.values(each)
    count += Math.max(1, members.length)
    members.forEach(add)
  }
  add(value)
  return count
}

/** A string literal with its quotes. */
function* longString(
  json: Units,
  start: number,
  end: number,
  pieceLength: number
): Generator<undefined, string, undefined> {
  yield
  if (end - start <= pieceLength) return JSON.parse(json.text(start, end)) as string
  let value = ''
  for (let from = start + 1; from < end - 1;) {
    const to = cutOf(json, from, from + pieceLength, end - 1)
    value += JSON.parse(`"${json.text(from, to)}"`) as string
    from = to
    yield
  }
  return value
}

/** In characters: \u and four digits. */
const maxEscapeLength = 6

/**
 * @param from a place in a string where neither an escape nor a character is under way
 * @returns the first such place at `to` or behind it; at most `end`
 */
function cutOf(json: Units, from: number, to: number, end: number): number {
  for (let at = Math.max(from, to - maxEscapeLength + 1); at < to; at++) {
    if (json.at(at) !== 0x5c || isEscaped(json, at, from)) continue
    const escapeEnd = at + (json.at(at + 1) === 0x75 ? maxEscapeLength : 2)
    if (escapeEnd > to) return Math.min(end, escapeEnd)
  }
  let cut = Math.min(end, to)
  while (cut < end && json.isBytes && (json.at(cut) & 0xc0) === 0x80) cut++
  return cut
}

/** Only whitespace can follow a whole text. */
function mustBeBlank(text: string): void {
  if (text !== '') JSON.parse(`""${text}`)
}

/** `[1,,2]` and `[1,]` are no JSON, and `1 "..."` is no element. */
function mustHold(found: number, parts: readonly Part[], long: LongValue | undefined): void {
  if (long === undefined ? found === 0 && parts.length > 1 : found !== 1) throw new SyntaxError('not valid JSON')
}

/** As JSON.parse does: also a member that is called `__proto__` is one like any other. */
function setMember(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value
  else
    Object.defineProperty(object, name, {
      value,
      writable: true,
      enumerable: true,
      configurable: true
    })
}
