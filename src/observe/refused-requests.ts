// The line of the log about a request that was refused before it became a call.

import type { GatewayError } from '../protocol/messages.ts'
import { firstOf } from '../protocol/own-text.ts'
import { callerFieldsOf, rounded } from './call-text.ts'
import { type CallObservers, maxLoggedChars, type ObservedPrincipal } from './calls.ts'
import { shortError, type Log } from './log.ts'
import type { StrangerLines } from './lines/stranger-lines.ts'

export interface RefusedRequest {
  readonly id: string
  /** '' where it could not be read; so is its URL. */
  readonly method: string
  /** As it was asked for. */
  readonly url: string
  readonly headers: { readonly host?: string | undefined; readonly origin?: string | undefined }
  /** Undefined where nobody was let in. */
  readonly context?: { readonly principal: ObservedPrincipal } | undefined
  /** The caller, where a kill switch let nobody in. */
  readonly stopped?: ObservedPrincipal | undefined
  /** Of the client. */
  readonly address: string | undefined
  /** From when its headers were there until it was refused. */
  readonly ms?: number
}

export interface RefusalObservers {
  readonly log: Log
  readonly shownCaller?: CallObservers['shownCaller']
  readonly metrics?: { refused(reason: string, tenant: string | undefined): void } | undefined
  /** Absent: each of their requests has a line. */
  readonly strangers?: StrangerLines
}

/** Of the pages and registrations of a login front: who has it may go on where another one began. */
const loginId = /^((?:\/login\/[^/]+)?\/(?:auth|consents|interaction|reg)\/)[^/]+/i

/** As it is logged: without its query, and without ids of the login front. */
export function loggedPath(url: string): string {
  const [path = ''] = url.split('?', 1)
  return firstOf(path.replace(loginId, '$1…'), maxLoggedChars)
}

/**
 * One line, without the query of its URL, which may hold a token; and counted.
 * @param tenant that its path names, where there is such a tenant
 */
export function noteRefused(
  { log, metrics, shownCaller = asTheyAre, strangers }: RefusalObservers,
  request: RefusedRequest,
  tenant: string | undefined,
  error: GatewayError
): void {
  const { id, method, url, headers, context, stopped, address, ms } = request
  const caller = context?.principal ?? stopped
  const { code, row, cause } = error
  const level = context === undefined ? (strangers?.levelOf(row.level, address) ?? row.level) : row.level
  log[level](
    {
      requestId: id,
      tenant,
      ...(caller && callerFieldsOf(shownCaller(tenant ?? '', caller))),
      ...(method !== '' && { method: method.slice(0, 16), path: loggedPath(url) }),
      ...(code === 'forbidden_host' && { host: firstOf(headers.host ?? '', maxLoggedChars) }),
      ...(code === 'forbidden_origin' && { origin: firstOf(headers.origin ?? '', maxLoggedChars) }),
      status: row.status,
      reason: code,
      error: firstOf(error.message, maxLoggedChars),
      ...(cause === undefined ? {} : { cause: shortError(cause) }),
      ...(ms === undefined ? {} : { ms: rounded(ms) }),
      address
    },
    'refused'
  )
  metrics?.refused(code, context === undefined ? undefined : tenant)
}

const asTheyAre = (_tenant: string, principal: ObservedPrincipal): ObservedPrincipal => principal
