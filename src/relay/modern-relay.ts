// The relay for requests of 2026-07-28, which belong to no session: composes what serves them. Nothing of a caller
// stays here but open listen streams, parked calls and tasks.

import { createMemoryAccount } from '../limits/memory.ts'
import type { JsonObject, Request, Result, UpstreamName } from '../protocol/messages.ts'
import type { Bus } from '../session/bus/bus.ts'
import type { Sealer } from '../store/seal.ts'
import type { Pool } from '../upstream/pool/pool.ts'
import { createConnectWait } from './bridge/connect-wait.ts'
import { createParking } from './bridge/parking.ts'
import { createRequestStates } from './bridge/request-state.ts'
import type { ContextOf, ModernCall, ModernViewer, Runtime } from './call/call.ts'
import { forwardToNode, forwardedCallOf } from './call/forwarded-call.ts'
import type { CatalogCache } from './catalog/cache/catalog-cache.ts'
import { createCallerCatalogs } from './catalog/client-catalogs.ts'
import type { Listings } from './catalog/listings.ts'
import { createOwnLists } from './catalog/own-lists.ts'
import { createAdvertisedCapabilities } from './catalog/advertised.ts'
import { createCallerConnections } from './connections/caller-connections.ts'
import type { LogLevels } from './connections/log-level.ts'
import { retryForwarded, type ModernServices } from './methods/modern-forward.ts'
import { dispatchModern, taskMethod } from './methods/modern.ts'
import { createListPages } from './methods/list-pages.ts'
import { resolve } from './methods/shared.ts'
import { createListenStreams } from './subscriptions/listen-streams.ts'
import type { ResourceSubscriptions } from './subscriptions/resource-subscriptions.ts'
import { createLegacyTasks } from './tasks/legacy-for-modern.ts'
import { createOpenTasks } from './tasks/open-tasks.ts'
import { createSealedTaskIds } from './tasks/caller-tasks.ts'
import { createProcessTasks } from './tasks/process-tasks.ts'

export type ModernRelay = ReturnType<typeof createModernRelay>

export function createModernRelay({
  runtime,
  pool,
  sealer,
  shared: { listings, catalogOf, levels, subscriptions },
  contextOf,
  node,
  bus,
  parkedMs
}: {
  readonly runtime: Runtime
  readonly pool: Pool
  readonly sealer: Sealer
  readonly shared: {
    readonly listings: Listings
    readonly catalogOf: CatalogCache
    readonly levels: LogLevels
    readonly subscriptions: ResourceSubscriptions
  }
  readonly contextOf: ContextOf
  /** The name of this process, among those on the same store. */
  readonly node: string
  /** To the other processes. */
  readonly bus: Pick<Bus, 'request' | 'serve' | 'tell' | 'hear' | 'shared' | 'node'>
  /** How long a call waits for input of its client, in milliseconds; default ten minutes. */
  readonly parkedMs?: number | undefined
}) {
  const { clock, wall, clientInfo, newId, log, callLimits, memory = createMemoryAccount() } = runtime

  const ownLists = createOwnLists(listings, clock, log)
  const catalogs = createCallerCatalogs(catalogOf, listings, ownLists, clock)
  const taskIds = createSealedTaskIds(sealer)
  const openTasks = createOpenTasks(clock, pool, newId, log)
  const connections = createCallerConnections({
    pool,
    listings,
    catalogs,
    ownLists,
    levels,
    clientInfo,
    clock,
    memory,
    events: {
      notification: subscriptions.notification,
      listsReported: (conversation, definition, kinds) => listenStreams.listsReported(conversation, definition, kinds),
      lost: subscriptions.lost,
      ask: openTasks.ask,
      needs: openTasks.runsOn
    },
    log
  })
  const states = createRequestStates(sealer, wall)
  const parking = createParking({ states, node, bus, contextOf, wall, newId, log, memory, lifetimeMs: parkedMs })
  const connectWait = createConnectWait({ states, contextOf, clock, parkedMs })
  const forward = (...args: [call: ModernCall, upstream: UpstreamName, owner: string, outgoing?: Request]) =>
    forwardToNode(bus, ...args)
  const legacyTasks = createLegacyTasks({
    connections,
    pool,
    listings,
    taskIds,
    openTasks,
    node,
    forward,
    clock
  })
  const processTasks = createProcessTasks({ pool, openTasks, node, forward })
  const services: ModernServices = {
    catalogs,
    advertised: createAdvertisedCapabilities(clock),
    connections,
    states,
    parking,
    legacyTasks,
    taskIds,
    processTasks,
    pages: createListPages(sealer, memory),
    callLimits,
    wall,
    clock
  }
  const listenStreams = createListenStreams({
    catalogs,
    contextOf,
    taskIds,
    processTasks,
    listings,
    connections,
    subscriptions,
    bus,
    runtime
  })

  bus.serve('modern', async (message, channel) => {
    const { call, upstream, outgoing } = await forwardedCallOf(message, channel, contextOf)
    if (call.request.method.startsWith('tasks/')) return await taskMethod(call, services)
    if (outgoing !== undefined) return await retryForwarded(call, upstream, outgoing, services)
    return await parking.resumeForwarded(call, upstream)
  })

  return {
    get parkedCalls() {
      return parking.size
    },
    get listenStreams() {
      return listenStreams.size
    },
    /**
     * Every method but `subscriptions/listen`. The result has `resultType`, `ttlMs` and `cacheScope` where they belong,
     * ids and URIs as the client knows them, and a sealed `requestState`.
     * @throws GatewayError (unknown_method for what the endpoint has not), RpcError (an upstream's own; -32021 among
     * them)
     */
    call: (call: ModernCall): Promise<Result> => dispatchModern(call, services),
    connectWait,
    /**
     * `subscriptions/listen`: `call.client.notify` gets `notifications/subscriptions/acknowledged` first, then what
     * changed for this caller, without subscription ids, which the HTTP handler adds. Resolves with the final empty
     * result where the gateway ends it; an aborted signal ends it silently.
     * @throws GatewayError invalid_params, missing_capability, too_many, not_found, shutting_down
     */
    listen: listenStreams.listen,
    /**
     * `inputSchema` of a tool as it is published to the caller, for its `x-mcp-header` annotations; undefined for an
     * unknown tool. Waits for upstreams whose listing is unknown; `call` with the same object does not wait again.
     */
    schemaOf(call: ModernViewer, tool: string): JsonObject | undefined | Promise<JsonObject | undefined> {
      const target = resolve(call, catalogs, 'tool', tool)
      if (target instanceof Promise) return target.then((found) => found?.catalog.schemaOf(tool))
      return target.catalog.schemaOf(tool)
    },
    /**
     * After a reload: ends listen streams whose endpoint changed in what they were promised, gives up parked calls that
     * nobody can resume, and cancels tasks that nobody can ask for.
     * @param hashes of all definitions that there are now
     */
    retain(hashes: Pick<ReadonlySet<string>, 'has'>): void {
      openTasks.retain(contextOf)
      listenStreams.retain()
      parking.retain()
      connections.retain(hashes)
    },
    /** Ends listen streams and parked calls. */
    async close(): Promise<void> {
      openTasks.close()
      listenStreams.close()
      await parking.close()
    }
  }
}
