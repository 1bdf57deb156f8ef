// The methods of a session, up to 2025-11-25, each with its answer in the shape of the session's revision.

import { GatewayError, atLeast, type Request, type Result } from '../../protocol/messages.ts'
import { isLogLevel, logLevels } from '../../protocol/seams.ts'
import { hasCapability } from '../../protocol/methods.ts'
import { changesResults, withArguments } from '../../protocol/translate/change-tool.ts'
import { shapePromptResult, shapeToolResult } from '../../protocol/translate/revision-shape.ts'
import {
  rewriteMessages,
  rewriteReadResult,
  rewriteToolResult,
  withoutParam,
  withParam
} from '../../protocol/translate/rewrite.ts'
import { readTask, withCreatedTask } from '../../protocol/translate/tasks.ts'
import { checkArguments, excerpt, stringParam, type LegacyCall } from '../call/call.ts'
import type { SubscriptionRequest } from '../subscriptions/resource-subscriptions.ts'
import { subscribedScopeOf } from '../subscriptions/session-subscribers.ts'
import { connect, forwardLegacy, send, type LegacyServices } from './legacy-forward.ts'
import { lists } from './list-pages.ts'
import {
  checkConditions,
  completion,
  resolve,
  shownResult,
  unknownEntry,
  unknownName,
  withClientUri,
  type Target
} from './shared.ts'
import { connectedResult } from './unconnected.ts'

export type LegacyMethod = (call: LegacyCall, services: LegacyServices) => Promise<Result>

async function callTool(call: LegacyCall, services: LegacyServices): Promise<Result> {
  const { request } = call
  const { catalogs } = services
  const name = stringParam(call, 'name')
  checkArguments(call)
  const found = resolve(call, catalogs, 'tool', name)
  const target = found instanceof Promise ? await found : found
  if (target === undefined)
    return connectedResult(call, name, () => unknownEntry(call, catalogs.of(call), 'tool', name))
  const { route } = target
  const filled = route.change === undefined ? request : withArguments(request, route.change)
  checkConditions(call, target, 'tool', filled, services.wall)
  return await services.callLimits.within(call, 'tool', route, () => callAt(call, services, target, name, filled))
}

/** @param filled with the arguments of the endpoint */
async function callAt(
  call: LegacyCall,
  services: LegacyServices,
  target: Target,
  name: string,
  filled: Request
): Promise<Result> {
  const { session, request } = call
  const { catalogs, tasks } = services
  const { revision } = session.session.record
  const { route, catalog, uris } = target
  const opened = connect(call, target, services)
  const connection = opened instanceof Promise ? await opened : opened
  // With its `task` only where upstream and revision know it (2025-11-25 "Task Support and Handling" 1).
  const asTask =
    request.params?.['task'] !== undefined &&
    !changesResults(route.change) &&
    atLeast(revision, '2025-11-25') &&
    catalogs.offers(call, route.upstream, 'tasks', 'requests', 'tools', 'call')
  const outgoing = withParam(asTask ? filled : withoutParam(filled, 'task'), 'name', route.name)
  const result = await send(call, connection, outgoing, services, catalog.wrapsStructuredContent(name))
  const task = asTask ? readTask(result['task']) : undefined
  if (task === undefined) return shapeToolResult(rewriteToolResult(shownResult(result, route), uris), revision)
  tasks.recordState(session, connection, result['task'])
  await tasks.created(session, connection, task.taskId)
  const created = withCreatedTask(result, tasks.toClient(session, connection))
  return shapeToolResult(rewriteToolResult(created, uris), revision)
}

async function getPrompt(call: LegacyCall, services: LegacyServices): Promise<Result> {
  const name = stringParam(call, 'name')
  checkArguments(call)
  const target = await resolve(call, services.catalogs, 'prompt', name)
  if (target === undefined) throw unknownEntry(call, services.catalogs.of(call), 'prompt', name)
  checkConditions(call, target, 'prompt', call.request, services.wall)
  const request = withParam(call.request, 'name', target.route.name)
  const forward = (): Promise<Result> => forwardLegacy(call, target, request, services)
  const result = await services.callLimits.within(call, 'prompt', target.route, forward)
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
    const error = new GatewayError('resource_not_found', 'Resource not found', { data: { uri: excerpt(uri) } })
    throw unknownName(call, catalogs.of(call), 'resource', uri, error)
  }
  try {
    return await run(target, uri)
  } catch (error) {
    throw withClientUri(error, target.uris)
  }
}

const readResource: LegacyMethod = (call, services) =>
  atResource(call, services, async (target) => {
    checkConditions(call, target, 'resource', call.request, services.wall)
    const request = withParam(call.request, 'uri', target.route.name)
    const forward = (): Promise<Result> => forwardLegacy(call, target, request, services)
    const result = await services.callLimits.within(call, 'resource', target.route, forward)
    return rewriteReadResult(result, target.uris)
  })

const maxUriLength = 8_192

/** @throws GatewayError too_many */
const subscribe: LegacyMethod = (call, services) =>
  atResource(call, services, async (target, uri) => {
    if (target.route.name.length > maxUriLength) {
      throw new GatewayError('invalid_params', `The URI is longer than ${maxUriLength} characters.`)
    }
    checkConditions(call, target, 'resource', call.request, services.wall)
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

/** The methods but those of tasks. Membership is support; everything else is method-not-found. */
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
