// The line of the log about a request that was refused before it became a call.

import type { GatewayError } from '../protocol/messages.ts'
import { firstOf } from '../protocol/own-text.ts'
import { shortError, type Log } from './log.ts'

export interface RefusedRequest {
  readonly id: string
  readonly method: string
  /** As it was asked for. */
  readonly url: string
  readonly headers: { readonly host?: string | undefined; readonly origin?: string | undefined }
  /** Undefined where nobody was let in. */
  readonly context?: { readonly principal: Readonly<Record<'kind' | 'subject' | 'clientId', string>> } | undefined
  readonly raw: { readonly socket: { readonly remoteAddress?: string | undefined } }
}

/** Of what a stranger chose, in characters. */
const maxShownChars = 200

/** One line, without the query of its URL, which may hold a token. */
export function logRefused(log: Log, request: RefusedRequest, tenant: string | undefined, error: GatewayError): void {
  const { id, method, url, headers, context, raw } = request
  const { code, row, cause } = error
  const principal = context?.principal
  const [path = ''] = url.split('?', 1)
  log[row.level === 'warn' ? 'info' : row.level](
    {
      requestId: id,
      tenant,
      ...(principal && {
        [principal.kind === 'key' ? 'apiKey' : 'user']: principal.subject,
        client: principal.clientId
      }),
      method: method.slice(0, 16),
      path: firstOf(path, maxShownChars),
      ...(code === 'forbidden_host' && { host: firstOf(headers.host ?? '', maxShownChars) }),
      ...(code === 'forbidden_origin' && { origin: firstOf(headers.origin ?? '', maxShownChars) }),
      reason: code,
      error: firstOf(error.message, maxShownChars),
      ...(cause === undefined ? {} : { cause: shortError(cause) }),
      address: raw.socket.remoteAddress
    },
    'refused'
  )
}
