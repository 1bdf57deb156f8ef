// What a modern server sees of a legacy session, and what of its results is left for one. Questions of such a server cannot be put to
// the client of a session yet, so it is declared nothing that could be asked.

import { GatewayError, RpcError } from '../protocol/errors.ts'
import type { UpstreamName } from '../protocol/ids.ts'
import { uiExtension } from '../protocol/merge.ts'
import { isObject } from '../protocol/messages.ts'
import type { ClientCapabilities, Result } from '../protocol/messages.ts'

export function declaredToModern ({ extensions }: ClientCapabilities): ClientCapabilities {
  return isObject(extensions) && isObject(extensions[uiExtension]) ? { extensions: { [uiExtension]: extensions[uiExtension] } } : {}
}

/** @throws GatewayError upstream_protocol on a result that is not the last word */
export function lastWord ({ resultType = 'complete', ...result }: Result, upstream: UpstreamName): Result {
  if (resultType === 'complete') return result
  throw new GatewayError('upstream_protocol', `Upstream ${upstream} asks for input in the way of 2026-07-28, which this client cannot be asked in. Use a client that speaks 2026-07-28.`, { data: { upstream } })
}

/** -32020 to -32022 are about the hop between the gateway and the server, or about a capability that was not declared there. */
export function older (error: unknown, upstream: UpstreamName): unknown {
  if (!(error instanceof RpcError) || error.error.code > -32_020 || error.error.code < -32_022) return error
  const what = error.error.code === -32_021 ? 'needs a capability of the client that only a client of 2026-07-28 can offer' : 'and the gateway do not agree on the protocol'
  return new GatewayError('upstream_protocol', `Upstream ${upstream} ${what} (error ${error.error.code}).`, { cause: error, data: { upstream } })
}
