// The door for the handshake revisions over Streamable HTTP: POST, GET and DELETE of one endpoint (2025-11-25 basic/transports).

import type { Log } from '../observe/log.ts'
import { GatewayError, RpcError, errorObject } from '../protocol/errors.ts'
import { classifyMessage, errorMessage, notificationMessage, responseMessage } from '../protocol/messages.ts'
import type { JsonObject, Message } from '../protocol/messages.ts'
import type { Client } from '../protocol/seams.ts'
import type { Call } from '../relay/call.ts'
import type { CallInFlight, LiveSession } from '../session/live.ts'
import { readAccept } from './accept.ts'
import { checkRevision, createHandshake, ownerOf } from './handshake.ts'
import type { HandshakeOptions } from './handshake.ts'
import { createReply } from './reply.ts'
import type { Reply } from './reply.ts'
import { eventStream, streamHeaders } from './stream.ts'
import type { KeepAlive } from './stream.ts'
import type { Visit } from './visit.ts'

export interface DoorOptions extends HandshakeOptions {
  readonly keepAlive: KeepAlive
  readonly clock: { now (): number }
  readonly log: Log
  /** Calls in flight over all sessions, for the drain. */
  readonly calls: Set<AbortController>
}

export interface LegacyDoor {
  post (visit: Visit, body: unknown): Promise<void>
  get (visit: Visit): Promise<void>
  remove (visit: Visit): Promise<void>
}

export function createLegacyDoor (options: DoorOptions): LegacyDoor {
  const { relay, sessions, live, keepAlive, clock, log, calls } = options
  const { initialize, sessionOf } = createHandshake(options)

  /** Runs one request; resolves with the message that answers it, or undefined where the caller cancelled it. Never rejects. */
  async function answer (visit: Visit, session: LiveSession, message: Message & { kind: 'request' }, client: Client): Promise<JsonObject | undefined> {
    const controller = new AbortController()
    let cancelled = false
    const entry: CallInFlight = {
      id: message.id,
      cancel (reason) {
        cancelled = true
        controller.abort(new GatewayError('cancelled', reason ?? 'The caller cancelled the request.'))
      },
      end (reason) {
        controller.abort(reason)
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
        return accept(visit)
      }
      const reply = createReply(visit.raw, accepts, visit.headers)
      const quiet = keepQuietCallAlive(reply)
      const final = await answer(visit, current, message, clientFor(current, reply))
      quiet()
      if (final === undefined) reply.endSilently()
      else reply.end(final)
    },

    async get (visit) {
      checkRevision(visit)
      if (!readAccept(visit.incoming.headers.accept).stream) throw new GatewayError('not_acceptable', 'GET opens the stream of a session; it needs Accept: text/event-stream.')
      const session = live.use(await sessionOf(visit))
      const { raw } = visit
      // Gone while we looked: its end was told already, and would not be told again to what is attached below.
      if (raw.destroyed) return
      raw.writeHead(200, { ...visit.headers, ...streamHeaders })
      const stream = eventStream(raw, () => log.warn({ tenant: visit.tenant.id, endpoint: visit.endpoint.name }, 'a client did not read its stream; closed'))
      // Headers alone can sit in a proxy until the first byte of the body.
      stream.comment('open')
      const validUntil = visit.principal.expiresAt === undefined ? Infinity : visit.principal.expiresAt + visit.tenant.auth.leewaySeconds * 1000
      const detach = session.attach({
        send (notification) {
          if (clock.now() > validUntil) stream.end()
          else stream.send(notificationMessage(notification))
        },
        end: () => stream.end()
      })
      const quiet = keepAlive.add(() => {
        stream.comment('keep-alive')
        stillWelcome(visit).then((welcome) => {
          if (welcome) relay.touch(visit, session)
          else stream.end()
        }, (err: unknown) => log.debug({ err }, 'a listening caller could not be checked again; next time'))
      })
      raw.once('close', () => {
        quiet()
        detach()
      })
    },

    async remove (visit) {
      checkRevision(visit)
      const session = await sessionOf(visit)
      await sessions.end(session)
      visit.raw.writeHead(204, { ...visit.headers }).end()
    }
  }

  /** Would this GET be let in now? A listening client is a living one, so its session does not idle out. */
  async function stillWelcome (visit: Visit): Promise<boolean> {
    try {
      await visit.recheck()
      return await sessions.load(String(visit.incoming.headers['mcp-session-id']), ownerOf(visit), visit.endpoint.name) !== undefined
    } catch (error) {
      if (error instanceof GatewayError && !error.row.retry) return false
      throw error
    }
  }

  async function postBatch (visit: Visit, session: LiveSession, body: readonly unknown[]): Promise<void> {
    const { batchMessages } = visit.snapshot.limits
    if (body.length === 0 || body.length > batchMessages) throw new GatewayError('invalid_request', `A batch has 1 to ${batchMessages} messages.`)
    const messages = body.map(classifyMessage)
    if (messages.some((message) => message.kind === 'request' && message.request.method === 'initialize')) {
      throw new GatewayError('invalid_request', 'initialize must not be part of a batch.')
    }
    if (messages.every((message) => message.kind !== 'request' && message.kind !== 'invalid')) {
      for (const message of messages) takeNotification(session, message)
      return accept(visit)
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

/** 2025-11-25 basic/transports: 202 without a body for what is not answered. */
function accept ({ raw, headers }: Visit): void {
  raw.writeHead(202, { ...headers, 'Content-Length': 0 }).end()
}
