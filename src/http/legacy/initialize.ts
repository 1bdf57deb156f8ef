// How a client of the handshake revisions gets its session and shows it again (basic/lifecycle; basic/transports
// "Session Management").

import { capabilitiesFit, maxCapabilitiesBytes } from '../../protocol/envelope.ts'
import {
  atLeast,
  GatewayError,
  type Implementation,
  isLegacyRevision,
  isObject,
  type JsonObject,
  latestLegacy,
  legacyRevisions,
  type RequestId,
  responseMessage,
  type Revision
} from '../../protocol/messages.ts'
import { shapeCapabilities } from '../../protocol/translate/revision-shape.ts'
import type { EndpointContext } from '../../relay/call/call.ts'
import type { LegacyRelay } from '../../relay/legacy-relay.ts'
import type { LiveSessions } from '../../session/live-sessions.ts'
import type { NegotiatedClient, Owner, Session, Sessions } from '../../session/sessions.ts'
import { readAccept } from '../accept.ts'
import { sendJson } from '../reply.ts'
import { sseHeaders } from '../sse-writer.ts'
import type { RequestContext } from '../request-context.ts'

export interface InitializeOptions {
  readonly relay: LegacyRelay
  readonly sessions: Sessions
  readonly live: LiveSessions
  readonly serverInfo: Implementation
}

export interface LegacyHandshake {
  /**
   * Opens a session and answers with its id.
   *
   * @throws GatewayError invalid_request, invalid_params, too_many, unavailable
   */
  initialize(context: RequestContext, id: RequestId, params: JsonObject | undefined): Promise<void>
  /**
   * The caller's session that the request names.
   * @throws GatewayError session_required, invalid_request, session_unknown, unavailable
   */
  resolveSession(context: RequestContext): Promise<Session>
}

// 256 bits in base64url. An id of another shape belongs to some other server; its client had better replace it.
const ownId = /^[A-Za-z0-9_-]{43}$/
const plausibleId = /^[A-Za-z0-9_-]{1,128}$/

export function createLegacyHandshake({ relay, sessions, live, serverInfo }: InitializeOptions): LegacyHandshake {
  const load = async (context: RequestContext, id: string): Promise<Session | undefined> =>
    ownId.test(id) ? await sessions.load(id, ownerOf(context), context.endpoint.name) : undefined

  return {
    async resolveSession(context) {
      const id = context.incoming.headers['mcp-session-id']
      if (id === undefined)
        throw new GatewayError(
          'session_required',
          'The request needs the Mcp-Session-Id that initialize answered with. Send initialize first.'
        )
      if (typeof id !== 'string' || !plausibleId.test(id))
        throw new GatewayError('invalid_request', 'The Mcp-Session-Id header is not a session id of this gateway.')
      const session = await load(context, id)
      if (session !== undefined) return session
      throw new GatewayError(
        'session_unknown',
        'This session does not exist or has ended. Send a new initialize without Mcp-Session-Id.'
      )
    },

    async initialize(context, id, params) {
      const { raw, incoming } = context
      const given = incoming.headers['mcp-session-id']
      if (typeof given === 'string' && (await load(context, given)) !== undefined)
        throw new GatewayError(
          'invalid_request',
          'This session is initialized already. Send initialize without Mcp-Session-Id to open another one.'
        )
      const client = readInitializeParams(params)
      const opened = await sessions.open(ownerOf(context), context.endpoint.name, client)
      // After the store: while that is away, nobody waits for upstreams only to be refused.
      const described = await relay.describe(context, opened.session.record)
      try {
        // The configuration may have changed meanwhile: no session begins at an endpoint that is no longer there.
        await context.revalidate()
      } catch (error) {
        await sessions.end(opened.session)
        throw error
      }
      live.use(opened.session)
      const headers = { ...context.headers, 'Mcp-Session-Id': opened.id }
      const message = responseMessage(id, initializeResult(context, client.revision, described, serverInfo))
      if (readAccept(incoming.headers.accept).json) return sendJson(raw, 200, message, headers)
      raw.writeHead(200, { ...headers, ...sseHeaders }).end(`event: message\ndata: ${JSON.stringify(message)}\n\n`)
    }
  }
}

/** What a client says of itself. @throws GatewayError invalid_params */
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
    clientInfo:
      isObject(clientInfo) && typeof clientInfo['name'] === 'string'
        ? {
            name: clientInfo['name'].slice(0, 200),
            version: typeof clientInfo['version'] === 'string' ? clientInfo['version'].slice(0, 100) : 'unknown'
          }
        : undefined,
    capabilities: isObject(capabilities) ? capabilities : {}
  }
}

/** What `initialize` answers. */
export function initializeResult(
  { tenant, endpoint }: EndpointContext,
  revision: Revision,
  { capabilities, instructions }: Awaited<ReturnType<LegacyRelay['describe']>>,
  serverInfo: Implementation
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

export const ownerOf = ({ tenant, principal }: RequestContext): Owner => ({
  tenant: tenant.id,
  issuer: principal.issuer,
  subject: principal.subject,
  clientId: principal.clientId
})

/**
 * 2025-11-25 basic/transports "Protocol Version Header": invalid or unsupported is 400.
 * @throws GatewayError unsupported_version
 */
export function checkRevision(context: RequestContext): Revision | undefined {
  const header = context.incoming.headers['mcp-protocol-version']
  if (header === undefined) return undefined
  if (isLegacyRevision(header)) return header
  throw new GatewayError(
    'unsupported_version',
    'The MCP-Protocol-Version header names a revision that this endpoint does not speak.',
    {
      data: { supported: legacyRevisions, requested: String(header).slice(0, 40) }
    }
  )
}
