// One listen stream of a client, merged of list changes and of a part for each upstream. It tells nothing that the
// client did not ask for, and nothing before its acknowledgment.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { type GatewayError, isModernRevision, latestModern } from '../../protocol/messages.ts'
import { hasCapability } from '../../protocol/methods.ts'
import type { ListKind } from '../../protocol/seams.ts'
import { runSteps, type Steps, untilAborted } from '../../time/turns.ts'
import {
  quotaKeyOf,
  type ContextOf,
  type EndpointContext,
  type ModernCall,
  type ModernViewer,
  type Runtime
} from '../call/call.ts'
import type { Catalog, Route } from '../catalog/catalog.ts'
import { definitionsOf, type ClientCatalogs } from '../catalog/client-catalogs.ts'
import { readableRoute } from '../catalog/visible.ts'
import type { Listings } from '../catalog/listings.ts'
import type { CallerConnections, LeasedConnection } from '../connections/caller-connections.ts'
import { taskForCaller, type SealedTaskIds } from '../tasks/caller-tasks.ts'
import type { ProcessTasks } from '../tasks/process-tasks.ts'
import {
  grantedOf,
  leadAsGranted,
  listenRoutes,
  notificationFilterOf,
  type ListenFilter,
  type ListenNames
} from './listen-filter.ts'
import { openLegacyUpstreamPart } from './listen-legacy-upstream.ts'
import { createListenQueue } from './listen-queue.ts'
import { openUpstreamPart, type ListenTarget, type UpstreamPart } from './listen-upstream.ts'
import type { ResourceSubscriptions } from './resource-subscriptions.ts'

export interface ListenStreamsOptions {
  readonly catalogs: ClientCatalogs<ModernViewer>
  readonly contextOf: ContextOf
  readonly taskIds: SealedTaskIds
  readonly processTasks: Pick<ProcessTasks, 'find'>
  readonly listings: Pick<Listings, 'markUsed' | 'peek' | 'onChange'>
  readonly connections: Pick<CallerConnections, 'watch'>
  readonly subscriptions: Pick<ResourceSubscriptions, 'join' | 'subscribe' | 'unsubscribe' | 'drop'>
  readonly runtime: Pick<Runtime, 'clock' | 'wall' | 'random' | 'log' | 'observers'>
}

export type ListenStream = ReturnType<typeof createListenStream>

/** How long upstreams may take to acknowledge, in milliseconds: what they have not by then, is not promised. */
const waitMsOf = ({ snapshot }: EndpointContext): number =>
  Math.min(Math.max(snapshot.limits.coldStartMs, 1_000), 10_000)

/** Where a stream stands now: its client's call in the configuration, and the lists as the client was told of them. */
interface Standing {
  call: ModernCall
  view: Catalog
}

function targetOf(
  { upstream: name, uris, taskIds: shownIds }: ListenNames,
  stand: Readonly<Standing>,
  queue: ReturnType<typeof createListenQueue>,
  { catalogs, runtime: { wall, log } }: Pick<ListenStreamsOptions, 'catalogs' | 'runtime'>
): ListenTarget {
  return {
    get call() {
      return stand.call
    },
    updated(uri, below, meta) {
      const own = below ? undefined : uris.get(uri)
      for (const shown of own ?? [stand.view.uriMap(name)(uri)]) {
        // What the endpoint does not offer, or policy denies now, cannot be read either.
        if (readableRoute(stand.call, stand.view, shown, wall.now())?.upstream !== name) continue
        const params = { uri: shown, ...(meta !== undefined && { _meta: meta }) }
        queue.send(shown, { method: 'notifications/resources/updated', params })
      }
    },
    taskChanged(taskId, task) {
      const { call } = stand
      try {
        const shownId = shownIds.get(taskId) ?? taskId
        const params = taskForCaller(call, name, task, shownId, catalogs.of(call).uriMap(name))
        queue.send(taskId, { method: 'notifications/tasks', params })
      } catch (err) {
        log.warn(
          { err, upstream: name, tenant: call.tenant.id },
          'a notification about a task could not be passed on; its client can ask'
        )
      }
    }
  }
}

/** @param given without its params, where its endpoint stands now */
export function createListenStream(given: ModernCall, filter: ListenFilter, options: ListenStreamsOptions) {
  const { catalogs, taskIds, processTasks, listings, connections, subscriptions, runtime } = options
  const { clock, wall } = runtime
  const { signal } = given
  const parts = new Map<ListenNames, UpstreamPart>()
  const over = Promise.withResolvers<void>()
  const queue = createListenQueue((notification) => given.client.notify(notification), clock)
  const stand: Standing = { call: given, view: catalogs.of(given) }
  const ended = new AbortController()
  let refusal: GatewayError | undefined
  /** A reload came after the last look at where the resources lead began. */
  let isMoved = false
  /** Until the acknowledgment, too: what comes before it is looked at then. */
  let isLooking = true
  const readable = (uri: string): Route | undefined => readableRoute(stand.call, stand.view, uri, wall.now())
  const kinds = new Set(
    [...filter.kinds].filter((kind) => hasCapability(stand.view.capabilities, [kind, 'listChanged']))
  )

  function open(definition: UpstreamDefinition, names: ListenNames): void {
    const asked = { uris: [...names.uris.keys()], taskIds: [...names.taskIds.keys()] }
    const target = targetOf(names, stand, queue, options)
    const { process } = names
    const listing = listings.peek(definition, catalogs.viewKeyOf(stand.call))
    if (process !== undefined || isModernRevision(listing?.revision ?? latestModern)) {
      const connect = async (): Promise<LeasedConnection | undefined> =>
        process === undefined ? connections.watch(definition, target.call) : processTasks.find(definition, process)
      parts.set(names, openUpstreamPart(definition, asked, target, connect, runtime))
    } else if (hasCapability(listing?.capabilities ?? {}, ['resources', 'subscribe'])) {
      // No connection is opened to learn what the listing says already.
      const waitMs = waitMsOf(stand.call)
      const { uris } = asked
      parts.set(names, openLegacyUpstreamPart(definition, uris, target, waitMs, connections, subscriptions, runtime))
    }
  }

  /** Returns the filter that the upstreams have acknowledged by now, as the client wrote it. */
  function granted(): ListenFilter {
    for (const [names, part] of parts) {
      if (part.granted.uris.length > 0 || part.granted.taskIds.length > 0) continue
      part.end()
      parts.delete(names)
    }
    return { ...grantedOf(parts, filter), kinds }
  }

  /** Resolves when all upstreams have answered or their time is over. */
  async function settled(): Promise<void> {
    if (parts.size === 0) return
    const late = Promise.withResolvers<void>()
    const timer = clock.timer(waitMsOf(stand.call), late.resolve)
    await Promise.race([Promise.all([...parts.values()].map(({ settled: each }) => each)), late.promise, over.promise])
    timer.close()
  }

  function end(why?: GatewayError): void {
    ended.abort()
    refusal ??= why
    over.resolve()
  }

  /** Does it in the turns of the process. @returns undefined where the stream ended meanwhile */
  async function lookUp<T>(steps: Steps<T>): Promise<T | undefined> {
    isMoved = false
    const owner = { tenant: given.tenant.id, caller: quotaKeyOf(given.principal) }
    return await runSteps(untilAborted(steps, ended.signal), owner)
  }

  /** Looks them up again where a reload came meanwhile. */
  async function routes(): Promise<ListenNames[] | undefined> {
    const found = await lookUp(listenRoutes({ resource: readable }, filter, (id) => taskIds.open(stand.call, id)))
    return isMoved && !ended.signal.aborted ? routes() : found
  }

  /** Ends the stream where a resource leads elsewhere since a reload. */
  async function check(): Promise<void> {
    if (isLooking) return
    isLooking = true
    const now = { resource: (uri: string) => stand.view.resource(uri) }
    while (isMoved && !ended.signal.aborted) if ((await lookUp(leadAsGranted(now, parts))) !== true) end()
    isLooking = false
  }

  return {
    /** The client's call, where its endpoint stands now. */
    get call() {
      return stand.call
    },
    /** The lists as the client was last told of them. */
    get view() {
      return stand.view
    },
    /** The client is told which of its lists differ from before. */
    show(now: Catalog, changed: Iterable<ListKind>) {
      stand.view = now
      queue.changed([...changed].filter((kind) => kinds.has(kind)))
    },
    /** Moves the stream to a new configuration; to be called after a reload. */
    move(context: EndpointContext) {
      isMoved ||= context.tenant !== stand.call.tenant || context.endpoint !== stand.call.endpoint
      stand.call = { ...given, ...context }
    },
    /**
     * Ends the stream where something that the client was promised is not where it was: at once where an upstream is
     * gone, else when it was looked up. To be called after `move` and `show`.
     */
    check() {
      const hashes = new Set(definitionsOf(stand.call).map(({ hash }) => hash))
      if ([...parts.values()].some(({ definition }) => !hashes.has(definition.hash))) end()
      check().catch(over.reject)
    },
    /**
     * Resolves when the stream has ended.
     * @throws GatewayError where it was ended before anything was opened for it: what `end` was given
     */
    async run(): Promise<void> {
      signal.addEventListener('abort', () => end(), { once: true })
      try {
        const found = await routes()
        if (signal.aborted) return
        if (refusal !== undefined) throw refusal
        for (const names of found ?? []) {
          const definition = stand.call.tenant.upstreams.get(names.upstream)
          if (definition !== undefined) open(definition, names)
        }
        await settled()
        if (signal.aborted) return
        queue.acknowledge({
          method: 'notifications/subscriptions/acknowledged',
          params: { notifications: notificationFilterOf(granted()) }
        })
        isLooking = false
        check().catch(over.reject)
        await over.promise
        if (!signal.aborted) queue.finish()
      } finally {
        ended.abort()
        queue.end()
        for (const part of parts.values()) part.end()
      }
    },
    /**
     * Ends the stream; an aborted call is told nothing more.
     * @param why what the client is told where nothing was opened for it yet
     */
    end: (why: GatewayError) => end(why)
  }
}
