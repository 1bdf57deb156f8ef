// Lines put together as the bytes that are written. As text a line of thirty pieces would be thirty objects, which are
// copied into one and once more into bytes: that took longer than all else that is told of a call.

const firstBytes = 4_096
/** One long line makes it larger; it does not stay so. */
const maxKeptBytes = 262_144
/** UTF-8 has no more for a code unit of UTF-16. */
const maxBytesOfUnit = 3
const [quote, backslash, zero, point] = [0x22, 0x5c, 0x30, 0x2e]

export class LineBytes {
  length = 0
  private bytes = Buffer.allocUnsafe(firstBytes)
  private lastTime = Number.NaN
  private lastTimeDigits: Uint8Array = this.bytes

  /** @returns room for so many more bytes */
  private room(count: number): Buffer {
    if (this.length + count > this.bytes.length) {
      const larger = Buffer.allocUnsafe(2 * (this.length + count))
      this.bytes.copy(larger, 0, 0, this.length)
      this.bytes = larger
    }
    return this.bytes
  }

  /** As it is. */
  text(text: string): void {
    this.length += this.room(text.length * maxBytesOfUnit).write(text, this.length)
  }

  /** In place of a byte that is there. @param character of ASCII */
  put(at: number, character: string): void {
    this.bytes[at] = character.charCodeAt(0)
  }

  part(part: Uint8Array): void {
    this.room(part.length).set(part, this.length)
    this.length += part.length
  }

  /** In JSON. */
  value(value: string | number): void {
    if (typeof value === 'number') return this.number(value)
    const bytes = this.room(value.length + 2)
    let end = this.length
    bytes[end++] = quote
    for (let at = 0; at < value.length; at++) {
      const code = value.charCodeAt(at)
      if (code < 0x20 || code > 0x7e || code === quote || code === backslash)
        return this.text(escapedJson(JSON.stringify(value)))
      bytes[end++] = code
    }
    bytes[end++] = quote
    this.length = end
  }

  /** In JSON. @param text of plain letters and digits, as ids are: it is not looked at */
  id(text: string): void {
    const bytes = this.room(text.length + 2)
    bytes[this.length++] = quote
    this.length += bytes.write(text, this.length, 'latin1')
    bytes[this.length++] = quote
  }

  /** @param ms since the epoch: the same in many lines */
  time(ms: number): void {
    if (ms !== this.lastTime) {
      this.lastTime = ms
      this.lastTimeDigits = Buffer.from(String(ms))
    }
    this.part(this.lastTimeDigits)
  }

  /** Durations have one digit behind the point: as two whole numbers they are written without a text between. */
  private number(value: number): void {
    const whole = Math.trunc(value)
    const tenths = Math.round((value - whole) * 10)
    if (!(value >= 0 && value < 2 ** 31 && tenths < 10 && (whole * 10 + tenths) / 10 === value))
      return this.text(Number.isFinite(value) ? String(value) : 'null')
    this.digits(whole)
    if (tenths === 0) return
    const bytes = this.room(2)
    bytes[this.length++] = point
    bytes[this.length++] = zero + tenths
  }

  private digits(value: number): void {
    const bytes = this.room(10)
    let end = this.length + 1
    for (let rest = value; rest >= 10; rest = Math.trunc(rest / 10)) end++
    this.length = end
    for (let rest = value; end > 0; rest = Math.trunc(rest / 10)) {
      bytes[--end] = zero + (rest % 10)
      if (rest < 10) return
    }
  }

  /** @returns what is there, until more is added */
  view(): Buffer {
    return this.bytes.subarray(0, this.length)
  }

  clear(): void {
    this.length = 0
    if (this.bytes.length > maxKeptBytes) this.bytes = Buffer.allocUnsafe(firstBytes)
  }

  /** @returns a copy of what was there; it is empty then */
  take(): Buffer {
    const taken = Buffer.from(this.view())
    this.clear()
    return taken
  }
}

/**
 * JSON with further control, format and direction characters as `\uXXXX`: servers and clients decide what some fields
 * say, and a terminal would obey them.
 */
export function escapedJson(lines: string): string {
  if (Buffer.byteLength(lines) === lines.length) return lines
  return lines.replace(/[^\P{C}\n]|[\p{Zl}\p{Zp}]/gu, unicodeEscapes)
}

/** Each UTF-16 unit of a text within JSON as `\uXXXX` (RFC 8259 section 7). */
export const unicodeEscapes = (text: string): string =>
  text
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
