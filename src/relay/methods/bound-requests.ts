// Requests of a legacy session that only one process, the home of the session, can run: it has the child processes, the
// upstream sessions, the subscriptions and the tasks of the session.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { metaOf } from '../../protocol/messages.ts'
import { relatedTaskKey } from '../../protocol/translate/tasks.ts'
import type { LegacyCall } from '../call/call.ts'
import { definitionsOf, type ClientCatalogs, type SessionViewer } from '../catalog/client-catalogs.ts'
import type { Listings } from '../catalog/listings.ts'
import { isBoundUpstream } from '../catalog/view-changes.ts'
import { requiresTask } from '../tasks/task-required-tools.ts'

/** For each method that names a tool, a prompt or a resource: the kind, and the parameter that holds the name. */
const targets: Readonly<Record<string, readonly ['tool' | 'prompt' | 'resource', string]>> = {
  'tools/call': ['tool', 'name'],
  'prompts/get': ['prompt', 'name'],
  'resources/read': ['resource', 'uri']
}
/** Methods that the home must run, whatever the upstream is. */
const alwaysBound = /^(?:resources\/(?:un)?subscribe|tasks\/.*)$/

type Bound = Pick<LegacyCall, 'request' | 'session' | 'tenant' | 'endpoint' | 'snapshot'>

/**
 * Finds the upstream of a bound request that a process may send itself, if it borrows the session there from the home.
 * If this process does not know the name, it has the lists of all upstreams with `lendSessions` read, so that it knows
 * the name the next time.
 * @returns undefined if only the home can run the request: it names no route, or it makes or names a task
 */
export function upstreamForBorrower(
  call: Bound,
  catalogs: ClientCatalogs<SessionViewer>,
  listings: Pick<Listings, 'all' | 'markUsed'>
): UpstreamDefinition | undefined {
  const { method, params } = call.request
  const target = targets[method]
  // Only the process that keeps a task can run requests about it.
  const namesTask = params?.['task'] !== undefined || metaOf(params)[relatedTaskKey] !== undefined
  const name = target && !namesTask ? params?.[target[1]] : undefined
  const route = target && typeof name === 'string' ? catalogs.of(call)[target[0]](name) : undefined
  if (name !== undefined && route === undefined)
    for (const each of definitionsOf(call))
      if (each.type === 'http' && each.lendSessions) listings.markUsed(each, catalogs.viewKeyOf(call))
  const definition = route && definitionsOf(call).find(({ name: upstream }) => upstream === route.upstream)
  // For a tool that requires a task, the gateway makes one even for clients that do not know tasks.
  const makesTask =
    definition !== undefined && method === 'tools/call' && requiresTask(listings, definition, route?.name)
  return makesTask ? undefined : definition
}

/** Returns whether only the home of the session can run the request. */
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
