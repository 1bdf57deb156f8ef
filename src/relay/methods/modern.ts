// The methods of 2026-07-28. A method whose capability the endpoint does not offer is as unknown as one that the
// revision does not have.

import { GatewayError, latestModern, modernRevisions, type Result } from '../../protocol/messages.ts'
import { shapeCompletion } from '../../protocol/translate/revision-shape.ts'
import { hasCapability, modernClientRequests } from '../../protocol/methods.ts'
import { checkProgressToken, excerpt, type ModernCall } from '../call/call.ts'
import { completionRequest, type List, listPage, lists, noSuggestions, suggestionsAfter } from './shared.ts'
import { callTool, getPrompt, readResource, taskMethod } from './modern-calls.ts'
import { forwardModern, type ModernServices } from './modern-forward.ts'

interface ModernMethod {
  readonly handle: (call: ModernCall, services: ModernServices) => Promise<Result>
  /** The answer is made of all upstreams, so it waits for those whose listing is unknown. */
  readonly aggregates?: boolean
}

const methods: ReadonlyMap<string, ModernMethod> = new Map<string, ModernMethod>([
  ['server/discover', { handle: discover, aggregates: true }],
  ...lists.map((list): [string, ModernMethod] => [
    list.method,
    { handle: async (call, services) => listResult(call, services, list), aggregates: true }
  ]),
  ['tools/call', { handle: callTool }],
  ['prompts/get', { handle: getPrompt }],
  ['resources/read', { handle: readResource }],
  ['completion/complete', { handle: complete }],
  ['tasks/get', { handle: taskMethod }],
  ['tasks/update', { handle: taskMethod }],
  ['tasks/cancel', { handle: taskMethod }]
])

/** @throws GatewayError unknown_method; whatever the method throws */
export async function dispatchModern(call: ModernCall, services: ModernServices): Promise<Result> {
  const { catalogs, states } = services
  const { method } = call.request
  const entry = methods.get(method)
  if (entry === undefined) throw unknownMethod(method)
  checkProgressToken(call)
  const { handle, aggregates } = entry
  const needs = modernClientRequests.get(method)?.capability ?? []
  const isOffered = (): boolean => needs.length === 0 || hasCapability(catalogs.of(call).modernCapabilities, needs)
  if (aggregates === true || !isOffered()) await catalogs.awaitListings(call)
  if (!isOffered()) throw states.lost(call) ?? unknownMethod(method)
  return await handle(call, services)
}

const unknownMethod = (method: string): GatewayError =>
  new GatewayError('unknown_method', `Method not found: ${excerpt(method)}`)

/** What is listed depends on who asks, now or later, so no cache may show it to others. */
function listResult(call: ModernCall, { catalogs }: ModernServices, list: List): Result {
  return {
    resultType: 'complete',
    ...listPage(call, list, catalogs.of(call), latestModern),
    ttlMs: catalogs.remainingTtlMs(call, [list.list]),
    cacheScope: 'private'
  }
}

async function discover(call: ModernCall, { catalogs }: ModernServices): Promise<Result> {
  const { modernCapabilities: capabilities, instructions } = catalogs.of(call)
  return {
    resultType: 'complete',
    supportedVersions: modernRevisions,
    capabilities,
    ...(instructions === undefined ? {} : { instructions }),
    ttlMs: catalogs.remainingTtlMs(call, ['tools', 'prompts', 'resources', 'templates']),
    cacheScope: 'private'
  }
}

async function complete(call: ModernCall, services: ModernServices): Promise<Result> {
  const found = await completionRequest(call, services.catalogs)
  if (found === undefined) return { ...noSuggestions(), resultType: 'complete' }
  const { target, request } = found
  const result = await forwardModern(call, target.definition, request, services).catch(suggestionsAfter)
  return { ...shapeCompletion(result), resultType: 'complete' }
}
