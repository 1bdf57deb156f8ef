// The door for the transport of 2024-11-05, HTTP+SSE: a client opens a stream, is told where to post, and hears everything on the stream
// (2024-11-05 basic/transports). Stream and session are one: neither outlives the other.

import type { ServerResponse } from 'node:http'
import type { EndpointName, SessionId } from '../protocol/ids.ts'
import { GatewayError, errorObject } from '../protocol/errors.ts'
import { classifyMessage, errorMessage, responseMessage } from '../protocol/messages.ts'
import type { Message } from '../protocol/messages.ts'
import { sameOwner } from '../session/sessions.ts'
import type { Hello, Owner, Session } from '../session/sessions.ts'
import type { LiveSession } from '../session/live.ts'
import { readAccept } from './accept.ts'
import { botchedAnswer, createAnswerer, settleBotched } from './answer.ts'
import type { AnswererOptions } from './answer.ts'
import { checkRevision, ownerOf, readHello, welcome } from './handshake.ts'
import type { HandshakeOptions } from './handshake.ts'
import { openOldSseStream } from './oldsse-stream.ts'
import type { OldSseStream, Pass } from './oldsse-stream.ts'
import { pathOf } from './paths.ts'
import { sendAccepted } from './reply.ts'
import type { KeepAlive } from './stream.ts'
import { checkUnread, countUnread } from './unread.ts'
import type { Visit } from './visit.ts'
import { createWelcome, validUntil } from './welcome.ts'

export interface OldSseOptions extends HandshakeOptions, AnswererOptions {
  readonly keepAlive: KeepAlive
  readonly clock: { now (): number }
  readonly randomBytes: (size: number) => Buffer
}

export interface OldSseDoor {
  /** GET: opens session and stream. @throws GatewayError not_acceptable, too_many, unavailable, shutting_down */
  open (visit: Visit): Promise<void>
  /** POST: what it asks for is answered on the stream. @throws GatewayError invalid_request, unsupported_version, session_unknown, unavailable */
  post (visit: Visit, body: unknown): Promise<void>
  /** The configuration changed: ends the streams of those who would not be let in any more. */
  recheckAll (): void
  /** Ends every stream as soon as its calls in flight are answered. Resolves when the last one has ended. */
  close (): Promise<void>
}

/** What stands behind the id in the messages URL. */
interface Entry {
  readonly owner: Owner
  readonly endpoint: EndpointName
  /** Of the record in the store, told to nobody: so neither of a session's ids means anything at the other door. */
  readonly recordId: SessionId
  session: Session
  readonly stream: OldSseStream
  /** The connection of the stream. */
  readonly raw: ServerResponse
  /** Whether `initialize` came, and whether it was answered. */
  phase: 'new' | 'greeted' | 'ready'
}

type Given = Exclude<ReturnType<typeof classifyMessage>, { kind: 'invalid' }>

/** Until the client has said who it is. */
const stranger: Hello = { revision: '2024-11-05', clientInfo: undefined, capabilities: {} }

export function createOldSseDoor (options: OldSseOptions): OldSseDoor {
  const { relay, sessions, live, serverInfo, clock, randomBytes, log } = options
  const { answer, take } = createAnswerer(options)
  const guests = createWelcome(options)
  const entries = new Map<string, Entry>()
  const endings = new Set<Promise<void>>()
  let closed = false

  const passOf = (visit: Visit): Pass => ({ recheck: visit.recheck, validUntil: validUntil(visit) })

  const endRecord = async (session: Session): Promise<void> => {
    // First here and at once: calls and upstream connections are let go of even while the store cannot be reached.
    live.drop(session.key)
    await sessions.end(session).catch((err: unknown) => log.warn({ err }, 'the record of an ended session stays in the store until it expires'))
  }

  async function entryOf (visit: Visit): Promise<Entry> {
    const given = new URLSearchParams(visit.incoming.url?.split('?')[1] ?? '').getAll('sessionId')
    const [id] = given
    if (id === undefined || given.length > 1) {
      throw new GatewayError('invalid_request', 'Messages are posted to the URL that the "endpoint" event of the stream gave, with its sessionId. Open the stream first.')
    }
    const entry = entries.get(id)
    const own = entry !== undefined && entry.stream.open && sameOwner(entry.owner, ownerOf(visit)) && entry.endpoint === visit.endpoint.name
    const session = own ? await sessions.load(entry.recordId, entry.owner, entry.endpoint) : undefined
    if (own && session === undefined) entry.stream.end()
    // It may also have ended while we looked.
    if (!own || session === undefined || !entry.stream.open) throw ended()
    // What was read before `initialize` was answered may come after.
    if (session.record.touchedAt >= entry.session.record.touchedAt) entry.session = session
    entry.stream.renew(passOf(visit))
    return entry
  }

  async function initialize (visit: Visit, entry: Entry, { id, request }: Given & { kind: 'request' }): Promise<void> {
    const { stream } = entry
    try {
      const hello = readHello(request.params)
      const described = await relay.describe(visit, { ...entry.session.record, ...hello })
      // The configuration may have changed while we waited: nothing begins at a place that is no longer there.
      await visit.recheck()
      const session = await sessions.introduce(entry.session, hello)
      if (session === undefined) throw ended()
      if (!stream.attached) return // Its end was told already: nobody would let go of what began now.
      entry.session = session
      entry.phase = 'ready'
      stream.push(responseMessage(id, welcome(visit, hello.revision, described, serverInfo)))
      const current = live.use(session)
      countUnread(current, entry.raw, stream.unread)
      current.listen(stream)
    } catch (error) {
      entry.phase = 'new'
      if (!(error instanceof GatewayError)) log.error({ err: error, requestId: visit.requestId }, 'initialize failed by a fault of the gateway')
      stream.push(errorMessage(id, errorObject(error, visit.requestId)))
    }
  }

  /** Checks everything before anything is done: a refused body has had no effect but that nobody waits for what it was to answer. */
  function read (body: unknown, { phase, session }: Entry, { batchMessages }: Visit['snapshot']['limits']): Given[] {
    if (!Array.isArray(body)) return [valid(body, session)]
    // Batches came with 2025-03-26 and went with 2025-06-18.
    if (phase !== 'ready' || session.record.revision !== '2025-03-26') {
      throw new GatewayError('invalid_request', 'This session does not speak revision 2025-03-26, the only one with batches; send one message per request.')
    }
    if (body.length === 0 || body.length > batchMessages) throw new GatewayError('invalid_request', `A batch has 1 to ${batchMessages} messages.`)
    const messages = body.map((message: unknown) => valid(message, session))
    if (messages.some((message) => isRequest(message, 'initialize'))) throw new GatewayError('invalid_request', 'initialize must not be part of a batch.')
    return messages
  }

  function valid (given: unknown, { key }: Session): Given {
    const message = classifyMessage(given)
    if (message.kind !== 'invalid') return message
    const [session, id] = [live.get(key), botchedAnswer(given, message.id)]
    if (session !== undefined && id !== undefined) settleBotched(session, id)
    throw new GatewayError('invalid_request', `Not a JSON-RPC message: ${message.reason}.`)
  }

  function run (visit: Visit, session: LiveSession, stream: OldSseStream, message: Message): void {
    if (message.kind !== 'request') return take(visit, session, message)
    const release = stream.hold()
    // Never rejects (see answer.ts).
    void answer(visit, session, message, stream.push).then((final) => {
      if (final !== undefined) stream.push(final)
      release()
    })
  }

  function attend (visit: Visit, { stream, recordId, owner, endpoint, session: { key } }: Entry): () => void {
    return guests.attend({
      recheck: () => stream.pass.recheck(),
      alive: async () => await sessions.load(recordId, owner, endpoint) !== undefined,
      validUntil: () => stream.pass.validUntil,
      beat: stream.beat,
      onWelcome () {
        const session = live.get(key)
        if (session !== undefined) relay.touch(visit, session)
      },
      onUnwelcome: stream.end
    })
  }

  return {
    async open (visit) {
      if (!readAccept(visit.incoming.headers.accept).stream) throw new GatewayError('not_acceptable', 'GET opens the stream of a session; it needs Accept: text/event-stream.')
      const owner = ownerOf(visit)
      // Before anything was said: a stream costs something, so it counts for limits.sessionsPerPrincipal.
      const { id: recordId, session } = await sessions.open(owner, visit.endpoint.name, stranger)
      const { raw } = visit
      if (closed || raw.destroyed) {
        await endRecord(session)
        if (raw.destroyed) return
        throw new GatewayError('shutting_down', 'The gateway is stopping. Retry: another process will answer.', { headers: { Connection: 'close' } })
      }
      const id = randomBytes(32).toString('base64url')
      const gone = Promise.withResolvers<void>()
      endings.add(gone.promise)
      const stream = openOldSseStream({
        raw,
        headers: visit.headers,
        messagesPath: `${pathOf(visit.endpoint, 'messages')}?sessionId=${id}`,
        pass: passOf(visit),
        clock,
        onOverflow: () => log.warn({ tenant: visit.tenant.id, endpoint: visit.endpoint.name }, 'a client did not read its stream; closed'),
        onEnd () {
          quiet()
          entries.delete(id)
          void endRecord(entry.session).then(() => {
            endings.delete(gone.promise)
            gone.resolve()
          })
        }
      })
      const entry: Entry = { owner, endpoint: visit.endpoint.name, recordId, session, stream, raw, phase: 'new' }
      entries.set(id, entry)
      const quiet = attend(visit, entry)
    },

    async post (visit, body) {
      checkRevision(visit)
      const entry = await entryOf(visit)
      const { stream } = entry
      const messages = read(body, entry, visit.snapshot.limits)
      if (entry.phase === 'ready') {
        if (messages.some((message) => isRequest(message, 'initialize'))) throw new GatewayError('invalid_request', 'This session is initialized already. Open another stream for another session.')
        const session = live.use(entry.session)
        if (messages.some(({ kind }) => kind === 'request')) checkUnread(session)
        sendAccepted(visit.raw, visit.headers)
        for (const message of messages) run(visit, session, stream, message)
        return
      }
      const [first] = messages
      if (entry.phase === 'new' && first !== undefined && isRequest(first, 'initialize')) {
        entry.phase = 'greeted'
        sendAccepted(visit.raw, visit.headers)
        return await initialize(visit, entry, first).finally(stream.hold())
      }
      // Clients of 2026-07-28 ask this first. They take an error on the stream for an older server and then initialize, but a refused
      // POST for a broken connection.
      if (entry.phase === 'new' && first !== undefined && isRequest(first, 'server/discover')) {
        sendAccepted(visit.raw, visit.headers)
        stream.push(errorMessage(first.id, errorObject(new GatewayError('method_not_found', 'This endpoint does not offer server/discover. Send initialize.'), visit.requestId)))
        return
      }
      // basic/lifecycle: a ping may come before all else.
      if (first === undefined || !isRequest(first, 'ping')) throw new GatewayError('invalid_request', 'This session is not initialized. Send initialize, once, and wait for its answer.')
      sendAccepted(visit.raw, visit.headers)
      stream.push(responseMessage(first.id, {}))
    },

    recheckAll: guests.recheckAll,

    async close () {
      closed = true
      for (const { stream } of entries.values()) stream.finish()
      await Promise.all(endings)
    }
  }
}

const ended = (): GatewayError => new GatewayError('session_unknown', 'This session does not exist or has ended. Open a new stream and send a new initialize.')

const isRequest = (message: Given, method: string): message is Given & { kind: 'request' } => message.kind === 'request' && message.request.method === method
