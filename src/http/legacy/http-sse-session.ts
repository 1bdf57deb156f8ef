// The session behind a stream of HTTP+SSE: the stream, on which answers, server requests and notifications all ride and
// which cannot be resumed; how a POST finds the session, and what a POST may carry.

import { bytesPerChar, holdMemory } from '../../limits/memory.ts'
import type { Log } from '../../observe/log.ts'
import type { JsonText } from '../../protocol/json-text.ts'
import { classifyMessage, GatewayError, type Message, type SessionId } from '../../protocol/messages.ts'
import type { SessionStream } from '../../session/live-sessions.ts'
import { sameOwner } from '../../session/session-record.ts'
import { type Session, type Sessions } from '../../session/sessions.ts'
import type { Clock } from '../../time/clock.ts'
import type { CallContext, Credential, RequestContext } from '../admission.ts'
import { maxBacklogBytes } from '../backlog.ts'
import { createSseWriter, sseHeaders } from '../reply.ts'
import { checkBatch, refuseInitialize } from './batches.ts'
import { invalidMessage, settleInvalidResponse, type LegacyOptions } from './messages.ts'

/** What the id in the messages URL stands for. */
export interface HttpSseSession {
  /**
   * Of the record in the store. No client learns it, so that neither id of a session means anything to the other
   * transport.
   */
  readonly recordId: SessionId
  session: Session
  readonly stream: ReturnType<typeof openHttpSseStream>
  phase: 'new' | 'initializing' | 'ready'
}

/** Requests are refused long before; this is for servers that send without end. */
const maxQueuedChars = 2 * maxBacklogBytes

/**
 * @param messagesPath where the client is to post, for the first event
 * @param clock the time of day
 * @param onEnd called once, whoever ended it
 */
export function openHttpSseStream(
  context: RequestContext,
  messagesPath: string,
  clock: Clock,
  log: Log,
  onEnd: () => void
) {
  const { raw, revalidate, validUntil } = context
  const writer = createSseWriter(context, log)
  let credential: Credential = { revalidate, validUntil }
  let held = 0
  let finishing = false
  let ended = false
  // Written as fast as the connection takes it: large answers wait for a slow reader, and `drained` gives up one that
  // reads nothing.
  const queue: JsonText[] = []
  let queuedChars = 0
  const memory = holdMemory(context.memory.share)
  let full = false

  // 'close' alone does not do: it never comes while a client does not read what it was sent.
  const end = (): void => {
    if (ended) return
    ended = true
    queue.length = queuedChars = 0
    writer.end()
    memory.set(heldBytes())
    onEnd()
  }
  const heldBytes = (): number => (raw.destroyed ? 0 : queuedChars * bytesPerChar + raw.writableLength)
  /** @returns false where the stream has ended, or may no longer be written to. Never throws */
  const answer = (text: JsonText): boolean => {
    // A stream outlives the check of its token: nothing is sent on it after the token has expired.
    if (clock.now() >= credential.validUntil) end()
    if (ended) return false
    queue.push(text)
    queuedChars += text.length
    if (queuedChars > maxQueuedChars || !memory.fit(heldBytes())) writer.overflow()
    flow()
    return true
  }
  const flow = (): void => {
    while (!full && queue.length > 0) {
      const text = queue.shift() ?? ''
      queuedChars -= text.length
      if (writer.eventWithoutId(text)) continue
      full = true
      void writer.drained().then(() => {
        full = false
        flow()
      })
    }
    memory.set(heldBytes())
    if (finishing && held === 0 && queue.length === 0) end()
  }

  raw.writeHead(200, { ...context.headers, ...sseHeaders })
  raw.once('close', () => {
    end()
    memory.set(0)
  })
  writer.eventWithoutId(messagesPath, 'endpoint')
  return {
    raw,
    answer,
    /** @returns as `answer` */
    send: (message: unknown): boolean => answer(JSON.stringify(message)),
    beat: writer.beat,
    /** A message is still to come: `finish` waits until the returned function was called. */
    hold() {
      held++
      return () => {
        held--
        flow()
      }
    },
    finish() {
      finishing = true
      flow()
    },
    /** At once, whatever is still to come. */
    end,
    /** A newer token of the same caller takes over. Nothing else is held of its request. */
    renew({ revalidate, validUntil }: Credential) {
      if (validUntil > credential.validUntil) credential = { revalidate, validUntil }
    },
    get credential() {
      return credential
    },
    /** What the client has not read yet, in bytes (characters count as one). */
    backlogBytes: () => queuedChars + raw.writableLength,
    isAttached: (): boolean => !ended,
    /** Whether new requests are taken; answers are, as long as calls run. */
    isOpen: (): boolean => !ended && !finishing
  } satisfies SessionStream & Record<string, unknown>
}

/** A POST, whichever process it came to. */
export interface HttpSsePost extends CallContext, Credential {
  /** Somebody works on it. @returns how the work ends; idempotent */
  hold(): () => void
}

/** The session that a POST names by its URL. @throws GatewayError session_unknown, unavailable */
export async function findHttpSseSession(
  entries: ReadonlyMap<string, HttpSseSession>,
  sessions: Sessions,
  context: HttpSsePost,
  id: string
): Promise<HttpSseSession> {
  const entry = entries.get(id)
  if (entry?.stream.isAttached() !== true) throw sessionEnded()
  const { owner, endpoint } = entry.session.record
  if (!sameOwner(owner, context.principal) || endpoint !== context.endpoint.name) throw sessionEnded()
  const session = await sessions.load(entry.recordId, owner, endpoint)
  if (session === undefined) entry.stream.end()
  // The stream may also have ended meanwhile.
  if (session === undefined || !entry.stream.isAttached()) throw sessionEnded()
  // A record that was read before `initialize` was answered may come after the one that `initialize` wrote.
  if (session.record.touchedAt >= entry.session.record.touchedAt) entry.session = session
  entry.stream.renew(context)
  return entry
}

/**
 * Checks everything before anything is done. A refused body has one effect: an invalid response settles its server
 * request.
 */
export function readHttpSseBody(
  body: unknown,
  { phase, session }: HttpSseSession,
  { live, replicas: { sessionBus } }: LegacyOptions,
  maxMessages: number
): Message[] {
  const isBatch = Array.isArray(body)
  if (isBatch) checkBatch(body, phase === 'ready' ? session.record.revision : undefined, maxMessages)
  const messages = (isBatch ? body : [body]).map((given: unknown) => {
    const message = classifyMessage(given)
    if (message.kind !== 'invalid') return message
    const current = live.get(session.key)
    if (current !== undefined) void settleInvalidResponse(sessionBus, current, given, message.id)
    throw invalidMessage(message.reason)
  })
  if (isBatch) refuseInitialize(messages)
  return messages
}

export const sessionEnded = (): GatewayError =>
  new GatewayError(
    'session_unknown',
    'This session does not exist or has ended. Open a new stream and send a new initialize.'
  )
