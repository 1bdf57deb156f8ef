// Handles 2026-07-28: one POST, one request, one answer (basic/transports/streamable-http). A classified request goes
// on to the relay when its method exists and its headers repeat its arguments.

import type { ModernRequest } from '../../protocol/envelope.ts'
import { GatewayError, latestModern, type JsonObject, type Result } from '../../protocol/messages.ts'
import { modernClientRequests } from '../../protocol/methods.ts'
import {
  paramHeaderPrefix,
  paramHeadersOf,
  paramMismatch,
  type ParamHeader
} from '../../protocol/translate/param-headers.ts'
import type { ModernCall } from '../../relay/call/call.ts'
import type { ModernRelay } from '../../relay/modern-relay.ts'
import type { RequestContext } from '../admission.ts'
import { refuseBacklog } from '../backlog.ts'
import { refuseCall, type CallsInFlight } from '../calls-in-flight.ts'
import { formatsOf } from '../headers.ts'
import type { ClientReply } from '../reply.ts'
import { createKnownCapabilities } from './known-capabilities.ts'
import { createModernListen } from './modern-listen.ts'
import { runModernRequest, type ModernRequestOptions } from './modern-request.ts'

export interface ModernHandlerOptions extends ModernRequestOptions {
  readonly relay: ModernRelay
}

export type ModernHandler = ReturnType<typeof createModernHandler>

export function createModernHandler(options: ModernHandlerOptions) {
  const { relay } = options
  const { listen, endStreams } = createModernListen(options)
  const admit = createCallerLimits(options.calls)
  const checkParamHeaders = createParamHeaderCheck(relay)
  const knownCapabilities = createKnownCapabilities()

  /** Headers are checked against what the endpoint publishes once the person has connected what they were asked for. */
  function perform(context: RequestContext, call: ModernCall): Promise<Result> {
    const run = (now: ModernCall): Promise<Result> =>
      call.request.method === 'tools/call' ? callTool(context, now) : relay.call(now)
    const waiting = relay.connectWait.of(call)
    return waiting === undefined ? run(call) : waiting.then(run)
  }

  async function callTool(context: RequestContext, call: ModernCall): Promise<Result> {
    const checked = checkParamHeaders(context.incoming.rawHeaders, call)
    if (checked !== undefined) await checked
    // The check may have waited for a listing.
    if (call.signal.aborted) throw call.signal.reason
    return await relay.call(call)
  }

  return {
    /**
     * Rejects with what is refused before the request runs: GatewayError unknown_method, not_acceptable, too_many, and
     * what `listen` is refused with.
     */
    async post(context: RequestContext, given: ModernRequest): Promise<void> {
      const envelope = { ...given.envelope, capabilities: knownCapabilities(given.envelope.capabilities) }
      const message = { ...given, envelope }
      const { method } = message.request
      if (!modernClientRequests.has(method))
        throw new GatewayError(
          'unknown_method',
          `Revision ${latestModern} has no method ${JSON.stringify(method.slice(0, 64))}, or this gateway does not ` +
            'serve it.'
        )
      // Not awaited: an async function that waits holds the body, for as long as a stream is open.
      if (method === 'subscriptions/listen') return listen(context, message)
      const accepts = formatsOf(context.incoming.headers)
      if (context.raw.destroyed) return
      admit(context)
      await runModernRequest(options, context, message, accepts, (call) => perform(context, call))
    },
    /** The gateway stops: ends every listen stream, and says so on it. Calls go on, but wait for no person. */
    endStreams(): void {
      relay.connectWait.stop()
      endStreams()
    }
  }
}

/**
 * Bounds what one caller has open at once. There are no sessions to count by, so requests are counted by person.
 * @returns what counts a request until its answer has left, and throws GatewayError too_many
 */
function createCallerLimits(calls: CallsInFlight): (context: RequestContext) => void {
  const answersOf = new Map<string, ClientReply[]>()
  return (context) => {
    const {
      person: key,
      snapshot: { limits },
      raw
    } = context
    const answers = answersOf.get(key) ?? []
    refuseCall(answers.length, limits.callsPerSession, 'caller')
    let backlogBytes = 0
    for (const answer of answers) backlogBytes += answer.writableLength
    refuseBacklog(backlogBytes, 'caller')
    const leave = calls.enter(context)
    if (answers.push(raw) === 1) answersOf.set(key, answers)
    // Until an answer is read, it is in memory: the result alone does not end the count.
    raw.once('close', () => {
      leave()
      answers.splice(answers.indexOf(raw), 1)
      if (answers.length === 0) answersOf.delete(key)
    })
  }
}

/**
 * Checks the headers `Mcp-Param-*` of a tool call against the schema that the endpoint publishes (2026-07-28
 * basic/transports/streamable-http "Server Behavior for Custom Headers").
 * @returns the check, which throws GatewayError header_mismatch, or rejects with it where it waits for a listing
 */
function createParamHeaderCheck(
  relay: Pick<ModernRelay, 'schemaOf'>
): (rawHeaders: readonly string[], call: ModernCall) => Promise<void> | undefined {
  // Read once for each schema object, which lives as long as its listing.
  const known = new WeakMap<JsonObject, readonly ParamHeader[]>()

  function check(schema: JsonObject | undefined, rawHeaders: readonly string[], call: ModernCall): void {
    if (schema === undefined) return // The relay refuses an unknown tool.
    let annotations = known.get(schema)
    if (annotations === undefined) {
      const found = paramHeadersOf(schema)
      // Clients leave out a tool whose annotations are invalid, so there is nothing to check.
      annotations = typeof found === 'string' ? [] : found
      known.set(schema, annotations)
    }
    if (annotations.length === 0) return
    const mismatch = paramMismatch(annotations, call.request.params?.['arguments'], paramHeadersIn(rawHeaders))
    if (mismatch !== undefined) throw new GatewayError('header_mismatch', mismatch)
  }

  return (rawHeaders, call) => {
    const name = call.request.params?.['name']
    const schema = typeof name === 'string' ? relay.schemaOf(call, name) : undefined
    if (schema instanceof Promise) return schema.then((found) => check(found, rawHeaders, call))
    check(schema, rawHeaders, call)
    return undefined
  }
}

/** Each as often as it came: Node would join them, and a proxy on the way may have read the first only. */
function paramHeadersIn(rawHeaders: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? ''
    if (!name.startsWith(paramHeaderPrefix)) continue
    const values = found.get(name) ?? []
    values.push(rawHeaders[at + 1] ?? '')
    found.set(name, values)
  }
  return found
}
