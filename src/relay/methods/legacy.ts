// The methods of a session, up to 2025-11-25. Membership in the table is support; everything else is method-not-found.

import { GatewayError, type Result } from '../../protocol/messages.ts'
import { isLogLevel, logLevels } from '../../protocol/seams.ts'
import { shapeCompletion, shapePromptResult, shapeToolResult } from '../../protocol/translate/revision-shape.ts'
import {
  rewritePromptResult,
  rewriteReadResult,
  rewriteToolResult,
  withParam
} from '../../protocol/translate/rewrite.ts'
import {
  checkArguments,
  checkProgressToken,
  excerpt,
  methodNotFound,
  stringParam,
  type LegacyCall
} from '../call/call.ts'
import {
  completionRequest,
  listPage,
  lists,
  noSuggestions,
  resolve,
  resolveResource,
  suggestionsAfter,
  withClientUri
} from './shared.ts'
import { connect, forwardLegacy, send, type LegacyServices } from './legacy-forward.ts'
import { legacyTaskMethods, taskCreatedBy, withSupportedTask } from './legacy-tasks.ts'
import { subscribe, unsubscribe } from './legacy-subscriptions.ts'

export type LegacyMethod = (call: LegacyCall, services: LegacyServices) => Promise<Result>

const methods: ReadonlyMap<string, LegacyMethod> = new Map<string, LegacyMethod>([
  ['ping', async () => ({})],
  ...lists.map((list): [string, LegacyMethod] => [
    list.method,
    async (call, { catalogs }) => {
      await catalogs.awaitListings(call)
      return listPage(call, list, catalogs.of(call), call.session.session.record.revision)
    }
  ]),
  ['tools/call', callTool],
  ['prompts/get', getPrompt],
  ['resources/read', readResource],
  ['resources/subscribe', subscribe],
  ['resources/unsubscribe', unsubscribe],
  ['completion/complete', complete],
  ['logging/setLevel', setLevel],
  ...legacyTaskMethods
])

/** @throws GatewayError method_not_found; whatever the method throws */
export function dispatchLegacy(call: LegacyCall, services: LegacyServices): Promise<Result> {
  const method = methods.get(call.request.method)
  if (method === undefined) throw methodNotFound(call.request.method)
  checkProgressToken(call)
  return method(call, services)
}

async function callTool(call: LegacyCall, services: LegacyServices): Promise<Result> {
  const name = stringParam(call, 'name')
  checkArguments(call)
  const target = await resolve(call, services.catalogs, 'tool', name)
  if (target === undefined) throw new GatewayError('invalid_params', `Unknown tool: ${excerpt(name)}`)
  const connection = await connect(call, target, services)
  const request = withParam(withSupportedTask(call, services, target), 'name', target.route.name)
  const result = await send(call, connection, request, services, target.catalog.wrapsStructuredContent(name))
  const own = await taskCreatedBy(call, services, connection, request, result)
  return shapeToolResult(rewriteToolResult(own, target.uris), call.session.session.record.revision)
}

async function getPrompt(call: LegacyCall, services: LegacyServices): Promise<Result> {
  const name = stringParam(call, 'name')
  const target = await resolve(call, services.catalogs, 'prompt', name)
  if (target === undefined) throw new GatewayError('invalid_params', `Unknown prompt: ${excerpt(name)}`)
  const result = await forwardLegacy(call, target, withParam(call.request, 'name', target.route.name), services)
  return shapePromptResult(rewritePromptResult(result, target.uris), call.session.session.record.revision)
}

async function readResource(call: LegacyCall, services: LegacyServices): Promise<Result> {
  const { target } = await resolveResource(call, services.catalogs)
  try {
    const result = await forwardLegacy(call, target, withParam(call.request, 'uri', target.route.name), services)
    return rewriteReadResult(result, target.uris)
  } catch (error) {
    throw withClientUri(error, target.uris)
  }
}

async function complete(call: LegacyCall, services: LegacyServices): Promise<Result> {
  const found = await completionRequest(call, services.catalogs)
  if (found === undefined) return noSuggestions()
  return shapeCompletion(await forwardLegacy(call, found.target, found.request, services).catch(suggestionsAfter))
}

async function setLevel({ request, session }: LegacyCall, { sessions, connections }: LegacyServices): Promise<Result> {
  const level = request.params?.['level']
  if (!isLogLevel(level)) {
    throw new GatewayError('invalid_params', `"level" must be one of ${logLevels.join(', ')}.`)
  }
  await sessions.setLogLevel(session.session, level)
  session.session = { ...session.session, record: { ...session.session.record, logLevel: level } }
  await connections.setLogLevel(session, level)
  return {}
}
