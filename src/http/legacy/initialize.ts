// `initialize` of both legacy transports (basic/lifecycle): what it says, and what it is answered.

import { capabilitiesFit, maxCapabilitiesBytes, softwareOf } from '../../protocol/envelope.ts'
import {
  atLeast,
  GatewayError,
  isLegacyRevision,
  isObject,
  latestLegacy,
  responseMessage,
  type JsonObject,
  type Message,
  type Revision
} from '../../protocol/messages.ts'
import { shapeCapabilities } from '../../protocol/translate/revision-shape.ts'
import type { LegacyRelay } from '../../relay/legacy-relay.ts'
import type { NegotiatedClient, Owner, SessionRecord } from '../../session/session-record.ts'
import { observe, type CallObservers } from '../../observe/calls.ts'
import type { Clock } from '../../time/clock.ts'
import type { CallContext, RequestContext } from '../admission.ts'
import { callRecordOf } from '../calls-in-flight.ts'

/** What a client says of itself in `initialize`. @throws GatewayError invalid_params */
export function readInitializeParams(params: JsonObject | undefined): NegotiatedClient {
  const { protocolVersion, clientInfo, capabilities } = params ?? {}
  if (typeof protocolVersion !== 'string')
    throw new GatewayError('invalid_params', '"protocolVersion" of initialize must be a string.')
  // They stay in the store as long as the session.
  if (isObject(capabilities) && !capabilitiesFit(capabilities))
    throw new GatewayError(
      'invalid_params',
      `"capabilities" of initialize takes more than ${maxCapabilitiesBytes} bytes as JSON. Leave out what the ` +
        'server need not know.'
    )
  return {
    // basic/lifecycle "Version Negotiation".
    revision: isLegacyRevision(protocolVersion) ? protocolVersion : latestLegacy,
    clientInfo: softwareOf(clientInfo),
    capabilities: isObject(capabilities) ? capabilities : {}
  }
}

export function initializeResult(
  { tenant, endpoint }: CallContext,
  revision: Revision,
  { capabilities, instructions, serverInfo }: Awaited<ReturnType<LegacyRelay['describe']>>
): JsonObject {
  return {
    protocolVersion: revision,
    capabilities: shapeCapabilities(capabilities, revision),
    serverInfo: atLeast(revision, '2025-06-18')
      ? { ...serverInfo, title: `Gatehouse: ${tenant.id}/${endpoint.name}` }
      : serverInfo,
    ...(instructions === undefined ? {} : { instructions })
  }
}

/**
 * Runs a request that comes before its session is initialized, writes one line about it, and counts it; the audit log
 * has a record of the session.
 * @param client what it says of itself, as far as that could be read
 * @param key of the session
 * @returns the text of its answer
 */
export function observeHandshake(
  observers: CallObservers,
  context: CallContext,
  { revision, clientInfo: software }: Partial<NegotiatedClient>,
  key: string,
  { id, request }: Message & { kind: 'request' },
  run: () => Promise<JsonObject>
): Promise<string> {
  const { tenant, endpoint, principal } = context
  const record = callRecordOf(context, { id, revision, software, session: key })
  return observe({ tenant, endpoint, principal, request, record }, { ...observers, audit: undefined }, async () => {
    const text = JSON.stringify(responseMessage(id, await run()))
    record.answerBytes = Buffer.byteLength(text)
    return text
  })
}

export const ownerOf = ({ principal: { tenant, issuer, subject, clientId } }: RequestContext): Owner => ({
  tenant,
  issuer,
  subject,
  clientId
})

/** Of a session that is over: how long it was open, until now or until its client used it last. */
export function measureSession(
  { observers, clock }: { readonly observers: CallObservers; readonly clock: Pick<Clock, 'now'> },
  record: SessionRecord,
  endedAt = clock.now()
): void {
  const { owner, endpoint, revision, openedAt } = record
  const seconds = Math.max(0, endedAt - openedAt) / 1e3
  observers.metrics?.sessionEnded?.(seconds, { tenant: owner.tenant, endpoint, revision })
}
