// Reads HTTP/1.1 responses as they come on a socket (RFC 9112). It is strict, because bytes that two readers understand
// differently can move one caller's response to another caller. It reads only the headers that the gateway uses.

import { fieldValue, joined, ownFieldValue } from '../rpc/field-value.ts'

/** The longest status lines, headers and trailers of one response together, in bytes. */
const maxHeadBytes = 32_768
/** The longest line with the size of a chunk and its extensions, in bytes. */
const maxChunkLine = 1_024
/** The part of a head that is read in one step, in bytes; most heads are shorter. */
const headPart = 1_024
/** The chunks and the lines between them that are read in one step: this takes as long as two parts of a head. */
const stepPieces = 100

// RFC 9110 section 5, RFC 9112 sections 4, 5 and 7.1. No expression can backtrack.
const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/
const token = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+"
const headerLine = new RegExp(`^${token}:[\\t\\x20-\\x7e\\x80-\\xff]*$`)
const framing = /^(?:content-length|transfer-encoding):/i
const quoted = '"[\\t\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]*"'
const chunkLine = new RegExp(`^([0-9A-Fa-f]{1,13})(?:;${token}(?:=(?:${token}|${quoted}))?)*$`)

type Place = 'status' | 'headers' | 'length' | 'close' | 'size' | 'chunk' | 'chunk end' | 'trailers'

/** Reads responses, one reader for each socket; `begin` makes it ready for the next response. */
export class ResponseReader {
  /** 0 until the head is complete. */
  status = 0
  /** The value of the first `Content-Type`, if there are several. */
  contentType: string | undefined
  contentEncoding: string | undefined
  /** `Mcp-Session-Id`; undefined if there are several. */
  sessionId: string | undefined
  /** `WWW-Authenticate` */
  challenge: string | undefined
  /** The response has ended, and none of its body is missing. */
  complete = false
  /** Why this is no response, as the end of a sentence; nothing is read after that. */
  fault: string | undefined
  /** The `timeout` of `Keep-Alive`, in milliseconds; undefined: the server gave none. */
  keepAliveMs: number | undefined
  /** The number of bytes that the last step has read. */
  taken = 0
  private mayStay = true
  private place: Place = 'status'
  /** The beginning of a line whose end has not come yet. */
  private line = ''
  private headBytes = 0
  private version = ''
  private code = 0
  private length: number | undefined
  private chunked = false
  private sessionIds = 0
  /** The number of bytes that are still to come of the body or of the chunk. */
  private left = 0

  begin(): void {
    this.complete = false
    this.fault = undefined
    this.mayStay = true
    this.place = 'status'
    this.line = ''
    this.headBytes = 0
    this.forgetHead()
  }

  /** Whether another request may be sent on this connection. */
  get reusable(): boolean {
    return this.complete && this.mayStay
  }

  /**
   * Reads one step, which takes some microseconds however small the chunks are.
   * @param bytes changed in place: chunks are moved together. The bytes after the first `taken` are for the next step
   * @returns the part of the body in these bytes, a view into `bytes`
   */
  push(bytes: Buffer): Buffer | undefined {
    const size = bytes.length
    let at = 0
    let from = 0
    let to = 0
    for (let left = stepPieces; left > 0 && at < size && this.fault === undefined && !this.complete; left--) {
      const { place } = this
      if (place === 'length' || place === 'chunk' || place === 'close') {
        const end = place === 'close' ? size : Math.min(size, at + this.left)
        // Chunks are moved together, so that many small ones cost the caller no more than a large one.
        if (to === 0) from = to = at
        else bytes.copyWithin(to, at, end)
        to += end - at
        this.left -= end - at
        at = end
        if (this.left === 0 && place === 'length') this.complete = true
        else if (this.left === 0 && place === 'chunk') this.place = 'chunk end'
      } else if (place === 'status' || place === 'headers') {
        at = this.readHead(bytes, at, size)
        left -= stepPieces / 2
      } else at = this.readChunkLine(bytes, at, size)
    }
    this.taken = at
    // Bytes after the end of the response would be taken for the response to the next request.
    if (at < size && this.complete) this.mayStay = false
    return to > from ? bytes.subarray(from, to) : undefined
  }

  /** The server ended the connection. */
  end(): void {
    if (this.place === 'close') this.complete = true
    else if (!this.complete) this.fault ??= 'the connection ended before it was complete'
  }

  private forgetHead(): void {
    this.status = this.sessionIds = this.left = 0
    this.contentType = this.contentEncoding = this.sessionId = this.challenge = undefined
    this.keepAliveMs = this.length = undefined
    this.chunked = false
  }

  /** @returns the index of the next unread byte */
  private readHead(bytes: Buffer, at: number, size: number): number {
    const part = bytes.toString('latin1', at, Math.min(size, at + headPart))
    const text = this.line + part
    const held = this.line.length
    let start = 0
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      // A bare LF ends a line for some readers and not for others.
      if (text.charCodeAt(end - 1) !== 13) return this.refuse('a line ends without CR', at)
      const line = text.slice(start, end - 1)
      this.headBytes += end + 1 - start
      start = end + 1
      if (this.place === 'status') this.readStatus(line)
      else if (line === '') this.endHead()
      else this.readHeader(line)
      if (this.fault !== undefined) return at
      if (this.complete || (this.place !== 'status' && this.place !== 'headers')) {
        this.line = ''
        return at + start - held
      }
    }
    this.line = text.slice(start)
    if (this.headBytes + this.line.length > maxHeadBytes)
      return this.refuse(`its head is larger than ${maxHeadBytes} bytes`, at)
    // Refused at the first wrong byte: a server of another protocol may wait for us after its greeting.
    if (this.place === 'status' && !this.line.startsWith('HTTP/1.'.slice(0, this.line.length)))
      return this.refuse('it does not begin with "HTTP/1."', at)
    return at + part.length
  }

  private readStatus(line: string): void {
    const [, version = '', status = ''] = statusLine.exec(line) ?? []
    if (status === '') this.refuse('its status line is malformed')
    this.version = version
    this.code = Number(status)
    this.place = 'headers'
  }

  private readHeader(line: string): void {
    // Also refuses a line that goes on from the one before it (obs-fold), and a space before the colon.
    if (!headerLine.test(line)) return this.refuse('a header is malformed')
    const colon = line.indexOf(':')
    // All headers that are read have names of 10 to 17 characters.
    if (colon < 10 || colon > 17) return
    const name = line.slice(0, colon).toLowerCase()
    if (name === 'content-type') this.contentType ??= fieldValue(line, colon + 1)
    else if (name === 'content-encoding') {
      this.contentEncoding = joined(this.contentEncoding, fieldValue(line, colon + 1))
    } else if (name === 'mcp-session-id') {
      this.sessionId = this.sessionIds++ === 0 ? ownFieldValue(line, colon + 1) : undefined
    } else if (name === 'www-authenticate') {
      this.challenge = joined(this.challenge, ownFieldValue(line, colon + 1))
    } else if (name === 'content-length') {
      const value = fieldValue(line, colon + 1)
      // RFC 9112 section 6.3: two Content-Length headers, even equal ones, are a sign of response splitting.
      if (this.length !== undefined || !/^\d{1,15}$/.test(value)) this.refuse('its Content-Length is not one number')
      this.length = Number(value)
    } else if (name === 'transfer-encoding') {
      // RFC 9112 section 6.1: no other transfer coding was asked for, and HTTP/1.0 has none.
      if (this.chunked || this.version !== '1' || fieldValue(line, colon + 1).toLowerCase() !== 'chunked')
        this.refuse('its Transfer-Encoding is not "chunked"')
      this.chunked = true
    } else if (name === 'connection') {
      if (/(?:^|[\t ,])close(?:$|[\t ,])/i.test(fieldValue(line, colon + 1))) this.mayStay = false
    } else if (name === 'keep-alive') {
      const seconds = /(?:^|[\t ,])timeout=(\d{1,6})(?:$|[\t ,])/i.exec(fieldValue(line, colon + 1))?.[1]
      if (seconds !== undefined) this.keepAliveMs = Number(seconds) * 1000
    }
  }

  /** Finds the length of the body (RFC 9112 section 6.3). */
  private endHead(): void {
    const { code, length } = this
    if (this.headBytes > maxHeadBytes) return this.refuse(`its head is larger than ${maxHeadBytes} bytes`)
    if (this.chunked && length !== undefined) return this.refuse('it has both Content-Length and Transfer-Encoding')
    if (code === 101 || (code < 200 && this.version !== '1'))
      return this.refuse('it changes the protocol, which was not asked for')
    if (code < 200) {
      this.place = 'status'
      return this.forgetHead()
    }
    this.status = code
    if (this.version !== '1') this.mayStay = false
    if (code === 204 || code === 304 || length === 0) return void (this.complete = true)
    if (this.chunked) this.place = 'size'
    else if (length !== undefined) {
      this.left = length
      this.place = 'length'
    } else {
      this.mayStay = false
      this.place = 'close'
    }
  }

  /** Reads the size of a chunk, the line end after one, or a trailer. @returns the index of the next unread byte */
  private readChunkLine(bytes: Buffer, at: number, size: number): number {
    let end = at
    while (end < size && bytes[end] !== 10) end++
    this.line += bytes.toString('latin1', at, end)
    const { line, place } = this
    if (line.length > (place === 'trailers' ? maxHeadBytes : maxChunkLine))
      return this.refuse('a line between its chunks is too long', at)
    if (end === size) return size
    this.line = ''
    if (!line.endsWith('\r')) return this.refuse('a line ends without CR', at)
    const text = line.slice(0, -1)
    if (place === 'size') {
      const found = chunkLine.exec(text)
      if (found === null) return this.refuse('the size of a chunk is malformed', at)
      this.left = parseInt(found[1] ?? '', 16)
      this.place = this.left === 0 ? 'trailers' : 'chunk'
    } else if (place === 'chunk end') {
      if (text !== '') return this.refuse('a chunk is longer than its size', at)
      this.place = 'size'
    } else if (text === '') this.complete = true
    else {
      this.headBytes += line.length + 1
      if (this.headBytes > maxHeadBytes || !headerLine.test(text) || framing.test(text))
        return this.refuse('a trailer is malformed', at)
    }
    return end + 1
  }

  private refuse(fault: string): void
  private refuse(fault: string, at: number): number
  private refuse(fault: string, at = 0): number {
    this.fault ??= fault
    return at
  }
}
