// Errors of the admin API as problem details (RFC 9457): what is wrong, where, and what to do.

import type { Problem } from '../config/problems.ts'
import { ControlError } from '../control/control-error.ts'
import { GatewayError, isObject } from '../protocol/messages.ts'

/** The last part of `type`, its status and its title. */
export const problemTable = {
  invalid_request: [400, 'The request is not valid.'],
  unauthenticated: [401, 'There is no valid admin key.'],
  forbidden: [403, 'The role of the key may not do this.'],
  forbidden_host: [403, 'The Host header names another host.'],
  forbidden_origin: [403, 'Web pages of other origins may not call.'],
  not_found: [404, 'There is no such thing, or the key is not for it.'],
  method_not_allowed: [405, 'The path has other methods.'],
  not_acceptable: [406, 'The route has no such form.'],
  request_timeout: [408, 'The request did not arrive in time.'],
  managed_by_file: [409, 'The configuration file has it, where alone it can be changed.'],
  conflict: [409, 'It is in a state that does not allow this.'],
  limit_reached: [409, 'It would be more than is kept.'],
  precondition_failed: [412, 'It has changed since.'],
  too_large: [413, 'The body is too large.'],
  unsupported_media_type: [415, 'The body is not JSON.'],
  not_usable: [422, 'The configuration cannot be used so.'],
  precondition_required: [428, 'The request does not say which version it changes.'],
  rate_limited: [429, 'Too many requests.'],
  headers_too_large: [431, 'The headers and the path are too large.'],
  internal: [500, 'The gateway has a fault.'],
  unavailable: [503, 'The store does not answer.']
} as const

export type ProblemCode = keyof typeof problemTable

export class AdminProblem extends Error {
  override readonly name = 'AdminProblem'
  readonly code: ProblemCode
  /** The remedy: what to do. */
  readonly remedy: string
  /** Each fault of a body or query. */
  readonly errors: readonly Problem[] | undefined
  readonly headers: Readonly<Record<string, string>>
  /** The request took effect, or may have: it is not run again for the same Idempotency-Key. */
  readonly mayBeDone: boolean

  /** @param message what is wrong, a whole sentence */
  constructor(
    code: ProblemCode,
    message: string,
    remedy: string,
    extras: Partial<Pick<AdminProblem, 'errors' | 'headers' | 'mayBeDone'>> = {}
  ) {
    super(message)
    this.code = code
    this.remedy = remedy
    this.errors = extras.errors
    this.headers = extras.headers ?? {}
    this.mayBeDone = extras.mayBeDone ?? false
  }

  get status(): number {
    return problemTable[this.code][0]
  }

  /** @param path of the request */
  body(path: string) {
    const [status, title] = problemTable[this.code]
    return {
      type: `urn:gatehouse:problem:${this.code}`,
      title,
      status,
      detail: this.message,
      instance: path,
      remedy: this.remedy,
      ...(this.errors !== undefined && { errors: this.errors })
    }
  }
}

/** @param what the kind of resource, with its article. Resources of other tenants get the same words as missing ones */
export const noSuch = (what: string): AdminProblem =>
  new AdminProblem('not_found', `There is no such ${what}, or this key is not for it.`, 'List what there is.')

/** The gateway's and Fastify's own errors as problems. undefined: a fault, which is for the log. */
export function problemOf(error: unknown): AdminProblem | undefined {
  if (error instanceof AdminProblem) return error
  if (error instanceof ControlError)
    return new AdminProblem(error.code, error.message, error.remedy, error.problems && { errors: error.problems })
  if (error instanceof GatewayError) {
    const { code, message, headers } = error
    if (code === 'unavailable') return new AdminProblem('unavailable', message, 'Try again in a second.', { headers })
    if (code === 'parse_error' || code === 'invalid_request')
      return new AdminProblem('invalid_request', message, 'Send one JSON object in UTF-8.')
    return undefined
  }
  switch (isObject(error) ? error['code'] : undefined) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new AdminProblem('too_large', 'The body is larger than the admin API takes.', 'Send a smaller one.', {
        headers: { Connection: 'close' }
      })
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return notJsonBody()
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
      return new AdminProblem(
        'invalid_request',
        'The body does not have the length that Content-Length says.',
        'Send one JSON object.'
      )
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new AdminProblem('not_found', 'The path of the URL cannot be read.', 'See /openapi.json for all paths.')
    default:
      return undefined
  }
}

/** @param headers of the answer */
export const notJsonBody = (headers: Readonly<Record<string, string>> = {}): AdminProblem =>
  new AdminProblem(
    'unsupported_media_type',
    'The body is not sent as plain JSON.',
    'Send it with Content-Type: application/json, in UTF-8, without Content-Encoding.',
    { headers }
  )
