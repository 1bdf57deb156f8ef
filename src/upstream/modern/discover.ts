// Judges by the answer to `server/discover` whether a server is one of 2026-07-28 (2026-07-28 basic/versioning;
// basic/transports "Backward Compatibility"). An answer that proves nothing is thrown as an error: a server that is
// down has no known era.

import {
  type GatewayError,
  type Implementation,
  isLegacyRevision,
  isObject,
  type JsonObject,
  latestModern,
  metaOf,
  modernOnlyCodes,
  type ModernRevision,
  modernRevisions,
  type Request,
  rpcCodes,
  RpcError,
  type RpcErrorObject,
  type UpstreamName
} from '../../protocol/messages.ts'
import { capabilitiesKey, clientInfoKey, serverInfoKey, versionKey } from '../../protocol/envelope.ts'
import { boundedError, upstreamError } from '../rpc/errors.ts'
import { printable } from '../rpc/decode-json.ts'
import { type HandshakeResult, handshakeResultOf } from '../rpc/link.ts'

export type DiscoverAnswer =
  | { readonly kind: 'result'; readonly result: JsonObject }
  /** `proper`: the transport carried the error as 2026-07-28 says. */
  | { readonly kind: 'error'; readonly error: RpcErrorObject; readonly proper: boolean }
  /** No server of this era answers so. */
  | ({ readonly kind: 'foreign' } & NotModern)

export interface DiscoverResult extends HandshakeResult {
  readonly revision: ModernRevision
}

export interface NotModern {
  readonly reason: GatewayError
  /** The server did not answer in time: it may only have been slow to start. */
  readonly silent: boolean
}

export const isNotModern = (found: object): found is NotModern => 'silent' in found

/** The codes with which a server of 2026-07-28 refuses a legacy message. */
export const modernCodes: ReadonlySet<number> = new Set([
  ...modernOnlyCodes,
  rpcCodes.methodNotFound,
  rpcCodes.invalidParams
])

export function discoverRequest(version: ModernRevision, clientInfo: Implementation): Request {
  return {
    method: 'server/discover',
    params: { _meta: { [versionKey]: version, [clientInfoKey]: clientInfo, [capabilitiesKey]: {} } }
  }
}

/**
 * @param ask sends one `server/discover` of this revision; throws an error that proves nothing about the era
 * @throws GatewayError also if the server is one of 2026-07-28 but has no common revision, or refuses `server/discover`
 */
export async function discoverModern(
  name: UpstreamName,
  ask: (version: ModernRevision) => Promise<DiscoverAnswer>
): Promise<DiscoverResult | NotModern> {
  let answer = await ask(latestModern)
  if (answer.kind === 'error' && answer.proper && answer.error.code === rpcCodes.unsupportedRevision) {
    const revision = commonRevision(name, supportedVersions(answer.error), answer.error)
    if (typeof revision !== 'string') return revision
    answer = await ask(revision)
  }
  if (answer.kind === 'foreign') return answer
  if (answer.kind === 'result') return discoverResult(name, answer.result)
  const { error, proper } = answer
  if (proper && modernOnlyCodes.has(error.code)) {
    throw upstreamError(
      name,
      'upstream_protocol',
      `Upstream ${name} speaks revision 2026-07-28, but refuses to say what it offers: ` +
        `${printable(error.message, 300)} (${error.code}). Does a proxy in front of it change headers?`,
      new RpcError(boundedError(error))
    )
  }
  return notModern(name, `it answered server/discover with error ${error.code}: ${printable(error.message, 200)}`)
}

/** Returns the versions that an error `unsupportedRevision` names. */
export const supportedVersions = ({ data }: RpcErrorObject): readonly unknown[] =>
  isObject(data) && Array.isArray(data['supported']) ? data['supported'] : []

/** @throws GatewayError if there is no common revision, not even a legacy one */
function commonRevision(
  name: UpstreamName,
  supported: readonly unknown[],
  cause: RpcErrorObject | undefined
): ModernRevision | NotModern {
  const revision = modernRevisions.find((each) => supported.includes(each))
  if (revision !== undefined) return revision
  if (supported.some(isLegacyRevision)) return notModern(name, 'it offers older revisions only')
  const offered = supported
    .filter((each) => typeof each === 'string')
    .slice(0, 10)
    .map((each) => printable(each, 40))
    .join(', ')
  throw upstreamError(
    name,
    'upstream_protocol',
    `Upstream ${name} speaks ${offered === '' ? 'no revision that it names' : offered}; ` +
      `the gateway speaks ${modernRevisions.join(', ')} and older ones.`,
    cause
  )
}

function discoverResult(name: UpstreamName, result: JsonObject): DiscoverResult | NotModern {
  const { supportedVersions, capabilities, resultType = 'complete' } = result
  if (!Array.isArray(supportedVersions) || !isObject(capabilities) || resultType !== 'complete')
    return notModern(name, 'what it answered to server/discover says nothing about revisions and capabilities')
  const revision = commonRevision(name, supportedVersions, undefined)
  if (typeof revision !== 'string') return revision
  const { ttlMs } = result
  return {
    // Before the revision was final, servers said who they are in the body.
    ...handshakeResultOf(name, revision, result, metaOf(result)[serverInfoKey], result['serverInfo']),
    ttlMs: typeof ttlMs === 'number' && ttlMs > 0 ? ttlMs : 0,
    namesLegacy: supportedVersions.some(isLegacyRevision)
  }
}

/** @param cause for the log */
export function notModern(name: UpstreamName, why: string, cause?: unknown): NotModern {
  return {
    reason: upstreamError(
      name,
      'upstream_protocol',
      `Upstream ${name} does not speak revision 2026-07-28: ${why}.`,
      cause
    ),
    silent: false
  }
}
