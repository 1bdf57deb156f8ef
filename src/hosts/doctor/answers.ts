// What an answer at an endpoint shows: whether the gateway itself gave it, and what it says.

import { isObject, type JsonObject } from '../../protocol/messages.ts'
import { cellText } from '../../observe/text-log.ts'
import type { FaultCode } from './catalogue.ts'
import type { Exchanged, SendOnce, Way } from './exchange.ts'

export interface ExaminedEndpoint {
  readonly url: URL
  readonly origin: string | undefined
  readonly send: SendOnce
  readonly way: Way
  readonly version: string
}

const errorOf = ({ json }: Exchanged): JsonObject => (isObject(json?.['error']) ? json['error'] : {})

const textIn = (answer: Exchanged, name: 'reason' | 'refusal' | 'requestId'): string | undefined => {
  const { data } = errorOf(answer)
  const value = isObject(data) ? data[name] : undefined
  return typeof value === 'string' ? value : undefined
}

/** The code of docs/errors.md, where the gateway refused. */
export const reasonIn = (answer: Exchanged): string | undefined => textIn(answer, 'reason')
/** Returns the check that a credential did not pass, where the gateway refused one. */
export const refusalIn = (answer: Exchanged): string | undefined => textIn(answer, 'refusal')

export const saidIn = (answer: Exchanged): string =>
  cellText(errorOf(answer)['message']) ||
  answer.text.replaceAll(/\s+/g, ' ').trim().slice(0, 200) ||
  `HTTP ${answer.status}`

/**
 * An error of the gateway names its request in its data. The header X-Request-Id alone says nothing: many a proxy sets
 * one of its own. Of a result it is asked for as well, as other servers of MCP answer `initialize`, too.
 */
export const isOfGateway = (answer: Exchanged): boolean =>
  isObject(answer.json?.['result'])
    ? answer.headers['x-request-id'] !== undefined
    : reasonIn(answer) !== undefined && textIn(answer, 'requestId') !== undefined

export const facts = ({ url, origin }: ExaminedEndpoint, answer: Exchanged) => ({
  url: url.href,
  path: url.pathname,
  host: url.host,
  origin: origin ?? '',
  status: answer.status,
  type: answer.headers['content-type'] ?? 'no content type',
  location: answer.headers['location'] ?? '',
  said: saidIn(answer),
  request: textIn(answer, 'requestId') ?? answer.headers['x-request-id'] ?? ''
})

const ofReason: Readonly<Record<string, FaultCode>> = {
  forbidden_host: 'host_refused',
  forbidden_origin: 'origin_refused',
  not_found: 'endpoint_unknown',
  stopped: 'tenant_stopped',
  rate_limited: 'gateway_busy',
  quota_exceeded: 'gateway_busy',
  too_many: 'gateway_busy',
  overloaded: 'gateway_busy',
  unavailable: 'gateway_busy',
  shutting_down: 'gateway_busy',
  session_required: 'session_not_sent_on',
  unsupported_media_type: 'headers_changed',
  not_acceptable: 'headers_changed'
}

/** Returns the fault behind a refusal of the gateway that means the same at every hop. */
export const codeOfRefusal = (answer: Exchanged): FaultCode | undefined => ofReason[reasonIn(answer) ?? '']
