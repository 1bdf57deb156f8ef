// Pages of the gateway to which clients of sessions were sent by error -32042 (2025-11-25 client/elicitation "URL
// Elicitation Required Error"). Once the person has connected what a page is for, at whichever process, the client that
// was sent there is told ("Completion Notifications"), and nobody else.

import { RpcError, type UpstreamName } from '../../protocol/messages.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import type { ConnectRequiredError } from '../../upstream/rpc/credential.ts'
import { isConnectedSince } from '../../vault/personal-views.ts'
import { definitionOf, type EndpointContext, type LegacyCall } from '../call/call.ts'
import { withUpstreamName } from './server-messages.ts'

interface AskedPage {
  readonly elicitationId: string
  /** The hash of the definition as the person had it then. */
  readonly hash: string
}

export type PagesAsked = ReturnType<typeof createPagesAsked>

export function createPagesAsked() {
  /** The page of each upstream, however often the client calls it before the person has finished. */
  const asked = new WeakMap<LiveSession, Map<UpstreamName, AskedPage>>()

  return {
    /**
     * @param error as the client would get it, which can be sent to pages
     * @returns the same with the id that its completion will be told by
     */
    noted(call: LegacyCall, upstream: UpstreamName, error: ConnectRequiredError): RpcError {
      const ofSession = asked.get(call.session) ?? new Map<UpstreamName, AskedPage>()
      asked.set(call.session, ofSession)
      const { elicitation } = error
      const { hash } = definitionOf(call, upstream)
      const page = ofSession.get(upstream) ?? { elicitationId: String(elicitation['elicitationId']), hash }
      ofSession.set(upstream, page)
      const asKnown = { ...elicitation, elicitationId: page.elicitationId }
      const elicitations = [withUpstreamName(asKnown, upstream, call.endpoint)]
      return new RpcError({ ...error.error, data: { reason: error.reason, elicitations } }, error.reason)
    },
    /**
     * Notifies the session of finished pages, after the connections of its person have changed.
     * @param context as they have it now
     */
    completed(session: LiveSession, { tenant, endpoint }: EndpointContext): void {
      const ofSession = asked.get(session)
      for (const [upstream, { elicitationId, hash }] of ofSession ?? []) {
        if (!isConnectedSince(tenant.upstreams.get(upstream), hash)) continue
        ofSession?.delete(upstream)
        const params = withUpstreamName({ elicitationId }, upstream, endpoint)
        session.send({ method: 'notifications/elicitation/complete', params })
      }
    }
  }
}
