// The way of a request of 2026-07-28 to its upstream, and of the answer back. Any answer may be a request for input of
// the client (basic/patterns/mrtr), which sends the request again with it.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { noteAnswered, noteSent, tracedAnswer, tracedRequest } from '../../observe/call-notes.ts'
import type { CallLimits } from '../../policy/call-limits.ts'
import { GatewayError, isObject, type Request, type Result, type UpstreamName } from '../../protocol/messages.ts'
import { withParam, withoutParam } from '../../protocol/translate/rewrite.ts'
import { withTaskId } from '../../protocol/translate/tasks.ts'
import { abortable, type Clock } from '../../time/clock.ts'
import type { Parking } from '../bridge/parking.ts'
import type { RequestStates } from '../bridge/request-state.ts'
import { openUrlRetry, urlElicitationOf } from '../bridge/url-retry.ts'
import { definitionOf, redactError, type ModernCall } from '../call/call.ts'
import type { CallerCatalogs } from '../catalog/client-catalogs.ts'
import type { AdvertisedCapabilities } from '../catalog/advertised.ts'
import { errorForModern } from '../client/client-errors.ts'
import { shapeInputRequests } from '../client/input-requests.ts'
import { forwardableRequest, modernClientOf, withoutInputResponses } from '../client/modern-client.ts'
import type { CallerConnections, LeasedConnection } from '../connections/caller-connections.ts'
import type { LegacyTasks } from '../tasks/legacy-for-modern.ts'
import type { SealedTaskIds, TaskProcess } from '../tasks/caller-tasks.ts'
import type { ProcessTasks } from '../tasks/process-tasks.ts'
import type { ListPages } from './list-pages.ts'

/** The services of the methods of 2026-07-28. */
export interface ModernServices {
  readonly catalogs: CallerCatalogs
  readonly advertised: AdvertisedCapabilities
  readonly connections: CallerConnections
  readonly states: RequestStates
  readonly parking: Parking
  readonly legacyTasks: LegacyTasks
  readonly taskIds: SealedTaskIds
  readonly processTasks: ProcessTasks
  readonly pages: ListPages
  readonly callLimits: CallLimits
  readonly wall: Pick<Clock, 'now'>
  /** Measures durations. */
  readonly clock: Pick<Clock, 'now'>
}

/**
 * Sends the request at most once.
 * @param at the connection that the request is for; default: the one that calls of the caller use
 * @returns a result with a `resultType`, its input requests, its state and the id of its new task as the client gets
 * them
 * @throws GatewayError, and RpcError with codes that 2026-07-28 knows
 */
export function forwardModern(
  call: ModernCall,
  definition: UpstreamDefinition,
  request: Request,
  services: ModernServices,
  at?: LeasedConnection
): Promise<Result> {
  const { connections, parking, legacyTasks, states, processTasks, taskIds } = services
  return withModernErrors(call, definition, async () => {
    const lease = at ? { ...at, waits() {} } : await abortable(connections.lease(definition, call), call.signal)
    const { upstream } = lease
    const outgoing = tracedRequest(call.record, forwardableRequest(request), definition.name)
    const sentAt = noteSent(call.record, services.clock)
    if (upstream.era === 'legacy') {
      const taskLease = legacyTasks.leaseForRequest(definition, lease, outgoing)
      const answer = parking.run(call, taskLease, withoutInputResponses(outgoing))
      return await tracedAnswer(call.record, answer).finally(() => noteAnswered(call.record, services.clock, sentAt))
    }
    let ended = false
    try {
      const client = modernClientOf(call, definition.name, () => ended)
      const result = await tracedAnswer(call.record, upstream.request(outgoing, client, call.signal))
      processTasks.noted(call, definition, lease, result)
      if (typeof result['resultType'] !== 'string') return { ...result, resultType: 'complete' }
      const process = processTasks.of(definition, upstream)
      if (result['resultType'] === 'input_required')
        return await withInputRequests(call, states, definition, process, result)
      if (result['resultType'] !== 'task') return result
      return withTaskId(result, (id) =>
        taskIds.toClient(call, { upstream: definition.name, id, ...(process && { process }) })
      )
    } finally {
      ended = true
      noteAnswered(call.record, services.clock, sentAt)
      lease.release()
    }
  })
}

/**
 * Runs a call, with errors of the upstream as the caller may get them: in codes of 2026-07-28, without the upstream's
 * address.
 */
export async function withModernErrors(
  { client }: ModernCall,
  definition: UpstreamDefinition,
  run: () => Promise<Result>
): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    throw redactError(errorForModern(error, definition.name, client.capabilities), definition)
  }
}

/**
 * A request that may come with the client's input for an earlier round of the same request.
 * @param asTask the tool works only as a task of 2025-11-25, and the client knows the tasks extension
 * @throws GatewayError invalid_params, invalid_state; whatever `forwardModern` throws
 */
export async function converse(
  call: ModernCall,
  definition: UpstreamDefinition,
  request: Request,
  services: ModernServices,
  asTask = false
): Promise<Result> {
  const { states, legacyTasks } = services
  const retry = openUrlRetry(call, states, definition.name)
  if ('declined' in retry) return retry.declined
  try {
    if (asTask) {
      const outgoing = withoutInputResponses(forwardableRequest(request))
      return await withModernErrors(call, definition, () => legacyTasks.create(retry.call, definition, outgoing))
    }
    const outgoing = retry.call === call ? request : withoutInputResponses(request)
    return await nextRound(retry.call, definition, outgoing, services)
  } catch (error) {
    return await urlElicitationOf(call, states, definition.name, error)
  }
}

/**
 * To the parked call that waits for the input, or to the upstream with the state that it gave; to the child process
 * that gave it, as long as that runs.
 */
async function nextRound(
  call: ModernCall,
  definition: UpstreamDefinition,
  request: Request,
  services: ModernServices
): Promise<Result> {
  const { inputResponses = {}, requestState } = call.request.params ?? {}
  if (!isObject(inputResponses)) {
    throw new GatewayError('invalid_params', `"inputResponses" of ${call.request.method} must be an object.`)
  }
  if (requestState === undefined) return await forwardModern(call, definition, request, services)
  const { parked, upstreamState, process } = services.states.open(call, definition.name, requestState)
  if (parked !== undefined) {
    const resume = (): Promise<Result> => services.parking.resume(call, definition.name, parked, inputResponses)
    return await withModernErrors(call, definition, resume)
  }
  const outgoing =
    upstreamState === undefined
      ? withoutParam(request, 'requestState')
      : withParam(request, 'requestState', upstreamState)
  const at = process && services.processTasks.find(definition, process)
  const elsewhere =
    process === undefined || at !== undefined
      ? undefined
      : await services.processTasks.retriedElsewhere(call, definition, process, outgoing)
  return elsewhere ?? (await forwardModern(call, definition, outgoing, services, at))
}

/**
 * A request with input for a child process of this process, which came to another one.
 * @param outgoing as the upstream is to get it
 * @throws GatewayError invalid_state where the state in the request is not one of this caller and request; whatever
 * `forwardModern` throws
 */
export async function retryForwarded(
  call: ModernCall,
  upstream: UpstreamName,
  outgoing: Request,
  services: ModernServices
): Promise<Result> {
  await services.states.prepare(call)
  const { process } = services.states.open(call, upstream, call.request.params?.['requestState'])
  const definition = definitionOf(call, upstream)
  return await forwardModern(
    call,
    definition,
    outgoing,
    services,
    process && services.processTasks.find(definition, process)
  )
}

/** Characters of what an upstream gives: it is sealed, and opened again, in one turn of the event loop. */
const maxStateChars = 262_144

/** @throws GatewayError upstream_protocol */
async function withInputRequests(
  call: ModernCall,
  states: RequestStates,
  { name: upstream }: UpstreamDefinition,
  process: TaskProcess | undefined,
  result: Result
): Promise<Result> {
  const { ttlMs: _ttl, cacheScope: _scope, inputRequests, requestState, ...rest } = result
  if (inputRequests === undefined && typeof requestState !== 'string') {
    const message = `Upstream ${upstream} asks for input without saying which.`
    throw new GatewayError('upstream_protocol', message, { data: { upstream } })
  }
  if (typeof requestState === 'string') {
    if (requestState.length > maxStateChars) {
      const message =
        `Upstream ${upstream} asks for input with a requestState of more than ${maxStateChars} characters. ` +
        'Have it keep what is long, and name it in the requestState.'
      throw new GatewayError('upstream_protocol', message, { data: { upstream } })
    }
    await states.prepare(call)
  }
  return {
    ...rest,
    ...(inputRequests !== undefined && {
      inputRequests: shapeInputRequests(inputRequests, upstream, call.endpoint, call.client.capabilities)
    }),
    ...(typeof requestState === 'string' && {
      requestState: states.seal(call, upstream, { upstreamState: requestState, ...(process && { process }) })
    })
  }
}
