// Is the server one of 2026-07-28? One question, `server/discover`, and what its answer says (basic/versioning, basic/transports
// "Backward Compatibility" of both transports). What proves nothing is thrown: a server that is down is of no era.

import { capabilitiesKey, clientInfoKey, serverInfoKey, versionKey } from '../../protocol/envelope.ts'
import { GatewayError, RpcError } from '../../protocol/errors.ts'
import { isObject, metaOf } from '../../protocol/messages.ts'
import { isLegacyRevision, latestModern, modernRevisions } from '../../protocol/revisions.ts'
import { boundedError } from '../endings.ts'
import { printable } from '../decode.ts'
import type { UpstreamName } from '../../protocol/ids.ts'
import type { Implementation, JsonObject, Request, RpcErrorObject } from '../../protocol/messages.ts'
import type { ModernRevision } from '../../protocol/revisions.ts'
import type { Greeting } from '../link.ts'

/** What came back for one `server/discover`. */
export type Answer =
  | { readonly kind: 'result', readonly result: JsonObject }
  /** `proper`: in the way in which this era answers with errors, as far as the transport can tell. */
  | { readonly kind: 'error', readonly error: RpcErrorObject, readonly proper: boolean }
  /** Something that no server of this era answers. `silent`: nothing at all. */
  | { readonly kind: 'foreign', readonly reason: GatewayError, readonly silent?: boolean }

export interface ModernGreeting extends Greeting {
  readonly revision: ModernRevision
}

/** The server does not speak this era, as far as its answer says. */
export interface Absence {
  readonly reason: GatewayError
  /** It said nothing: perhaps it was only slow to start. */
  readonly silent: boolean
}

export const isAbsence = (found: object): found is Absence => 'silent' in found

const mismatch = -32020
const capability = -32021
const unsupported = -32022

/** Codes that no server of an older era has. */
export const upgradeCodes: ReadonlySet<number> = new Set([mismatch, capability, unsupported])

/** Do these codes come from a server that knows this era, in answer to a message of the older one? */
export const modernCodes: ReadonlySet<number> = new Set([...upgradeCodes, -32601, -32602])

export function discoverRequest (version: ModernRevision, clientInfo: Implementation): Request {
  return { method: 'server/discover', params: { _meta: { [versionKey]: version, [clientInfoKey]: clientInfo, [capabilitiesKey]: {} } } }
}

/**
 * @param ask sends one `server/discover` of this revision; throws what is no evidence of any era
 * @throws GatewayError also where the server is of this era and there is no revision that both speak, or it refuses to say more
 */
export async function probe (name: UpstreamName, ask: (version: ModernRevision) => Promise<Answer>): Promise<ModernGreeting | Absence> {
  let answer = await ask(latestModern)
  if (answer.kind === 'error' && answer.proper && answer.error.code === unsupported) {
    const choice = chosen(name, supportedBy(answer.error), answer.error)
    if ('silent' in choice) return choice
    answer = await ask(choice.revision)
  }
  if (answer.kind === 'foreign') return { reason: answer.reason, silent: answer.silent === true }
  if (answer.kind === 'result') return greetingOf(name, answer.result)
  const { error, proper } = answer
  if (proper && (error.code === mismatch || error.code === capability || error.code === unsupported)) {
    throw new GatewayError('upstream_protocol', `Upstream ${name} speaks revision 2026-07-28, but refuses to say what it offers: ${printable(error.message, 300)} (${error.code}). Does a proxy in front of it change headers?`, { cause: new RpcError(boundedError(error)), data: { upstream: name } })
  }
  return absent(name, `it answered server/discover with error ${error.code}: ${printable(error.message, 200)}`)
}

/** `data.supported` of an error -32022. */
export const supportedBy = ({ data }: RpcErrorObject): readonly unknown[] => isObject(data) && Array.isArray(data['supported']) ? data['supported'] : []

/** One that both speak; an absence where only older ones are left. @throws GatewayError where there is none at all */
function chosen (name: UpstreamName, supported: readonly unknown[], cause: RpcErrorObject | undefined): { readonly revision: ModernRevision } | Absence {
  const revision = modernRevisions.find((each) => supported.includes(each))
  if (revision !== undefined) return { revision }
  if (supported.some(isLegacyRevision)) return absent(name, 'it offers older revisions only')
  const offered = supported.filter((each) => typeof each === 'string').slice(0, 10).map((each) => printable(each, 40)).join(', ')
  throw new GatewayError('upstream_protocol', `Upstream ${name} speaks ${offered === '' ? 'no revision that it names' : offered}; the gateway speaks ${modernRevisions.join(', ')} and older ones.`, { cause, data: { upstream: name } })
}

function greetingOf (name: UpstreamName, result: JsonObject): ModernGreeting | Absence {
  const { supportedVersions, capabilities, instructions, resultType = 'complete' } = result
  if (!Array.isArray(supportedVersions) || !isObject(capabilities) || resultType !== 'complete') return absent(name, 'what it answered to server/discover says nothing about revisions and capabilities')
  const choice = chosen(name, supportedVersions, undefined)
  if ('silent' in choice) return choice
  // Before the revision was final, servers said who they are in the body.
  const serverInfo = [metaOf(result)[serverInfoKey], result['serverInfo']].find((each) => isObject(each) && typeof each['name'] === 'string' && typeof each['version'] === 'string')
  return {
    revision: choice.revision,
    capabilities,
    serverInfo: serverInfo as Implementation | undefined ?? { name, version: 'unknown' },
    instructions: typeof instructions === 'string' ? instructions : undefined
  }
}

/** @param cause for the log */
export function absent (name: UpstreamName, why: string, cause?: unknown): Absence {
  return {
    reason: new GatewayError('upstream_protocol', `Upstream ${name} does not speak revision 2026-07-28: ${why}.`, { cause, data: { upstream: name } }),
    silent: false
  }
}
