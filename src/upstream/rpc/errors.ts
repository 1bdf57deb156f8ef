// The errors that end a call to an upstream. Messages name only the origin of a URL: a path, a query or a header may
// hold a secret. The status of an upstream never becomes ours: a 401 would make clients refresh their gateway token.

import { isOutOfDescriptors, outOfDescriptors } from '../../limits/descriptors.ts'
import {
  GatewayError,
  isObject,
  type JsonObject,
  RpcError,
  type RpcErrorObject,
  type UpstreamName
} from '../../protocol/messages.ts'
import { firstOf } from '../../protocol/own-text.ts'
import type { ErrorCode } from '../../protocol/error-table.ts'

/** The server's own error, in an answer that proves that the request was not executed. */
export class NotExecutedError extends RpcError {}

/**
 * The server was not reached, or did not answer a handshake without capabilities: every caller would get this error.
 */
export class UnreachableError extends GatewayError {}

/** The server refused the credential (401), or its scope (403). The request was not executed. */
export class CredentialsRefusedError extends GatewayError {
  readonly status: 401 | 403
  /** The header `WWW-Authenticate` of the refusal. */
  readonly challenge: string | undefined

  constructor(upstream: UpstreamName, status: 401 | 403, challenge: string | undefined, cause: unknown) {
    super('upstream_unavailable', '', { cause, data: { upstream, status } })
    this.status = status
    this.challenge = challenge
    // RFC 9728 section 5.1: `resource_metadata` names the authorization servers.
    const takesTokens = /resource_metadata/i.test(challenge ?? '')
    this.explain(
      takesTokens
        ? 'it takes tokens of an authorization server. With auth: { type: user } in its definition each person ' +
            'connects an account of their own.'
        : 'check its headers in the configuration.'
    )
  }

  /** @param hint what to do, as the end of a sentence */
  explain(hint: string): void {
    this.message = `Upstream ${String(this.data['upstream'])} refused our credentials (HTTP ${this.status}): ${hint}`
  }
}

export type HttpFailure =
  /** A status other than 2xx; `detail`: the message of a JSON-RPC error in the body, if there was one. */
  | {
      readonly kind: 'refused'
      readonly status: number
      readonly body: unknown
      readonly detail: string
      /** `WWW-Authenticate` (RFC 9110 section 11.6.1). */
      readonly challenge?: string | undefined
    }
  /** No byte of the request was sent. */
  | { readonly kind: 'unsent'; readonly cause: Error }
  /** Not sent, because the gateway has as many requests open at the upstream as its limit allows. */
  | { readonly kind: 'limited'; readonly what: string }
  /** The connection broke after the request may have been sent. */
  | { readonly kind: 'broken'; readonly cause: Error }
  /** The response is invalid; `too_many`: there was no memory for it. */
  | { readonly kind: 'garbled'; readonly reason: string; readonly code?: 'too_many' | undefined }

/**
 * The longest `message` and `data` of a server's error that are passed on, in characters: longer ones are stack traces.
 */
const maxErrorLength = 8_192

export const cancelledError = (upstream: UpstreamName): GatewayError =>
  upstreamError(upstream, 'cancelled', 'The request was cancelled by its caller.')

/** The gateway closed the connection while the call was in flight. */
export const closedError = (name: UpstreamName): GatewayError =>
  uncertainError(name, 'cancelled', `The connection to upstream ${name} was closed.`)

/** The request was not sent. */
export const endedError = (upstream: UpstreamName, cause: Error): GatewayError =>
  upstreamError(upstream, 'upstream_unavailable', `The connection to upstream ${upstream} has ended. Try again.`, cause)

/** A borrowed session has no request ids left. Normally its home was asked for more ids long before. */
export const noIdsError = (upstream: UpstreamName): GatewayError =>
  new GatewayError('unavailable', `Requests to upstream ${upstream} are too many at once. Retry in a second.`, {
    headers: { 'Retry-After': '1' }
  })

export const timeoutError = (name: UpstreamName, timeoutMs: number): GatewayError =>
  uncertainError(
    name,
    'upstream_timeout',
    `Upstream ${name} sent nothing for ${timeoutMs / 1000} s, so the request was cancelled there. ` +
      'Whether it took effect is unknown.'
  )

/** 2025-11-25 basic/lifecycle "Timeouts": there is a maximum whatever progress a server reports. */
export const tooLongError = (name: UpstreamName, maxTimeoutMs: number): GatewayError =>
  uncertainError(
    name,
    'upstream_timeout',
    `Upstream ${name} did not answer within ${maxTimeoutMs / 1000} s (maxTimeoutMs), so the request was cancelled ` +
      'there. Whether it took effect is unknown.'
  )

export const refusedAnswerError = (name: UpstreamName): GatewayError =>
  uncertainError(
    name,
    'upstream_unavailable',
    `Upstream ${name} asked something and refused the answer, so the request was given up. ` +
      'Whether it took effect is unknown.'
  )

/** The end of the message about a request that was sent and whose outcome is unknown. */
export const uncertainty = ' The request is not sent again; whether it took effect is unknown.'

/** The message about a connection that has ended, without the sentence about a request. */
export const withoutRequest = (message: string): string =>
  message.replace(uncertainty, '').replace(' before it answered.', '.')

/** @param what what happened to the connection: the end of the sentence "The connection to upstream x ..." */
export const lostError = (name: UpstreamName, what: string, cause?: unknown): GatewayError =>
  uncertainError(name, 'upstream_lost', `The connection to upstream ${name} ${what}.${uncertainty}`, cause)

/** The error of a request whose outcome is known; see uncertainError for the others. */
export const upstreamError = (
  upstream: UpstreamName,
  code: ErrorCode,
  message: string,
  cause?: unknown
): GatewayError => new GatewayError(code, message, { cause, data: { upstream } })

/** The error of a request whose outcome is unknown: it may have taken effect. */
export function uncertainError(
  upstream: UpstreamName,
  code: ErrorCode,
  message: string,
  cause?: unknown
): GatewayError {
  return new GatewayError(code, message, { cause, data: { outcome: 'unknown', upstream } })
}

/** The error for a failed HTTP request. @param origin the origin of the upstream's URL */
export function failureError(name: UpstreamName, origin: string, failure: HttpFailure): GatewayError {
  switch (failure.kind) {
    case 'unsent':
      // The gateway has no file descriptor left. That says nothing about the upstream, so it is not taken for down.
      if (isOutOfDescriptors(failure.cause))
        return new GatewayError(
          'too_many',
          `Upstream ${name} was not called: ${outOfDescriptors}. Retry in a second.`,
          { cause: failure.cause, data: { upstream: name, limit: 'descriptors' } }
        )
      if (codeOf(failure.cause) === ' (EGRESS_REFUSED)')
        return new UnreachableError(
          'upstream_unavailable',
          `Upstream ${name} is not connected to: ${origin} leads to no public address, or to a port that is not ` +
            'open, and a tenant-admin may have named its host. Whoever runs the gateway can list that host by its ' +
            'own name under admin.allowedHosts, its range under egress.allow, or the port under egress.ports.',
          { cause: failure.cause, data: { upstream: name } }
        )
      return new UnreachableError(
        'upstream_unavailable',
        `Upstream ${name} cannot be reached at ${origin}${codeOf(failure.cause)}: ` +
          'check that it runs and that its url is right.',
        { cause: failure.cause, data: { upstream: name } }
      )
    case 'limited':
      return upstreamError(
        name,
        'too_many',
        `Upstream ${name} gets at most ${failure.what}, and these are open. The request was not sent: retry when ` +
          'some have ended.'
      )
    case 'broken':
      return lostError(name, `broke${codeOf(failure.cause)} before its answer was complete`, failure.cause)
    case 'garbled':
      return uncertainError(
        name,
        failure.code ?? 'upstream_protocol',
        `The answer of upstream ${name} cannot be used: ${failure.reason}.`
      )
    case 'refused':
      return refusedError(name, origin, failure)
  }
}

function refusedError(name: UpstreamName, origin: string, failure: HttpFailure & { kind: 'refused' }): GatewayError {
  const { status, body, detail } = failure
  const said = detail === '' ? '' : ` It said: ${detail}`
  // The JSON-RPC error becomes the cause, for the log and for the selection of the era.
  const own = isObject(body) ? body['error'] : undefined
  const cause = isRpcError(own) ? new RpcError(boundedError(own)) : undefined
  const error = (code: ErrorCode, message: string, data = {}): GatewayError =>
    new GatewayError(code, message, { cause, data: { upstream: name, status, ...data } })

  if (status === 401 || status === 403) return new CredentialsRefusedError(name, status, failure.challenge, cause)
  if (status >= 300 && status <= 399)
    return error(
      'upstream_protocol',
      `Upstream ${name} at ${new URL(origin).host} redirects (HTTP ${status}), which is not followed: ` +
        'set its url to the final address.'
    )
  if (status === 429)
    return error('upstream_unavailable', `Upstream ${name} has too many requests (HTTP 429). Retry later.${said}`)
  if (status === 503)
    return error('upstream_unavailable', `Upstream ${name} is not available (HTTP 503). Retry later.${said}`)
  // A proxy's 502 or a 500 may come after the work was done.
  if (status >= 500)
    return error(
      'upstream_unavailable',
      `Upstream ${name} failed (HTTP ${status}); whether the request took effect is unknown.${said}`,
      { outcome: 'unknown' }
    )
  if (status === 404 || status === 405)
    return error(
      'upstream_protocol',
      `There is no MCP endpoint of upstream ${name} at ${origin} (HTTP ${status}): check its url.${said}`
    )
  return error('upstream_protocol', `Upstream ${name} refused the request (HTTP ${status}).${said}`)
}

function codeOf(error: Error): string {
  const code = (error as NodeJS.ErrnoException).code
  return typeof code === 'string' && /^[A-Z0-9_]{1,40}$/.test(code) ? ` (${code})` : ''
}

export function isRpcError(value: unknown): value is RpcErrorObject & JsonObject {
  return isObject(value) && Number.isSafeInteger(value['code']) && typeof value['message'] === 'string'
}

export function boundedError({ code, message, data }: RpcErrorObject): RpcErrorObject {
  const bounded = { code, message: message.length > maxErrorLength ? `${firstOf(message, maxErrorLength)}…` : message }
  return data === undefined || JSON.stringify(data).length > maxErrorLength ? bounded : { ...bounded, data }
}
