// What a client says on a stream of HTTP+SSE before its session is initialized. Each has its line in the log.

import { errorMessage, GatewayError, type Message, type RequestId } from '../../protocol/messages.ts'
import { errorObject } from '../../protocol/translate/error-object.ts'
import type { NegotiatedClient } from '../../session/session-record.ts'
import type { Session } from '../../session/sessions.ts'
import { trackBacklog } from '../backlog.ts'
import { sessionEnded, type HttpSsePost, type HttpSseSession } from './http-sse-session.ts'
import { initializeResult, observeHandshake, readInitializeParams } from './initialize.ts'
import type { LegacyOptions } from './messages.ts'

/** Answers `initialize` on the stream, also with an error. Never rejects. */
export async function initializeHttpSse(
  { relay, sessions, live, observers }: LegacyOptions,
  context: HttpSsePost,
  entry: HttpSseSession,
  message: Message & { kind: 'request' }
): Promise<void> {
  const { stream } = entry
  let session: Session | undefined
  try {
    const client = readClient(message)
    const given = client instanceof GatewayError ? {} : client
    const text = await observeHandshake(observers, context, given, entry.session.key, message, async () => {
      if (client instanceof GatewayError) throw client
      const described = await relay.describe(context, { ...entry.session.record, ...client })
      // The configuration may have changed meanwhile: no session begins at an endpoint that is no longer there.
      await context.revalidate()
      session = await sessions.initialize(entry.session, client)
      if (session === undefined) throw sessionEnded()
      return initializeResult(context, client.revision, described)
    })
    // Nothing that began after the end of the stream would be ended.
    if (session === undefined || !stream.isAttached()) return
    const current = live.use(session, context.memory.share)
    entry.session = session
    entry.phase = 'ready'
    stream.answer(text)
    trackBacklog(current, stream.raw, stream.backlogBytes)
    current.setStream(stream)
  } catch (error) {
    entry.phase = 'new'
    failHandshake(observers, stream, message.id, error, context.requestId)
  }
}

function readClient({ request }: Message & { kind: 'request' }): NegotiatedClient | GatewayError {
  try {
    return readInitializeParams(request.params)
  } catch (error) {
    return error as GatewayError
  }
}

/** Answers a request that comes before `initialize`, on the stream. Never rejects. */
export async function answerEarly(
  { observers }: Pick<LegacyOptions, 'observers'>,
  context: HttpSsePost,
  { stream, session }: HttpSseSession,
  message: Message & { kind: 'request' }
): Promise<void> {
  try {
    const text = await observeHandshake(observers, context, {}, session.key, message, () => {
      // basic/lifecycle: a ping may come before all else.
      if (message.request.method === 'ping') return Promise.resolve({})
      const text = 'This endpoint does not offer server/discover. Send initialize.'
      return Promise.reject(new GatewayError('method_not_found', text))
    })
    stream.answer(text)
  } catch (error) {
    failHandshake(observers, stream, message.id, error, context.requestId)
  }
}

function failHandshake(
  { log }: LegacyOptions['observers'],
  stream: HttpSseSession['stream'],
  id: RequestId,
  error: unknown,
  requestId: string
): void {
  if (!(error instanceof GatewayError))
    log.error({ err: error, requestId }, 'a request before initialize failed by a fault of the gateway')
  stream.send(errorMessage(id, errorObject(error, requestId)))
}
