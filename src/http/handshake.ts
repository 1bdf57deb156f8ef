// How a client of the handshake revisions gets its session and shows it again (basic/lifecycle; basic/transports "Session Management").

import { fits, maxCapabilitiesBytes } from '../protocol/envelope.ts'
import { GatewayError } from '../protocol/errors.ts'
import { isObject, responseMessage } from '../protocol/messages.ts'
import type { Implementation, JsonObject, RequestId } from '../protocol/messages.ts'
import { atLeast, isLegacyRevision, legacyRevisions, negotiate } from '../protocol/revisions.ts'
import type { Revision } from '../protocol/revisions.ts'
import { shapeCapabilities } from '../protocol/shape.ts'
import type { Place } from '../relay/call.ts'
import type { Relay } from '../relay/relay.ts'
import type { LiveSessions } from '../session/live.ts'
import type { Hello, Owner, Session, Sessions } from '../session/sessions.ts'
import { readAccept } from './accept.ts'
import { sendJson } from './reply.ts'
import { streamHeaders } from './stream.ts'
import type { Visit } from './visit.ts'

export interface HandshakeOptions {
  readonly relay: Relay
  readonly sessions: Sessions
  readonly live: LiveSessions
  readonly serverInfo: { readonly name: string, readonly version: string }
}

export interface Handshake {
  /** Opens a session and answers with its id. @throws GatewayError invalid_request, invalid_params, too_many, unavailable */
  initialize (visit: Visit, id: RequestId, params: JsonObject | undefined): Promise<void>
  /** The caller's session that the request names. @throws GatewayError session_required, invalid_request, session_unknown, unavailable */
  sessionOf (visit: Visit): Promise<Session>
}

// 256 bits in base64url. Another shape was never ours: some other server's session, which the client had better replace.
const ownId = /^[A-Za-z0-9_-]{43}$/
const plausibleId = /^[A-Za-z0-9_-]{1,128}$/

export function createHandshake ({ relay, sessions, live, serverInfo }: HandshakeOptions): Handshake {
  async function sessionOf (visit: Visit): Promise<Session> {
    const id = visit.incoming.headers['mcp-session-id']
    if (id === undefined) {
      throw new GatewayError('session_required', 'The request needs the Mcp-Session-Id that initialize answered with. Send initialize first.')
    }
    if (typeof id !== 'string' || !plausibleId.test(id)) {
      throw new GatewayError('invalid_request', 'The Mcp-Session-Id header is not a session id of this gateway.')
    }
    const session = ownId.test(id) ? await sessions.load(id, ownerOf(visit), visit.endpoint.name) : undefined
    if (session === undefined) {
      throw new GatewayError('session_unknown', 'This session does not exist or has ended. Send a new initialize without Mcp-Session-Id.')
    }
    return session
  }

  async function initialize (visit: Visit, id: RequestId, params: JsonObject | undefined): Promise<void> {
    const given = visit.incoming.headers['mcp-session-id']
    if (typeof given === 'string' && ownId.test(given) && await sessions.load(given, ownerOf(visit), visit.endpoint.name) !== undefined) {
      throw new GatewayError('invalid_request', 'This session is initialized already. Send initialize without Mcp-Session-Id to open another one.')
    }
    const hello = readHello(params)
    const opened = await sessions.open(ownerOf(visit), visit.endpoint.name, hello)
    // After the store: while that is away, nobody waits for upstreams only to be refused.
    const described = await relay.describe(visit, opened.session.record)
    try {
      // The configuration may have changed while we waited: nothing begins at a place that is no longer there.
      await visit.recheck()
    } catch (error) {
      await sessions.end(opened.session)
      throw error
    }
    live.use(opened.session)
    const headers = { ...visit.headers, 'Mcp-Session-Id': opened.id }
    const message = responseMessage(id, welcome(visit, hello.revision, described, serverInfo))
    if (readAccept(visit.incoming.headers.accept).json) return sendJson(visit.raw, 200, message, headers)
    visit.raw.writeHead(200, { ...headers, ...streamHeaders }).end(`event: message\ndata: ${JSON.stringify(message)}\n\n`)
  }

  return { initialize, sessionOf }
}

/** What `initialize` says. @throws GatewayError invalid_params */
export function readHello (params: JsonObject | undefined): Hello {
  if (typeof params?.['protocolVersion'] !== 'string') throw new GatewayError('invalid_params', '"protocolVersion" of initialize must be a string.')
  const { clientInfo, capabilities } = params
  // It stays in the store as long as the session.
  if (isObject(capabilities) && !fits(capabilities)) throw new GatewayError('invalid_params', `"capabilities" of initialize takes more than ${maxCapabilitiesBytes} bytes as JSON. Leave out what the server need not know.`)
  return {
    revision: negotiate(params['protocolVersion']),
    clientInfo: isObject(clientInfo) && typeof clientInfo['name'] === 'string'
      ? { name: clientInfo['name'].slice(0, 200), version: typeof clientInfo['version'] === 'string' ? clientInfo['version'].slice(0, 100) : 'unknown' }
      : undefined,
    capabilities: isObject(capabilities) ? capabilities : {}
  }
}

/** What `initialize` answers. */
export function welcome ({ tenant, endpoint }: Place, revision: Revision, { capabilities, instructions }: Awaited<ReturnType<Relay['describe']>>, serverInfo: Implementation): JsonObject {
  return {
    protocolVersion: revision,
    capabilities: shapeCapabilities(capabilities, revision),
    serverInfo: atLeast(revision, '2025-06-18') ? { ...serverInfo, title: `Gatehouse: ${tenant.id}/${endpoint.name}` } : serverInfo,
    ...(instructions === undefined ? {} : { instructions })
  }
}

export const ownerOf = ({ tenant, principal }: Visit): Owner =>
  ({ tenant: tenant.id, issuer: principal.issuer, subject: principal.subject, clientId: principal.clientId })

/**
 * 2025-11-25 basic/transports "Protocol Version Header": invalid or unsupported is 400.
 * @throws GatewayError unsupported_version
 */
export function checkRevision (visit: Visit): Revision | undefined {
  const header = visit.incoming.headers['mcp-protocol-version']
  if (header === undefined) return undefined
  if (isLegacyRevision(header)) return header
  throw new GatewayError('unsupported_version', 'The MCP-Protocol-Version header names a revision that this endpoint does not speak.', {
    data: { supported: legacyRevisions, requested: String(header).slice(0, 40) }
  })
}

