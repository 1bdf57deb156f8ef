// Reads the head of a request that leaves no doubt, and no other: any that two readers could take for two things, or
// that asks for more than an answer, is left to Node's parser (RFC 9112 sections 2 to 6).

import type { IncomingHttpHeaders } from 'node:http'

export interface RequestHead {
  readonly method: 'POST' | 'DELETE'
  readonly url: string
  /** By lower-case name. */
  readonly headers: IncomingHttpHeaders
  /** As Node has them: name, value, name, value. */
  readonly rawHeaders: readonly string[]
  /** In bytes. */
  readonly bodyLength: number
  readonly keepAlive: boolean
}

const requestLine = /^(POST|DELETE) (\/[\x21-\x7e]*) HTTP\/1\.1$/
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** Of header fields, in latin1 (RFC 9110 section 5.5). */
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/
const length = /^(?:0|[1-9]\d{0,8})$/
const maxFields = 100
/** Their meaning goes beyond the request that they stand in. */
const unusual: ReadonlySet<string> = new Set([
  'transfer-encoding',
  'expect',
  'upgrade',
  'te',
  'trailer',
  'proxy-connection'
])

/**
 * @param text latin1, without the empty line at its end
 * @returns undefined for anything but a POST in its usual form, with a length, or a DELETE without a body
 */
export function readRequestHead(text: string): RequestHead | undefined {
  const [first = '', ...lines] = text.split('\r\n', maxFields + 2)
  if (lines.length > maxFields) return undefined
  const [, method, url] = requestLine.exec(first) ?? []
  if (url === undefined) return undefined
  const headers: IncomingHttpHeaders = Object.create(null) as IncomingHttpHeaders
  const rawHeaders: string[] = []
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(0, colon))
    const value = trimmed(line, colon + 1)
    const lower = name.toLowerCase()
    if (!token.test(name) || !fieldValue.test(value) || lower in headers || unusual.has(lower)) return undefined
    headers[lower] = value
    rawHeaders.push(name, value)
  }
  const { host = '', connection = 'keep-alive' } = headers
  const given = headers['content-length']
  const option = connection.toLowerCase()
  if (host === '' || (option !== 'keep-alive' && option !== 'close')) return undefined
  const rest = { url, headers, rawHeaders, keepAlive: option === 'keep-alive' }
  // Without a length, and not in chunks, there is none (RFC 9112 section 6.3).
  if (method === 'DELETE') return given === undefined ? { ...rest, method, bodyLength: 0 } : undefined
  return given !== undefined && length.test(given) ? { ...rest, method: 'POST', bodyLength: Number(given) } : undefined
}

/** What nearly all requests begin with that are read here; with anything else there is nothing to wait for. */
const beginning = Buffer.from('POST /')
export const headEnd = Buffer.from('\r\n\r\n')

/** Reads the heads of one connection: clients repeat them, byte for byte, but for the length. */
export class HeadReader {
  private lastBytes = Buffer.alloc(0)
  private lastHead: RequestHead | undefined

  /** @returns where the head ends, -1 where that has not come */
  endOf(bytes: Buffer): number {
    const { length } = this.lastBytes
    const isRepeated = this.isLast(bytes, length) && bytes.indexOf(headEnd, length) === length
    return isRepeated ? length : bytes.indexOf(headEnd)
  }

  /** @returns as `readRequestHead` */
  read(bytes: Buffer, end: number): RequestHead | undefined {
    if (this.isLast(bytes, end)) return this.lastHead
    this.lastBytes = Buffer.from(bytes.subarray(0, end))
    return (this.lastHead = readRequestHead(bytes.toString('latin1', 0, end)))
  }

  private isLast(bytes: Buffer, end: number): boolean {
    const { lastBytes } = this
    return end > 0 && end === lastBytes.length && bytes.length >= end && bytes.compare(lastBytes, 0, end, 0, end) === 0
  }
}

/** Without the white space around it: blanks and tabs alone. */
function trimmed(line: string, from: number): string {
  let [start, end] = [from, line.length]
  while (start < end && isBlank(line, start)) start++
  while (end > start && isBlank(line, end - 1)) end--
  return line.slice(start, end)
}

const isBlank = (line: string, at: number): boolean => line[at] === ' ' || line[at] === '\t'

/** Of a request that may be one of those that are read here. */
export function isBeginning(bytes: Buffer): boolean {
  const length = Math.min(bytes.length, beginning.length)
  return bytes.compare(beginning, 0, length, 0, length) === 0
}
