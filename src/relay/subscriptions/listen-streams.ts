// `subscriptions/listen` (2026-07-28 basic/patterns/subscriptions): all listen streams of this process. Tells them of
// list changes, keeps the listings of their endpoints in use, and ends the streams that cannot keep what they
// promised.

import type { Endpoint, UpstreamDefinition } from '../../config/snapshot.ts'
import { observe } from '../../observe/calls.ts'
import { GatewayError, type Result } from '../../protocol/messages.ts'
import type { ListKind } from '../../protocol/seams.ts'
import type { Bus } from '../../session/bus/bus.ts'
import { everyNode } from '../../store/keys.ts'
import type { ModernCall } from '../call/call.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { definitionsOf } from '../catalog/client-catalogs.ts'
import { changedKinds } from '../catalog/freshness.ts'
import type { ListsOfNode } from '../catalog/view-changes.ts'
import { conversationScopeOf, listenCallOf } from '../client/modern-client.ts'
import { createKeepAlive } from '../connections/keep-alive.ts'
import { createListenLimit, readListenFilter, type ListenFilter } from './listen-filter.ts'
import { createListenStream, type ListenStream, type ListenStreamsOptions } from './listen-stream.ts'

export type ListenStreams = ReturnType<typeof createListenStreams>

/** Between two marks of the listings as used, in milliseconds. */
const maxUseIntervalMs = 15_000

/** @param options with the way to the other processes, whose lists its clients may be shown */
export function createListenStreams(
  options: ListenStreamsOptions & { readonly bus: Pick<Bus, 'tell' | 'hear' | 'shared' | 'node'> }
) {
  const { catalogs, contextOf, listings, bus, runtime } = options
  const { clock } = runtime
  const streams = new Set<ListenStream>()
  const enter = createListenLimit()
  const keepAlive = createKeepAlive(clock, markListingsUsed, maxUseIntervalMs)
  let closed = false

  /** Once for all streams of an endpoint with the same view. */
  function markListingsUsed(): number {
    const marked = new Map<Endpoint, Set<string | undefined>>()
    let idleMs = Infinity
    for (const { call } of streams) {
      // Who only listens has not gone, and keeps what they have connected.
      contextOf(call.tenant.id, call.endpoint.name, call.principal)
      const viewKey = catalogs.viewKeyOf(call)
      const keys = marked.get(call.endpoint) ?? new Set()
      if (keys.has(viewKey?.key)) continue
      marked.set(call.endpoint, keys.add(viewKey?.key))
      for (const definition of definitionsOf(call)) {
        listings.markUsed(definition, viewKey)
        idleMs = Math.min(idleMs, definition.idleMs)
      }
    }
    return idleMs
  }

  /**
   * Streams of one endpoint share views: each pair of views is compared once.
   * @param reportedTo what servers say has changed for the client of a stream, be it the same or not
   */
  function tellListChanges(
    some: Iterable<ListenStream>,
    reportedTo: (stream: ListenStream) => Iterable<ListKind> = () => []
  ): void {
    const compared = new Map<Catalog, { readonly now: Catalog; readonly kinds: ReadonlySet<ListKind> }>()
    for (const stream of some) {
      const { view } = stream
      const now = catalogs.of(stream.call)
      let change = compared.get(view)
      if (change?.now !== now) {
        change = { now, kinds: changedKinds(view.lists, now.lists) }
        compared.set(view, change)
      }
      stream.show(now, [...change.kinds, ...reportedTo(stream)])
    }
  }

  const concernedBy = (hash: string): ListenStream[] =>
    [...streams].filter(({ call }) => definitionsOf(call).some((each) => each.hash === hash))

  listings.onChange(({ hash, kinds, isAffected, view, isFirst }) => {
    tellListChanges(concernedBy(hash), ({ call }) => (isAffected(catalogs.viewKeyOf(call)) ? kinds : []))
    if (bus.shared && !isFirst)
      void bus.tell(everyNode, 'lists', { hash, kinds: [...kinds], view } satisfies ListsOfNode)
  })
  // A client that was told before, by this process, may have asked the other one for its lists before that one had read
  // them: whichever process reads a change last, its word is the last that every client hears.
  bus.hear('lists', ({ hash, kinds, view }: ListsOfNode, from) => {
    if (from === bus.node) return
    const isAffected = ({ call }: ListenStream): boolean => view === undefined || catalogs.viewKeyOf(call)?.key === view
    tellListChanges(concernedBy(hash), (stream) => (isAffected(stream) ? kinds : []))
  })

  async function serve(call: ModernCall, filter: ListenFilter): Promise<void> {
    await catalogs.awaitListings(call)
    // A reload may have come meanwhile.
    const context = contextOf(call.tenant.id, call.endpoint.name, call.principal)
    if (closed) throw stopping()
    if (context === undefined) throw removed()
    if (call.signal.aborted) return
    const stream = createListenStream({ ...call, ...context }, filter, options)
    streams.add(stream)
    keepAlive.add(Math.min(...definitionsOf(context).map(({ idleMs }) => idleMs)))
    await stream.run().finally(() => streams.delete(stream))
  }

  return {
    get size() {
      return streams.size
    },
    /** See `ModernRelay.listen`. */
    listen(given: ModernCall): Promise<Result> {
      // The body is read at once and let go: the stream may be open for hours.
      const call = listenCallOf(given)
      const filter = readFilter(given)
      return observe(call, runtime.observers, async () => {
        const wanted = await filter
        if (closed) throw stopping()
        const leave = enter(call.principal, wanted, call.client.capabilities)
        await serve(call, wanted).finally(leave)
        return { resultType: 'complete' }
      })
    },
    /** Takes a report of changed lists on a connection that serves one conversation of a caller. */
    listsReported(conversation: string, { hash }: UpstreamDefinition, kinds: readonly ListKind[]) {
      const concerned = concernedBy(hash).filter(({ call }) => conversationScopeOf(call) === conversation)
      tellListChanges(concerned, () => kinds)
    },
    /** Moves the streams to a new configuration, and ends those of removed callers; to be called after a reload. */
    retain() {
      for (const stream of streams) {
        const { tenant, endpoint, principal } = stream.call
        const context = contextOf(tenant.id, endpoint.name, principal)
        if (context === undefined) {
          streams.delete(stream)
          stream.end(removed())
        } else stream.move(context)
      }
      tellListChanges(streams)
      for (const stream of streams) stream.check()
    },
    /** Ends all streams, and refuses new ones. */
    close() {
      closed = true
      keepAlive.close()
      for (const stream of streams) stream.end(stopping())
    }
  }
}

/** Rejects instead of throwing, for `observe` to record. */
const readFilter = async ({ request, client }: ModernCall): Promise<ListenFilter> =>
  readListenFilter(request.params, client.capabilities)

const removed = (): GatewayError => new GatewayError('not_found', 'The endpoint is no longer configured.')
const stopping = (): GatewayError =>
  new GatewayError('shutting_down', 'The gateway is stopping. Retry; another process will answer.')
