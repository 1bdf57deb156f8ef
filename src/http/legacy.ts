// The door for the handshake revisions over Streamable HTTP: POST, GET and DELETE of one endpoint (2025-11-25 basic/transports).

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Principal } from '../auth/principal.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError, RpcError, errorObject } from '../protocol/errors.ts'
import { classifyMessage, errorMessage, isObject, notificationMessage, responseMessage } from '../protocol/messages.ts'
import type { JsonObject, Message, RequestId } from '../protocol/messages.ts'
import { atLeast, isLegacyRevision, legacyRevisions, negotiate } from '../protocol/revisions.ts'
import type { Revision } from '../protocol/revisions.ts'
import type { Client } from '../protocol/seams.ts'
import type { Call, Place } from '../relay/call.ts'
import type { Relay } from '../relay/relay.ts'
import type { CallInFlight, LiveSession, LiveSessions } from '../session/live.ts'
import type { Owner, Session, Sessions } from '../session/sessions.ts'
import { readAccept } from './accept.ts'
import { createReply } from './reply.ts'
import type { Headers, Reply } from './reply.ts'
import { eventStream, streamHeaders } from './stream.ts'
import type { KeepAlive } from './stream.ts'

export interface DoorOptions {
  readonly relay: Relay
  readonly sessions: Sessions
  readonly live: LiveSessions
  readonly keepAlive: KeepAlive
  readonly clock: { now (): number }
  readonly log: Log
  readonly serverInfo: { readonly name: string, readonly version: string }
  /** Calls in flight over all sessions, for the drain. */
  readonly calls: Set<AbortController>
}

/** A request that has passed Host, Origin, authentication and the parser. */
export interface Visit extends Place {
  readonly principal: Principal
  readonly incoming: IncomingMessage
  readonly raw: ServerResponse
  readonly headers: Headers
  readonly requestId: string
}

export interface LegacyDoor {
  post (visit: Visit, body: unknown): Promise<void>
  get (visit: Visit): Promise<void>
  remove (visit: Visit): Promise<void>
}

// 256 bits in base64url. Another shape was never ours: some other server's session, which the client had better replace.
const ownId = /^[A-Za-z0-9_-]{43}$/
const plausibleId = /^[A-Za-z0-9_-]{1,128}$/

export function createLegacyDoor (options: DoorOptions): LegacyDoor {
  const { relay, sessions, live, keepAlive, clock, log, serverInfo, calls } = options

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
    if (typeof params?.['protocolVersion'] !== 'string') throw new GatewayError('invalid_params', '"protocolVersion" of initialize must be a string.')
    const revision = negotiate(params['protocolVersion'])
    const { capabilities, instructions } = await relay.describe(visit)
    const clientInfo = params['clientInfo']
    const opened = await sessions.open(ownerOf(visit), visit.endpoint.name, {
      revision,
      clientInfo: isObject(clientInfo) && typeof clientInfo['name'] === 'string'
        ? { name: clientInfo['name'].slice(0, 200), version: String(clientInfo['version']).slice(0, 100) }
        : undefined,
      capabilities: isObject(params['capabilities']) ? params['capabilities'] : {}
    })
    live.use(opened.session)
    const result = {
      protocolVersion: revision,
      capabilities,
      serverInfo: atLeast(revision, '2025-06-18') ? { ...serverInfo, title: `Gatehouse: ${visit.tenant.id}/${visit.endpoint.name}` } : serverInfo,
      ...(instructions === undefined ? {} : { instructions })
    }
    createReply(visit.raw, readAccept(visit.incoming.headers.accept), { ...visit.headers, 'Mcp-Session-Id': opened.id }).end(responseMessage(id, result))
  }

  /** Runs one request; resolves with the message that answers it, or undefined where the caller cancelled it. Never rejects. */
  async function answer (visit: Visit, session: LiveSession, message: Message & { kind: 'request' }, client: Client): Promise<JsonObject | undefined> {
    const controller = new AbortController()
    let cancelled = false
    const entry: CallInFlight = {
      id: message.id,
      cancel (reason) {
        cancelled = true
        controller.abort(new GatewayError('cancelled', reason ?? 'The caller cancelled the request.'))
      }
    }
    const { callsPerSession } = visit.snapshot.limits
    try {
      if (session.calls.size >= callsPerSession) {
        throw new GatewayError('too_many', `More than ${callsPerSession} requests of this session are in flight (limits.callsPerSession). Wait for answers before sending more.`)
      }
      session.calls.add(entry)
      calls.add(controller)
      const call: Call = {
        snapshot: visit.snapshot,
        tenant: visit.tenant,
        endpoint: visit.endpoint,
        request: message.request,
        principal: visit.principal,
        live: session,
        client,
        signal: controller.signal
      }
      return responseMessage(message.id, await relay.call(call))
    } catch (error) {
      if (cancelled) return undefined
      // Aborted by us, not by the caller: the reason says why.
      if (controller.signal.aborted) return errorMessage(message.id, errorObject(controller.signal.reason, visit.requestId))
      if (!(error instanceof GatewayError) && !(error instanceof RpcError)) log.error({ err: error, requestId: visit.requestId }, 'a request failed by a fault of the gateway')
      return errorMessage(message.id, errorObject(error, visit.requestId))
    } finally {
      session.calls.delete(entry)
      calls.delete(controller)
    }
  }

  function takeNotification (session: LiveSession, message: Message): void {
    if (message.kind !== 'notification' || message.notification.method !== 'notifications/cancelled') return
    const { params } = message.notification
    const reason = typeof params?.['reason'] === 'string' ? params['reason'].slice(0, 500) : undefined
    for (const call of session.calls) if (call.id === params?.['requestId']) call.cancel(reason)
  }

  function clientFor (session: LiveSession, reply: Reply): Client {
    return {
      era: 'legacy',
      capabilities: session.session.record.capabilities,
      notify: (notification) => reply.push(notificationMessage(notification)),
      ask: async ({ method }) => { throw new RpcError({ code: -32601, message: `Method not found: ${method} (this client cannot be asked through the gateway)` }) }
    }
  }

  /** A call that takes long starts its stream, so that something can be said while it runs. */
  function keepQuietCallAlive (reply: Reply): () => void {
    let beats = 0
    return keepAlive.add(() => { if (beats++ > 0) reply.beat() })
  }

  return {
    async post (visit, body) {
      const revisionHeader = checkRevision(visit)
      const accepts = readAccept(visit.incoming.headers.accept)
      if (!accepts.json && !accepts.stream) {
        throw new GatewayError('not_acceptable', 'The answer is application/json or text/event-stream; allow both in Accept.')
      }
      if (Array.isArray(body)) {
        const session = await sessionOf(visit)
        // Batches came with 2025-03-26 and went with 2025-06-18.
        if (session.record.revision !== '2025-03-26') throw new GatewayError('invalid_request', 'This session does not speak revision 2025-03-26, the only one with batches; send one message per request.')
        return await postBatch(visit, live.use(session), body)
      }
      const message = classifyMessage(body)
      if (message.kind === 'invalid') throw new GatewayError('invalid_request', `Not a JSON-RPC message: ${message.reason}.`)
      if (message.kind === 'request' && message.request.method === 'initialize') return await initialize(visit, message.id, message.request.params)
      const session = await sessionOf(visit)
      if (revisionHeader !== undefined && revisionHeader !== session.record.revision) {
        log.debug({ header: revisionHeader, negotiated: session.record.revision }, 'the MCP-Protocol-Version header is not the negotiated one; answers follow the negotiated one')
      }
      const current = live.use(session)
      if (message.kind !== 'request') {
        takeNotification(current, message)
        visit.raw.writeHead(202, { ...visit.headers, 'Content-Length': 0 }).end()
        return
      }
      const reply = createReply(visit.raw, accepts, visit.headers)
      const quiet = keepQuietCallAlive(reply)
      const final = await answer(visit, current, message, clientFor(current, reply)).finally(quiet)
      if (final === undefined) reply.endSilently()
      else reply.end(final)
    },

    async get (visit) {
      checkRevision(visit)
      if (!readAccept(visit.incoming.headers.accept).stream) throw new GatewayError('not_acceptable', 'GET opens the stream of a session; it needs Accept: text/event-stream.')
      const session = live.use(await sessionOf(visit))
      const { raw } = visit
      raw.writeHead(200, { ...visit.headers, ...streamHeaders })
      const stream = eventStream(raw, () => log.warn({ tenant: visit.tenant.id, endpoint: visit.endpoint.name }, 'a client did not read its stream; closed'))
      // Headers alone can sit in a proxy until the first byte of the body.
      stream.comment('open')
      const detach = session.attach({ send: (notification) => stream.send(notificationMessage(notification)), end: () => stream.end() })
      const { expiresAt } = visit.principal
      const quiet = keepAlive.add(() => {
        if (expiresAt !== undefined && clock.now() > expiresAt) return stream.end()
        stream.comment('keep-alive')
        relay.touch(visit, session)
        // A listening client is a living one: its session does not idle out.
        sessions.load(String(visit.incoming.headers['mcp-session-id']), ownerOf(visit), visit.endpoint.name).then(
          (found) => { if (found === undefined) stream.end() },
          (err: unknown) => log.debug({ err }, 'a listening session could not be looked up; next time')
        )
      })
      raw.once('close', () => {
        quiet()
        detach()
      })
    },

    async remove (visit) {
      const session = await sessionOf(visit)
      await sessions.end(session)
      visit.raw.writeHead(204, { ...visit.headers }).end()
    }
  }

  async function postBatch (visit: Visit, session: LiveSession, body: readonly unknown[]): Promise<void> {
    const { batchMessages } = visit.snapshot.limits
    if (body.length === 0 || body.length > batchMessages) throw new GatewayError('invalid_request', `A batch has 1 to ${batchMessages} messages.`)
    const messages = body.map(classifyMessage)
    if (messages.some((message) => message.kind === 'request' && message.request.method === 'initialize')) {
      throw new GatewayError('invalid_request', 'initialize must not be part of a batch.')
    }
    const reply = createReply(visit.raw, readAccept(visit.incoming.headers.accept), visit.headers)
    const quiet = keepQuietCallAlive(reply)
    const client = clientFor(session, reply)
    const answers = await Promise.all(messages.map(async (message) => {
      if (message.kind === 'request') return await answer(visit, session, message, client)
      if (message.kind === 'invalid') return errorMessage(message.id, { code: -32600, message: `Not a JSON-RPC message: ${message.reason}.` })
      takeNotification(session, message)
      return undefined
    })).finally(quiet)
    const final = answers.filter((message) => message !== undefined)
    if (final.length === 0) reply.endSilently()
    else reply.end(final)
  }
}

const ownerOf = ({ tenant, principal }: Visit): Owner =>
  ({ tenant: tenant.id, issuer: principal.issuer, subject: principal.subject, clientId: principal.clientId })

// 2025-11-25 basic/transports "Protocol Version Header": invalid or unsupported is 400.
function checkRevision (visit: Visit): Revision | undefined {
  const header = visit.incoming.headers['mcp-protocol-version']
  if (header === undefined) return undefined
  if (isLegacyRevision(header)) return header
  throw new GatewayError('unsupported_version', 'The MCP-Protocol-Version header names a revision that this endpoint does not speak.', {
    data: { supported: legacyRevisions, requested: String(header).slice(0, 40) }
  })
}

