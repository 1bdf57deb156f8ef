// Requests that are no calls: the stream of a session, its end, notifications, responses to server requests; and those
// for which nobody has to be let in, such as metadata and pages. Each is one line of the log when it is over, so that
// every request has one.

import { isObject } from '../protocol/messages.ts'
import { firstOf } from '../protocol/own-text.ts'
import { steadyClock } from '../time/clock.ts'
import { callerFieldsOf, loggedSessionChars, rounded } from './call-text.ts'
import type { ObservedPrincipal } from './calls.ts'
import { loggedPath, type RefusalObservers } from './refused-requests.ts'

/** Of the method of a notification. */
const maxMessageChars = 64
/** Different ones of a batch that are named. */
const maxMessages = 4

interface HttpRequest {
  readonly id: string
  readonly method: string
  readonly url: string
  /** When it began, in milliseconds of the steady clock. */
  readonly since: number
}

interface AdmittedRequest {
  readonly tenant: { readonly id: string }
  readonly endpoint: { readonly name: string }
  readonly principal: ObservedPrincipal
  readonly address?: string | undefined
  readonly sessionKey?: string
  readonly replayed?: number
  readonly raw: {
    readonly statusCode: number
    readonly writableEnded: boolean
    readonly destroyed: boolean
    once(event: 'close', listener: () => void): unknown
  }
}

interface OpenRequest extends HttpRequest {
  /** Then it has a line that says why. */
  readonly isRefused?: boolean
}

interface OpenPlace {
  /** That its path names, where there is such a tenant. */
  readonly tenant: string | undefined
  readonly address: string | undefined
  readonly raw: {
    readonly statusCode: number
    readonly headersSent: boolean
    once(event: 'close', listener: () => void): unknown
  }
}

/** One that asks for no credential, or reads it itself. */
export function noteOpenRequest(
  { log, strangers }: Pick<RefusalObservers, 'log' | 'strangers'>,
  request: OpenRequest,
  { tenant, address, raw }: OpenPlace
): void {
  const { id: requestId, method, url, since } = request
  // Now: the login front gives it another URL.
  const path = loggedPath(url)
  raw.once('close', () => {
    if (request.isRefused === true) return
    // Whoever has left was told nothing.
    const status = raw.headersSent ? raw.statusCode : undefined
    const ms = rounded(steadyClock.now() - since)
    // Who comes too often shall not fill the log.
    log[status === 429 ? 'debug' : (strangers?.levelOf('info', address) ?? 'info')](
      { requestId, tenant, method, path, status, ms, address },
      'request'
    )
  })
}

/**
 * @param body of a POST, as it was read
 * @returns what is called when the request was served; undefined where it holds a request of MCP, which has a line of
 * its own as a call
 */
export function otherRequest(
  { log, shownCaller }: Pick<RefusalObservers, 'log' | 'shownCaller'>,
  { id, method, url, since }: HttpRequest,
  context: AdmittedRequest,
  body: unknown
): (() => void) | undefined {
  const message = method === 'POST' ? messageOf(body) : undefined
  if (method === 'POST' && message === undefined) return undefined
  const { tenant, endpoint, principal, address, raw } = context
  const [path] = url.split('?', 1)
  const write = (): void => {
    const { sessionKey, replayed } = context
    log.info(
      {
        requestId: id,
        tenant: tenant.id,
        endpoint: endpoint.name,
        ...callerFieldsOf(shownCaller?.(tenant.id, principal) ?? principal),
        session: sessionKey?.slice(-loggedSessionChars),
        method,
        path,
        status: raw.statusCode,
        message,
        replayed,
        ms: rounded(steadyClock.now() - since),
        address
      },
      'request'
    )
  }
  // A stream is open still.
  return () => void (method !== 'GET' || raw.writableEnded || raw.destroyed ? write() : raw.once('close', write))
}

/** @returns undefined for what is a call, or holds some */
function messageOf(body: unknown): string | undefined {
  if (Array.isArray(body)) {
    const all = body.map(messageOf)
    return all.includes(undefined) ? undefined : [...new Set(all)].slice(0, maxMessages).join(',')
  }
  if (!isObject(body)) return undefined
  const { method, id } = body
  if (method === undefined) return 'response'
  return typeof method === 'string' && id === undefined ? firstOf(method, maxMessageChars) : undefined
}
