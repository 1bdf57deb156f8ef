// What the end of an HTTP request to an upstream means to whoever called. Messages name the origin only: a path, a query or a
// header may hold a secret. An upstream's status never becomes ours, least of all its 401, which would make clients refresh our token.

import { GatewayError, RpcError } from '../protocol/errors.ts'
import { isObject } from '../protocol/messages.ts'
import { boundedError, Down, isRpcError } from './endings.ts'
import type { UpstreamName } from '../protocol/ids.ts'
import type { Outcome } from './delivery.ts'

type Failure = Exclude<Outcome, { kind: 'answered' }>

/** @param place origin of the upstream's URL */
export function failureError (name: UpstreamName, place: string, failure: Failure): GatewayError {
  switch (failure.kind) {
    case 'unsent':
      return new Down('upstream_unavailable', `Upstream ${name} cannot be reached at ${place}${codeOf(failure.cause)}: check that it runs and that its url is right.`, { cause: failure.cause, data: { upstream: name } })
    case 'broken':
      return lostError(name, `broke${codeOf(failure.cause)} before its answer was complete`, failure.cause)
    case 'garbled':
      return new GatewayError('upstream_protocol', `The answer of upstream ${name} cannot be used: ${failure.reason}.`, { data: { outcome: 'unknown', upstream: name } })
    case 'refused':
      return refusedError(name, place, failure)
  }
}

export function lostError (name: UpstreamName, what: string, cause?: unknown): GatewayError {
  return new GatewayError('upstream_lost', `The connection to upstream ${name} ${what}. The request is not sent again; whether it took effect is unknown.`, { cause, data: { outcome: 'unknown', upstream: name } })
}

function refusedError (name: UpstreamName, place: string, { status, body, detail }: Failure & { kind: 'refused' }): GatewayError {
  const said = detail === '' ? '' : ` It said: ${detail}`
  const data = { upstream: name, status }
  const cause = rpcErrorIn(body)
  if (status === 401 || status === 403) {
    return new GatewayError('upstream_unavailable', `Upstream ${name} refused our credentials (HTTP ${status}): check its headers in the configuration.`, { cause, data })
  }
  if (status >= 300 && status <= 399) {
    return new GatewayError('upstream_protocol', `Upstream ${name} at ${new URL(place).host} redirects (HTTP ${status}), which is not followed: set its url to the final address.`, { cause, data })
  }
  if (status === 429) return new GatewayError('upstream_unavailable', `Upstream ${name} has too many requests (HTTP 429). Retry later.${said}`, { cause, data })
  if (status === 503) return new GatewayError('upstream_unavailable', `Upstream ${name} is not available (HTTP 503). Retry later.${said}`, { cause, data })
  // A proxy's 502 or a 500 may come after the work was done.
  if (status >= 500) return new GatewayError('upstream_unavailable', `Upstream ${name} failed (HTTP ${status}); whether the request took effect is unknown.${said}`, { cause, data: { ...data, outcome: 'unknown' } })
  if (status === 404 || status === 405) {
    return new GatewayError('upstream_protocol', `There is no MCP endpoint of upstream ${name} at ${place} (HTTP ${status}): check its url.${said}`, { cause, data })
  }
  return new GatewayError('upstream_protocol', `Upstream ${name} refused the request (HTTP ${status}).${said}`, { cause, data })
}

/** What the server itself said: for the log, and for whoever has to find out what it is. */
function rpcErrorIn (body: unknown): RpcError | undefined {
  const error = isObject(body) ? body['error'] : undefined
  return isRpcError(error) ? new RpcError(boundedError(error)) : undefined
}

function codeOf (error: Error): string {
  const code = (error as NodeJS.ErrnoException).code
  return typeof code === 'string' && /^[A-Z0-9_]{1,40}$/.test(code) ? ` (${code})` : ''
}
