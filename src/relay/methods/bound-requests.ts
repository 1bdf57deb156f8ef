// Requests that need what one process alone has, where several processes serve one session.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { isModernRevision, metaOf } from '../../protocol/messages.ts'
import { relatedTaskKey } from '../../protocol/translate/tasks.ts'
import type { LegacyCall } from '../call/call.ts'
import { definitionsOf, type ClientCatalogs, type SessionViewer } from '../catalog/client-catalogs.ts'
import type { Listings } from '../catalog/listings.ts'
import { requiresTask } from '../tasks/task-required-tools.ts'

/** The kind and the parameter of what each method is about. */
const targets: Readonly<Record<string, readonly ['tool' | 'prompt' | 'resource', string]>> = {
  'tools/call': ['tool', 'name'],
  'prompts/get': ['prompt', 'name'],
  'resources/read': ['resource', 'uri']
}
/** Methods whose effects stay at one process, whatever the upstream is. */
const alwaysBound = /^(?:resources\/(?:un)?subscribe|tasks\/.*)$/

type Bound = Pick<LegacyCall, 'request' | 'session' | 'tenant' | 'endpoint' | 'snapshot'>

/**
 * Of a request that has to run where those before it of its session ran, but for its session at an upstream. A name
 * that is not known here is passed on, and the lists of servers whose sessions are lent are read, or else all calls of
 * that name would be passed on.
 * @returns where it may be sent by any process that is in that session, too; undefined: nowhere
 */
export function sendableTo(
  call: Bound,
  catalogs: ClientCatalogs<SessionViewer>,
  listings: Pick<Listings, 'all' | 'markUsed'>
): UpstreamDefinition | undefined {
  const { method, params } = call.request
  const target = targets[method]
  // What is about a task belongs to the process that keeps it.
  const isOfTask = params?.['task'] !== undefined || metaOf(params)[relatedTaskKey] !== undefined
  const name = target && !isOfTask ? params?.[target[1]] : undefined
  const route = target && typeof name === 'string' ? catalogs.of(call)[target[0]](name) : undefined
  if (name !== undefined && route === undefined)
    for (const each of definitionsOf(call))
      if (each.type === 'http' && each.lendSessions === true) listings.markUsed(each, catalogs.viewKeyOf(call))
  const definition = route && definitionsOf(call).find(({ name: upstream }) => upstream === route.upstream)
  // A client that knows no tasks is served by one all the same.
  const makesTask =
    definition !== undefined && method === 'tools/call' && requiresTask(listings, definition, route?.name)
  return makesTask ? undefined : definition
}

/** Does the request have to run where those before it of its session ran? */
export function isBoundRequest(
  call: Bound,
  catalogs: ClientCatalogs<SessionViewer>,
  listings: Pick<Listings, 'peek' | 'sessionless'>
): boolean {
  const { method, params } = call.request
  if (method === 'ping') return false
  if (alwaysBound.test(method) || params?.['task'] !== undefined) return true
  const bound = definitionsOf(call).filter((definition) => isBoundUpstream(definition, listings))
  const target = targets[method]
  if (target === undefined || bound.length === 0) return bound.length > 0
  const [kind, member] = target
  const name = params?.[member]
  const route = typeof name === 'string' ? catalogs.of(call)[kind](name) : undefined
  return route === undefined || bound.some((definition) => definition.name === route.upstream)
}

/**
 * A shared one keeps no state; a modern one over HTTP has no session, and not every older one has. A process may have
 * state in any era.
 */
function isBoundUpstream(definition: UpstreamDefinition, listings: Pick<Listings, 'peek' | 'sessionless'>): boolean {
  if (definition.isolation === 'shared') return false
  if (definition.type === 'stdio') return true
  if (listings.sessionless.has(definition)) return false
  const revision = listings.peek(definition)?.revision
  return definition.era !== 'modern' && (revision === undefined || !isModernRevision(revision))
}
