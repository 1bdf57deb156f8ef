// What a client asks `subscriptions/listen` for: read strictly, bounded, routed, and compared with what it is granted.

import type { Principal } from '../../auth/principal.ts'
import {
  GatewayError,
  isObject,
  type ClientCapabilities,
  type JsonObject,
  type UpstreamName
} from '../../protocol/messages.ts'
import { hasCapability, tasksExtension } from '../../protocol/methods.ts'
import type { ListKind } from '../../protocol/seams.ts'
import type { Steps } from '../../time/turns.ts'
import { quotaKeyOf } from '../call/call.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { TaskProcess, TaskRef } from '../tasks/caller-tasks.ts'

const maxEntries = 1_000
const maxLength = 8_192

/** `params.notifications`, complete. */
export interface ListenFilter {
  readonly kinds: ReadonlySet<ListKind>
  /** The URIs as the client writes them, each once. */
  readonly uris: readonly string[]
  readonly taskIds: readonly string[]
}

/** URIs and task ids as the upstream knows them. */
export type UpstreamFilter = Pick<ListenFilter, 'uris' | 'taskIds'>

const memberOf = {
  tools: 'toolsListChanged',
  prompts: 'promptsListChanged',
  resources: 'resourcesListChanged'
} as const
const kinds = Object.keys(memberOf) as ListKind[]

/**
 * Unknown members are no error: the acknowledgment leaves them out (2026-07-28 basic/patterns/subscriptions).
 * @throws GatewayError invalid_params; missing_capability for `taskIds` of a client that declares no tasks (SEP-2663)
 */
export function readListenFilter(params: JsonObject | undefined, capabilities: ClientCapabilities): ListenFilter {
  const filter = params?.['notifications']
  if (!isObject(filter)) throw invalid('"params.notifications" must be an object; {} where nothing is wanted.')
  const wanted = {
    kinds: new Set(kinds.filter((kind) => flag(filter, memberOf[kind]))),
    uris: strings(filter, 'resourceSubscriptions'),
    taskIds: strings(filter, 'taskIds')
  }
  if (wanted.taskIds.length > 0 && !hasCapability(capabilities, ['extensions', tasksExtension])) {
    throw new GatewayError(
      'missing_capability',
      `Notifications about tasks are for clients that declare the extension ${tasksExtension} in ` +
        'io.modelcontextprotocol/clientCapabilities.',
      { data: { requiredCapabilities: { extensions: { [tasksExtension]: {} } } } }
    )
  }
  return wanted
}

/** `notifications` of an acknowledgment or of a request to an upstream. */
export function notificationFilterOf({ kinds: listed, uris, taskIds }: ListenFilter): JsonObject {
  return {
    ...Object.fromEntries(kinds.filter((kind) => listed.has(kind)).map((kind) => [memberOf[kind], true])),
    ...(uris.length === 0 ? {} : { resourceSubscriptions: uris }),
    ...(taskIds.length === 0 ? {} : { taskIds })
  }
}

/** Returns the part of a filter that the server has acknowledged. Anything beyond that is ignored. */
export function acknowledgedFilter(asked: UpstreamFilter, params: JsonObject): UpstreamFilter {
  const filter = params['notifications']
  const listed = (name: string): ReadonlySet<unknown> => {
    const list = isObject(filter) ? filter[name] : undefined
    return new Set(Array.isArray(list) ? list : [])
  }
  const [uris, taskIds] = [listed('resourceSubscriptions'), listed('taskIds')]
  return { uris: asked.uris.filter((uri) => uris.has(uri)), taskIds: asked.taskIds.filter((id) => taskIds.has(id)) }
}

function flag(filter: JsonObject, name: string): boolean {
  const value = filter[name]
  if (value !== undefined && typeof value !== 'boolean') throw invalid(`"notifications.${name}" must be a boolean.`)
  return value === true
}

function strings(filter: JsonObject, name: string): string[] {
  const list = filter[name]
  if (list === undefined) return []
  if (
    !Array.isArray(list) ||
    list.length > maxEntries ||
    !list.every((entry) => typeof entry === 'string' && entry.length <= maxLength)
  ) {
    throw invalid(
      `"notifications.${name}" must be an array of at most ${maxEntries} strings of at most ${maxLength} characters.`
    )
  }
  return [...new Set(list as string[])]
}

const invalid = (message: string): GatewayError => new GatewayError('invalid_params', message)

/**
 * The part of a stream that one connection serves: URIs and task ids as the upstream knows them -> as the client wrote
 * them.
 */
export interface ListenNames {
  readonly upstream: UpstreamName
  /** The process that alone knows the tasks. */
  readonly process?: TaskProcess | undefined
  readonly uris: Map<string, string[]>
  readonly taskIds: Map<string, string>
}

/**
 * Returns the part that each upstream serves; URIs and task ids without one are left out. In steps: many streams wait
 * for the same lists, and a URI is compared with all templates.
 */
export function* listenRoutes(
  view: Pick<Catalog, 'resource'>,
  { uris, taskIds }: ListenFilter,
  openTask: (id: string) => TaskRef | undefined
): Steps<ListenNames[]> {
  const routes = new Map<string, ListenNames>()
  const namesAt = (upstream: UpstreamName, process?: TaskProcess): ListenNames => {
    const key = JSON.stringify([upstream, process?.connection])
    const names = routes.get(key) ?? {
      upstream,
      process,
      uris: new Map<string, string[]>(),
      taskIds: new Map<string, string>()
    }
    routes.set(key, names)
    return names
  }
  for (const uri of uris) {
    yield
    const route = view.resource(uri)
    if (route === undefined) continue
    const names = namesAt(route.upstream)
    names.uris.set(route.name, [...(names.uris.get(route.name) ?? []), uri])
  }
  for (const taskId of taskIds) {
    yield
    const opened = openTask(taskId)
    if (opened === undefined) continue
    const { upstream, id, legacy, process } = opened
    // Tasks of legacy upstreams can only be polled.
    if (legacy === undefined) namesAt(upstream, process).taskIds.set(id, taskId)
  }
  return [...routes.values()]
}

/**
 * Returns whether all URIs that upstreams have granted lead to these still. In steps, as above.
 * @param view the lists as they are at each step
 */
export function* leadAsGranted(
  view: Pick<Catalog, 'resource'>,
  parts: Iterable<readonly [ListenNames, { readonly granted: UpstreamFilter }]>
): Steps<boolean> {
  for (const [{ upstream, uris }, part] of parts) {
    for (const uri of part.granted.uris) {
      for (const shown of uris.get(uri) ?? []) {
        yield
        const route = view.resource(shown)
        if (route?.upstream !== upstream || route.name !== uri) return false
      }
    }
  }
  return true
}

/** Returns what upstreams have granted, as the client wrote it in its filter. */
export function grantedOf(
  parts: Iterable<readonly [ListenNames, { readonly granted: UpstreamFilter }]>,
  filter: Pick<ListenFilter, 'uris' | 'taskIds'>
): Pick<ListenFilter, 'uris' | 'taskIds'> {
  const uris = new Set<string>()
  const taskIds = new Set<string>()
  for (const [names, { granted }] of parts) {
    for (const uri of granted.uris) for (const shown of names.uris.get(uri) ?? []) uris.add(shown)
    for (const id of granted.taskIds) taskIds.add(names.taskIds.get(id) ?? '')
  }
  return { uris: filter.uris.filter((uri) => uris.has(uri)), taskIds: filter.taskIds.filter((id) => taskIds.has(id)) }
}

const maxStreams = 100
/** URIs and task ids of one caller, over all of its streams. */
const maxWatched = 10_000
/** The most bytes of these and of the capabilities, which are held as long as the streams. */
const maxBytes = 4 * 1024 * 1024

/**
 * Limits what one caller may listen to at once in this process: a stream costs a connection here and at each upstream.
 */
export function createListenLimit() {
  const taken = new Map<string, { streams: number; watched: number; bytes: number }>()
  const tooMany = (what: string): GatewayError =>
    new GatewayError('too_many', `${what}, which is the limit. Close some of them first.`)

  /**
   * @param capabilities of the client, as far as the stream holds them
   * @returns ends the use
   * @throws GatewayError too_many
   */
  return (principal: Principal, { uris, taskIds }: UpstreamFilter, capabilities: ClientCapabilities): (() => void) => {
    const key = quotaKeyOf(principal)
    const watched = uris.length + taskIds.length
    const bytes = Buffer.byteLength(JSON.stringify([uris, taskIds, capabilities]))
    const own = taken.get(key) ?? { streams: 0, watched: 0, bytes: 0 }
    if (own.streams >= maxStreams) throw tooMany(`This caller has ${maxStreams} listen streams`)
    if (own.watched + watched > maxWatched)
      throw tooMany(`The listen streams of this caller name more than ${maxWatched} resources and tasks`)
    if (own.bytes + bytes > maxBytes)
      throw tooMany(`What the listen streams of this caller name is longer than ${maxBytes / 1024 / 1024} MiB`)
    own.streams++
    own.watched += watched
    own.bytes += bytes
    taken.set(key, own)
    return () => {
      own.streams--
      own.watched -= watched
      own.bytes -= bytes
      if (own.streams === 0) taken.delete(key)
    }
  }
}
