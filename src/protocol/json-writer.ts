// Writes a long JSON value in short steps, so that whoever drives them can let others run in between. A short one is
// left to JSON.stringify.

import { canonicalJsonOf, keptTextOf, lengthOf, type LongText, namesOf, roomAfter, sourceOf } from './json-text.ts'

/** Characters that are written in one step; about a millisecond, whatever they hold. */
const partLength = 65_536

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
  return yield* new TextWriter(change, canonical).whole(value)
}

/** A class, because there is one for each text: see `Builder` of protocol/json-steps.ts. */
class TextWriter {
  private readonly change: ((part: string) => string) | undefined
  private readonly canonical: boolean
  private readonly parts: Buffer[] = []
  private part = ''

  constructor(change: ((part: string) => string) | undefined, canonical: boolean) {
    this.change = change
    this.canonical = canonical
  }

  *whole(value: unknown): Generator<undefined, LongText, undefined> {
    yield* this.write(value)
    this.end()
    return { parts: this.parts, length: lengthOf(this.parts) }
  }

  private end(): void {
    const { change, part } = this
    if (part === '') return
    this.parts.push(Buffer.from(change === undefined ? part : change(part)))
    this.part = ''
  }

  private passOn(known: readonly Buffer[]): void {
    this.end()
    this.parts.push(...known)
  }

  private *write(each: unknown): Generator<undefined, void, undefined> {
    const { canonical } = this
    if (typeof each === 'string' && each.length > partLength) return yield* this.writeString(each)
    const known = sourceOf(each)
    if (known !== undefined) return typeof known === 'string' ? yield* this.writeSource(known) : this.passOn([known])
    if (roomAfter(each, partLength) >= 0)
      this.part += canonical ? canonicalJsonOf(each) : (JSON.stringify(each) ?? 'null')
    else if (Array.isArray(each)) yield* this.writeArray(each)
    else {
      let before = '{'
      const names = namesOf(each as object)
      for (const name of canonical ? [...names].sort() : names) {
        const member = (each as Record<string, unknown>)[name]
        if (member === undefined) continue
        this.part += `${before}${JSON.stringify(name)}:`
        before = ','
        yield* this.write(member)
      }
      this.part += before === '{' ? '{}' : '}'
    }
    if (this.part.length < partLength) return
    this.end()
    yield
  }

  private *writeArray(array: readonly unknown[]): Generator<undefined, void, undefined> {
    const known = keptTextOf(array)
    if (known !== undefined) return this.passOn(known.parts)
    let before = '['
    for (const element of array) {
      this.part += before
      before = ','
      yield* this.write(element)
    }
    this.part += ']'
  }

  private *writeSource(text: string): Generator<undefined, void, undefined> {
    for (let from = 0; from < text.length;) {
      const to = cutAt(text, from + partLength)
      this.part += text.slice(from, to)
      from = to
      if (this.part.length < partLength) continue
      this.end()
      yield
    }
  }

  private *writeString(text: string): Generator<undefined, void, undefined> {
    this.part += '"'
    for (let from = 0; from < text.length;) {
      const to = cutAt(text, from + partLength)
      this.part += JSON.stringify(text.slice(from, to)).slice(1, -1)
      from = to
      this.end()
      yield
    }
    this.part += '"'
  }
}

/** There or one before: no half of a character that takes two units is written alone. */
function cutAt(text: string, at: number): number {
  if (at >= text.length) return text.length
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00 ? at - 1 : at
}
