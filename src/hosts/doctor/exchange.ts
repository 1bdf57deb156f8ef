// One exchange over HTTP as a host makes it, and what a failing connection means. No redirect is followed, and nothing
// is taken on trust: an answer counts as the gateway's only where it has the gateway's marks (answers.ts).

import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { createParser } from 'eventsource-parser'
import { openRequest } from '../../egress/requests.ts'
import { type Guarded, portOf } from '../../egress/sockets.ts'
import { isObject, type JsonObject } from '../../protocol/messages.ts'
import { steadyClock } from '../../time/clock.ts'
import { Diagnosis, type FaultCode } from './catalogue.ts'

export interface Exchanged {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly text: string
  /** The body, where it is a JSON object; of a stream of events its first message. */
  readonly json: JsonObject | undefined
}

export interface Wanted {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Done as soon as the head of the answer is there: of any, or of a stream of events. */
  readonly head?: 'of any' | 'of a stream'
  /** The guard of the URL. Default: it may lead anywhere. */
  readonly guarded?: Guarded | undefined
}

/** The reason for addresses that the gateway does not ask: what is inside a network is told to nobody. */
export const notAsked = 'it is none of those that the gateway asks'

export interface Way {
  /** PEM of authorities that are trusted besides. */
  readonly ca: string | undefined
  readonly timeoutMs: number
}

export type SendOnce = (url: URL, wanted?: Wanted) => Promise<Exchanged>

/** The most characters of an answer that are kept. */
const maxBodyChars = 1_048_576

/** An answer, or the rest of one, that did not come in time on a connection that was made. */
export const noAnswerInTime = 'NO_ANSWER'

/** No answer, with the code of the system (`ECONNREFUSED`, `CERT_HAS_EXPIRED`, `ETIMEDOUT`) or `NO_ANSWER`. */
export class ConnectionFault extends Error {
  override readonly name = 'ConnectionFault'
  readonly code: string

  constructor(code: string, message: string, cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}

/** @throws ConnectionFault */
export const sender =
  ({ ca, timeoutMs }: Way): SendOnce =>
  (url, { method = 'GET', headers = {}, body, head, guarded } = {}) => {
    const { promise, resolve, reject } = Promise.withResolvers<Exchanged>()
    const sent = { ...headers, ...(body !== undefined && { 'Content-Length': Buffer.byteLength(body) }) }
    const outgoing = openRequest(url, { method, headers: sent, guarded, ca })
    outgoing.on('response', (answer) => {
      const { statusCode: status = 0 } = answer
      const kept = Object.entries(answer.headers).map(([name, value]) => [name, value?.toString()])
      const given = Object.fromEntries(kept) as Exchanged['headers']
      const isStream = given['content-type']?.startsWith('text/event-stream') === true
      let text = ''
      let json = undefined as JsonObject | undefined
      // Each piece is looked at once: an answer may come byte by byte, and this runs in the gateway, too.
      const parser = createParser({ onEvent: ({ data }) => (json ??= jsonOf(data)) })
      const done = (): void => {
        timer.close()
        resolve({ status, headers: given, text, json: isStream ? json : jsonOf(text) })
        outgoing.destroy()
      }
      if (head === 'of any' || (head !== undefined && isStream)) return done()
      answer.setEncoding('utf8')
      answer.on('data', (part: string) => {
        text += part
        if (isStream) parser.feed(part)
        if (text.length > maxBodyChars || json !== undefined) done()
      })
      answer.on('end', done)
      answer.on('error', fail)
    })
    const timer = steadyClock.timer(timeoutMs, () => {
      const isConnected = outgoing.socket?.connecting === false
      outgoing.destroy(new ConnectionFault(isConnected ? noAnswerInTime : 'ETIMEDOUT', 'no answer in time'))
    })
    function fail(error: NodeJS.ErrnoException): void {
      timer.close()
      const isRefused = error.code === 'EGRESS_REFUSED'
      reject(new ConnectionFault(isRefused ? '' : (error.code ?? ''), isRefused ? notAsked : error.message, error))
    }
    outgoing.on('error', fail)
    outgoing.end(body)
    return promise
  }

function jsonOf(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Looks up the addresses of a host. @throws Diagnosis dns_unknown */
export async function addressesOf({ hostname }: URL): Promise<string[]> {
  const name = hostname.replace(/^\[|\]$/g, '')
  if (isIP(name) !== 0) return [name]
  try {
    return (await lookup(name, { all: true })).map(({ address }) => address)
  } catch (error) {
    throw new Diagnosis('dns_unknown', { hostname, code: (error as NodeJS.ErrnoException).code ?? '' })
  }
}

const tlsFaults: Readonly<Record<string, FaultCode>> = {
  CERT_HAS_EXPIRED: 'tls_expired',
  CERT_NOT_YET_VALID: 'tls_not_yet_valid',
  ERR_TLS_CERT_ALTNAME_INVALID: 'tls_wrong_name',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls_unknown_ca',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls_unknown_ca',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'tls_unknown_ca',
  UNABLE_TO_GET_ISSUER_CERT: 'tls_unknown_ca',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'tls_incomplete_chain'
}

const connectFaults: Readonly<Record<string, FaultCode>> = {
  [noAnswerInTime]: 'no_answer',
  ETIMEDOUT: 'not_reachable',
  EHOSTUNREACH: 'not_reachable',
  ENETUNREACH: 'not_reachable',
  ECONNRESET: 'connection_cut',
  EPIPE: 'connection_cut'
}

/** Why the endpoint's own address gives no answer. Where that may be another protocol, that one is tried. */
export async function diagnosisOf(
  { code, message }: ConnectionFault,
  url: URL,
  { timeoutMs }: Way,
  send: SendOnce
): Promise<Diagnosis> {
  const isTls = url.protocol === 'https:'
  const facts = {
    hostname: url.hostname,
    address: `${url.hostname}:${portOf(url)}`,
    code: code === '' ? message : code,
    detail: message,
    seconds: timeoutMs / 1_000
  }
  const found = (fault: FaultCode): Diagnosis => new Diagnosis(fault, facts)
  const ofTls = tlsFaults[code]
  if (ofTls !== undefined) return found(ofTls)
  if (/_CERTIFICATE_REQUIRED$|_BAD_CERTIFICATE$/.test(code)) return found('client_certificate_wanted')
  const isOtherProtocol = code.startsWith('HPE_') || code.startsWith('ERR_SSL_') || code === 'EPROTO'
  if (isOtherProtocol || code === 'ECONNRESET') {
    if (await speaks(url, isTls ? 'http:' : 'https:', send))
      return found(isTls ? 'tls_at_plain_port' : 'plain_at_tls_port')
    if (isTls && (/_ALERT_|UNRECOGNIZED_NAME/.test(code) || /before secure TLS connection/.test(message)))
      return found('tls_refused')
    if (isOtherProtocol) return found('not_http')
  }
  return found(connectFaults[code] ?? 'connection_refused')
}

/**
 * Checks whether HTTP is spoken at the same port with TLS, or without. A certificate that is not trusted is TLS, too.
 */
async function speaks(url: URL, protocol: 'http:' | 'https:', send: SendOnce): Promise<boolean> {
  try {
    await send(new URL(`${protocol}//${url.hostname}:${portOf(url)}/`), { head: 'of any' })
    return true
  } catch (error) {
    if (!(error instanceof ConnectionFault)) throw error
    return tlsFaults[error.code] !== undefined || /_ALERT_/.test(error.code)
  }
}
