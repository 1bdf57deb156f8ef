// The methods of a session, up to 2025-11-25: the way of a request to its upstream, and of the answer back in the shape
// of the session's revision.

import { GatewayError, atLeast, type Request, type Result } from '../../protocol/messages.ts'
import { isLogLevel, logLevels } from '../../protocol/seams.ts'
import { hasCapability } from '../../protocol/methods.ts'
import { withArguments } from '../../protocol/translate/change-tool.ts'
import { shapePromptResult, shapeToolResult } from '../../protocol/translate/revision-shape.ts'
import {
  rewriteMessages,
  rewriteReadResult,
  rewriteToolResult,
  withoutParam,
  withParam
} from '../../protocol/translate/rewrite.ts'
import { mapRelatedTask, readTask, withCreatedTask } from '../../protocol/translate/tasks.ts'
import type { Sessions } from '../../session/sessions.ts'
import { abortable, type Clock } from '../../time/clock.ts'
import type { InputLoop } from '../bridge/input-loop.ts'
import type { SessionClients } from '../bridge/session-clients.ts'
import { checkArguments, excerpt, redactError, stringParam, type LegacyCall } from '../call/call.ts'
import type { ClientCatalogs, SessionViewer } from '../catalog/client-catalogs.ts'
import { urlElicitationForSession } from '../client/client-errors.ts'
import type { SessionConnection, SessionConnections } from '../connections/session-connections.ts'
import type { ResourceSubscriptions, SubscriptionRequest } from '../subscriptions/resource-subscriptions.ts'
import { subscribedScopeOf, type SessionSubscribers } from '../subscriptions/session-subscribers.ts'
import type { SessionTasks } from '../tasks/session-tasks.ts'
import { lists, type ListPages } from './list-pages.ts'
import {
  checkConditions,
  completion,
  resolve,
  unknownEntry,
  unknownName,
  withClientUri,
  type Target
} from './shared.ts'

/** What the methods of a session work with. */
export interface LegacyServices {
  readonly catalogs: ClientCatalogs<SessionViewer>
  readonly connections: SessionConnections
  readonly clients: SessionClients
  readonly inputLoop: InputLoop
  readonly tasks: SessionTasks
  readonly subscriptions: ResourceSubscriptions
  readonly subscribers: SessionSubscribers
  readonly sessions: Sessions
  readonly pages: ListPages
  readonly wall: Pick<Clock, 'now'>
}

export type LegacyMethod = (call: LegacyCall, services: LegacyServices) => Promise<Result>

/**
 * The connection that serves the session at the target's upstream.
 * @throws GatewayError upstream_unavailable, too_many, cancelled
 */
export async function connect(
  call: LegacyCall,
  { definition }: Target,
  { connections }: LegacyServices
): Promise<SessionConnection> {
  // The principal's own credentials for the upstream belong into the scope of the connection.
  try {
    return (
      connections.ready(definition, call.session) ??
      (await abortable(connections.lease(definition, call, call.session), call.signal))
    )
  } catch (error) {
    throw redactError(error, definition)
  }
}

/**
 * Sends the request once. A modern server that answers with input requests is sent it again, with the responses;
 * nothing else is repeated.
 * @throws RpcError, GatewayError: none that only 2026-07-28 knows
 */
export async function send(
  call: LegacyCall,
  connection: SessionConnection,
  request: Request,
  { connections, clients, inputLoop, tasks }: LegacyServices,
  wrapsResult = false
): Promise<Result> {
  const { definition } = connection
  const outgoing = tasks.outgoing(call.session, connection, request)
  const client = clients.forCall(call, connection)
  try {
    const reconnect = (): Promise<SessionConnection> => connections.lease(definition, call, call.session)
    const result = await inputLoop.request(call, connection, outgoing, client, wrapsResult, reconnect)
    return mapRelatedTask(result, tasks.toClient(call.session, connection))
  } catch (error) {
    try {
      return urlElicitationForSession(error, call, outgoing, definition.name)
    } catch (refused) {
      throw redactError(refused, definition)
    }
  } finally {
    client.endCall()
  }
}

/** `connect` and `send`, for requests that need nothing of the connection. */
export async function forwardLegacy(
  call: LegacyCall,
  target: Target,
  request: Request,
  services: LegacyServices
): Promise<Result> {
  return await send(call, await connect(call, target, services), request, services)
}

async function callTool(call: LegacyCall, services: LegacyServices): Promise<Result> {
  const { session, request } = call
  const { catalogs, tasks } = services
  const { revision } = session.session.record
  const name = stringParam(call, 'name')
  checkArguments(call)
  const target = await resolve(call, catalogs, 'tool', name)
  if (target === undefined) throw unknownEntry(catalogs.of(call), 'tool', name)
  const { route, catalog, uris } = target
  const filled = route.change === undefined ? request : withArguments(request, route.change)
  checkConditions(call, target, 'tool', filled, services.wall)
  const connection = await connect(call, target, services)
  // With its `task` only where upstream and revision know it (2025-11-25 "Task Support and Handling" 1).
  const asTask =
    request.params?.['task'] !== undefined &&
    atLeast(revision, '2025-11-25') &&
    catalogs.offers(call, route.upstream, 'tasks', 'requests', 'tools', 'call')
  const outgoing = withParam(asTask ? filled : withoutParam(filled, 'task'), 'name', route.name)
  const result = await send(call, connection, outgoing, services, catalog.wrapsStructuredContent(name))
  const task = asTask ? readTask(result['task']) : undefined
  if (task === undefined) return shapeToolResult(rewriteToolResult(result, uris), revision)
  tasks.recordState(session, connection, result['task'])
  await tasks.created(session, connection, task.taskId)
  const created = withCreatedTask(result, tasks.toClient(session, connection))
  return shapeToolResult(rewriteToolResult(created, uris), revision)
}

async function getPrompt(call: LegacyCall, services: LegacyServices): Promise<Result> {
  const name = stringParam(call, 'name')
  checkArguments(call)
  const target = await resolve(call, services.catalogs, 'prompt', name)
  if (target === undefined) throw unknownEntry(services.catalogs.of(call), 'prompt', name)
  checkConditions(call, target, 'prompt', call.request, services.wall)
  const result = await forwardLegacy(call, target, withParam(call.request, 'name', target.route.name), services)
  return shapePromptResult(rewriteMessages(result, target.uris), call.session.session.record.revision)
}

/**
 * For the resource that `uri` names. Errors name it as the client does.
 * @throws GatewayError invalid_params, resource_not_found, upstream_unavailable
 */
async function atResource(
  call: LegacyCall,
  { catalogs }: LegacyServices,
  run: (target: Target, uri: string) => Promise<Result>
): Promise<Result> {
  const uri = stringParam(call, 'uri')
  const target = await resolve(call, catalogs, 'resource', uri)
  if (target === undefined) {
    const message = `Resource not found: ${excerpt(uri)}`
    const error = new GatewayError('resource_not_found', message, { data: { uri: excerpt(uri) } })
    throw unknownName(catalogs.of(call).unlistedOwnerOfUri(uri), error)
  }
  try {
    return await run(target, uri)
  } catch (error) {
    throw withClientUri(error, target.uris)
  }
}

const readResource: LegacyMethod = (call, services) =>
  atResource(call, services, async (target) => {
    const result = await forwardLegacy(call, target, withParam(call.request, 'uri', target.route.name), services)
    return rewriteReadResult(result, target.uris)
  })

const maxUriLength = 8_192

/** @throws GatewayError too_many */
const subscribe: LegacyMethod = (call, services) =>
  atResource(call, services, async (target, uri) => {
    if (target.route.name.length > maxUriLength) {
      throw new GatewayError('invalid_params', `The URI is longer than ${maxUriLength} characters.`)
    }
    return await services.subscriptions.subscribe(await subscriptionOf(call, target, services), uri)
  })

const unsubscribe: LegacyMethod = (call, services) =>
  atResource(call, services, async (target) =>
    services.subscriptions.unsubscribe(await subscriptionOf(call, target, services))
  )

async function subscriptionOf(
  call: LegacyCall,
  target: Target,
  services: LegacyServices
): Promise<SubscriptionRequest> {
  const { definition, route } = target
  const connection = await connect(call, target, services)
  if (!hasCapability(connection.upstream.capabilities, ['resources', 'subscribe'])) {
    const message =
      `Upstream ${route.upstream} does not support subscriptions to its resources. ` +
      'Read them again when they are needed.'
    throw new GatewayError('invalid_params', message)
  }
  return {
    subscriber: services.subscribers.of(call.session),
    connection: { ...subscribedScopeOf(definition, call.session), upstream: connection.upstream },
    uri: route.name,
    send: () => send(call, connection, withParam(call.request, 'uri', route.name), services),
    signal: call.signal
  }
}

const complete: LegacyMethod = (call, services) =>
  completion(call, services.catalogs, (target, request) => forwardLegacy(call, target, request, services))

async function setLevel({ request, session }: LegacyCall, { sessions, connections }: LegacyServices): Promise<Result> {
  const level = request.params?.['level']
  if (!isLogLevel(level)) {
    throw new GatewayError('invalid_params', `"level" must be one of ${logLevels.join(', ')}.`)
  }
  await sessions.update(session.session, { logLevel: level })
  session.session = { ...session.session, record: { ...session.session.record, logLevel: level } }
  await connections.setLogLevel(session, level)
  return {}
}

/** All but those of tasks. Membership is support; everything else is method-not-found. */
export const legacyMethods: ReadonlyArray<readonly [method: string, handle: LegacyMethod]> = [
  ['ping', async () => ({})],
  ...lists.map((list): [string, LegacyMethod] => [
    list.method,
    async (call, { catalogs, pages }) => {
      await catalogs.awaitListings(call)
      return await pages.page(call, list, catalogs.of(call), call.session.session.record.revision)
    }
  ]),
  ['tools/call', callTool],
  ['prompts/get', getPrompt],
  ['resources/read', readResource],
  ['resources/subscribe', subscribe],
  ['resources/unsubscribe', unsubscribe],
  ['completion/complete', complete],
  ['logging/setLevel', setLevel]
]
