// One request of 2026-07-28 while it runs. It ends with its result, with an error, or with its connection: closing that
// is how a client cancels (basic/patterns/cancellation), and nothing more is sent then. Its caller is revalidated for
// as long as it takes.

import {
  errorMessage,
  GatewayError,
  latestModern,
  notificationMessage,
  responseMessage,
  rpcCodes,
  RpcError,
  type Implementation,
  type Notification,
  type RequestId,
  type Result
} from '../../protocol/messages.ts'
import { errorObject } from '../../protocol/translate/error-object.ts'
import { noteNotification } from '../../observe/call-notes.ts'
import { observe, type CallObservers } from '../../observe/calls.ts'
import type { Log } from '../../observe/log.ts'
import type { JsonText } from '../../protocol/json-text.ts'
import { withServerInfo, type ModernRequest } from '../../protocol/envelope.ts'
import { errorTable } from '../../protocol/error-table.ts'
import { passesLogLevel, type Client, type LogLevel } from '../../protocol/seams.ts'
import type { ModernCall } from '../../relay/call/call.ts'
import type { Clock } from '../../time/clock.ts'
import { withScopeChallenge, type RequestContext } from '../admission.ts'
import { cappedAnswer } from '../../relay/call/capped-answer.ts'
import { noLongerAccepted, type Revalidator } from '../revalidation.ts'
import { callRecordOf, type CallsInFlight } from '../calls-in-flight.ts'
import type { Accepts } from '../headers.ts'
import { answerText, holdRequest } from '../request-memory.ts'
import { createSseWriter, maxQueuedBytes, sendError, sendText, sseHeaders, type SseWriter } from '../reply.ts'

export interface ModernRequestOptions {
  readonly revalidator: Revalidator
  readonly clock: Clock
  readonly observers: CallObservers
  readonly serverInfo: Implementation
  readonly calls: CallsInFlight
}

/** Performs one call and answers with its result or its error. Never rejects. */
export async function runModernRequest(
  { revalidator, clock, observers, serverInfo, calls }: ModernRequestOptions,
  context: RequestContext,
  { id, request, envelope }: ModernRequest,
  accepts: Accepts,
  perform: (call: ModernCall) => Promise<Result>
): Promise<void> {
  const { raw, snapshot, tenant, endpoint, principal, requestId } = context
  if (raw.destroyed) return
  const controller = new AbortController()
  const { signal } = controller
  let over = false
  const { log } = observers
  const reply = createModernReply(context, accepts, log)
  raw.once('close', () => {
    if (!over) controller.abort(new GatewayError('cancelled', 'The caller closed the connection.'))
  })
  const record = callRecordOf(context, { id, revision: latestModern, software: envelope.software, session: undefined })
  const unwatch = revalidator.watch({
    credential: context,
    beat() {
      if (reply.isStreaming()) reply.beat()
    },
    onInvalid: () => controller.abort(noLongerAccepted())
  })
  // A third of the longest silence afterwards: until then the status can still say what went wrong.
  const quiet = clock.timer(revalidator.intervalMs / 3, () => reply.beat())
  const client: Client = {
    era: 'modern',
    capabilities: envelope.capabilities,
    logLevel: envelope.logLevel,
    notify(notification) {
      // Only progress and log messages are left out here, never the result.
      if (!isWanted(notification, envelope.logLevel)) return
      noteNotification(record, observers.clock, notification.method)
      reply.push(notificationMessage(notification))
    },
    ask: refuseServerRequest
  }
  const call = { snapshot, tenant, endpoint, principal, request, record, client, signal }
  const notRunning = calls.running.add({ controller, call })
  try {
    const text = await observe(call, observers, async () => {
      const result = await perform(call)
      const answer = await answerText(context, result, responseMessage(id, withServerInfo(result, serverInfo)))
      // A caller that is no longer let in gets no result, however near it was.
      if (signal.aborted) throw signal.reason
      return cappedAnswer(record, request, id, result, answer)
    })
    over = true
    reply.end(text)
  } catch (error) {
    over = true
    if (raw.destroyed) return
    const message = errorMessage(id, errorObject(signal.aborted ? signal.reason : error, requestId))
    // Aborted by the gateway: the reason says why. An ordinary answer, because a status such as 503 invites to repeat
    // what may have been done.
    if (signal.aborted) reply.end(JSON.stringify(message))
    else if (error instanceof RpcError) {
      // The one error of an upstream that has a status of its own (2026-07-28 basic/index "Error Codes").
      const { status } = errorTable.missing_capability
      reply.end(JSON.stringify(message), error.error.code === rpcCodes.missingCapability ? status : 200)
    } else if (error instanceof GatewayError && (error.row.status === 200 || error.data['outcome'] === 'unknown'))
      reply.end(JSON.stringify(message))
    else {
      if (!(error instanceof GatewayError))
        log.error({ err: error, requestId }, 'a request failed by a fault of the gateway')
      reply.refuse(withScopeChallenge(error, context), id, message)
    }
  } finally {
    quiet.close()
    unwatch()
    notRunning()
  }
}

/**
 * The answer: a single JSON object while no message comes before it, else a stream. Nothing of it can be resumed, so no
 * event has an id, and a broken connection is the end of it.
 */
function createModernReply(context: RequestContext, accepts: Accepts, log: Log) {
  const { raw, headers, memory } = context
  let sink: SseWriter | undefined
  let ended = false
  /** Written one by one, as the connection takes them: Node would queue without end. */
  const waiting: JsonText[] = []
  let behind = 0
  let sending = false

  const start = (): SseWriter | undefined => {
    if (sink !== undefined || !accepts.stream || raw.headersSent || raw.destroyed) return sink
    raw.writeHead(200, { ...headers, ...sseHeaders })
    return (sink = createSseWriter(context, log))
  }

  function send(to: SseWriter, text: JsonText): void {
    waiting.push(text)
    behind += text.length
    if (!sending) void sendWaiting(to)
  }

  async function sendWaiting(to: SseWriter): Promise<void> {
    sending = true
    const done = holdRequest(context)
    while (waiting.length > 0 && to.isOpen()) {
      const text = waiting.shift() ?? ''
      const isLast = ended && waiting.length === 0
      if (!to.eventWithoutId(text) && !isLast) await to.drained()
      behind -= text.length
      if (!isLast) memory.set(memory.bytes - text.length)
    }
    sending = false
    if (ended) to.end()
    done()
  }

  const end = (text: JsonText, status = 200): void => {
    if (ended) return
    ended = true
    if (sink === undefined && (accepts.json || status !== 200)) return sendText(raw, status, text, headers)
    const to = start()
    if (to !== undefined) send(to, text)
  }

  return {
    /**
     * Streams a message ahead of the last one. Never throws.
     * @returns false, sending nothing, where the caller takes only JSON, has gone, has its answer, or does not keep up
     */
    push(message: unknown): boolean {
      if (ended || behind > maxQueuedBytes) return false
      const to = start()
      if (to?.isOpen() !== true) return false
      const text = JSON.stringify(message)
      if (!memory.take(text.length)) return false
      send(to, text)
      return true
    },
    /** Starts the stream. */
    beat() {
      if (!ended) start()?.beat()
    },
    /** @param status of a JSON answer; a stream has had its own already */
    end,
    /** The last message is an error of ours. @param message the same as a message, for a stream */
    refuse(error: unknown, id: RequestId, message: unknown) {
      if (sink !== undefined) return end(JSON.stringify(message))
      ended = true
      sendError(raw, error, context.requestId, headers, id)
    },
    isStreaming: (): boolean => sink !== undefined
  }
}

/** basic/transports/streamable-http "Receiving Messages": no requests to the client, on this stream or any other. */
const refuseServerRequest: Client['ask'] = ({ method }) =>
  Promise.reject(
    new RpcError({
      code: rpcCodes.methodNotFound,
      message: `The client speaks 2026-07-28 and takes no requests; ${method.slice(0, 64)} cannot be asked of it here.`
    })
  )

/**
 * "Receiving Messages": notifications on the stream of an answer are about its request; log messages are only for
 * clients that ask for them (server/utilities/logging).
 */
function isWanted({ method, params }: Notification, level: LogLevel | undefined): boolean {
  if (method === 'notifications/message') return level !== undefined && passesLogLevel(params?.['level'], level)
  return method === 'notifications/progress'
}
