// `subscriptions/listen` (2026-07-28 basic/patterns/subscriptions): one stream to the client, merged of what the listings tell and what
// the upstreams say on listen streams of their own. It says nothing that was not asked for, and nothing before its acknowledgment.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { observe } from '../../observe/calls.ts'
import type { Log } from '../../observe/log.ts'
import { GatewayError } from '../../protocol/errors.ts'
import type { EndpointName, TenantId, UpstreamName } from '../../protocol/ids.ts'
import { has } from '../../protocol/merge.ts'
import type { Result } from '../../protocol/messages.ts'
import { isModernRevision, latestModern } from '../../protocol/revisions.ts'
import type { ListKind } from '../../protocol/seams.ts'
import type { ModernCall, Place } from '../call.ts'
import type { Catalog } from '../catalog.ts'
import { changedKinds } from '../changes.ts'
import type { Listings } from '../listings.ts'
import type { PaceClock } from '../pace.ts'
import type { Profile } from '../profiles.ts'
import { covers } from '../subscriptions.ts'
import { bare, passedOn } from './caller.ts'
import type { ModernConnections } from './connections.ts'
import type { ModernFloor } from './floor.ts'
import { filterOf, readFilter } from './listen-filter.ts'
import type { Wanted } from './listen-filter.ts'
import { boundedMeta, openLeg } from './listen-leg.ts'
import type { Leg, LegOptions } from './listen-leg.ts'
import { createOutbox } from './listen-outbox.ts'
import type { ListenOutbox } from './listen-outbox.ts'
import { routesOf } from './listen-routes.ts'
import type { Names } from './listen-routes.ts'
import { createSeats } from './listen-seats.ts'
import { createListenUse } from './listen-use.ts'
import type { OldSubscriptions } from './old-subscriptions.ts'

export interface ListenOptions {
  readonly floor: Pick<ModernFloor, 'catalog' | 'settled' | 'shapeTask' | 'taskIds'>
  readonly listings: Pick<Listings, 'use' | 'peek' | 'onChange'>
  /** Resources of older upstreams. */
  readonly old: Pick<OldSubscriptions, 'open'>
  /** The connection that serves the caller at an upstream, of the era that it turns out to have. */
  readonly watch: (call: ModernCall, upstream: UpstreamName) => ReturnType<ModernConnections['watch']>
  readonly definitionsOf: (place: Place) => readonly UpstreamDefinition[]
  /** What decides which lists a caller sees. */
  readonly profileOf: (call: ModernCall) => Profile | undefined
  /** Where the endpoint stands now; undefined when it is gone. */
  readonly placeOf: (tenant: TenantId, endpoint: EndpointName) => Place | undefined
  readonly clock: PaceClock
  /** Between 0 and 1. */
  readonly random: () => number
  readonly log: Log
}

export interface Listen {
  /** See `ModernRelay.listen`. */
  listen (call: ModernCall): Promise<Result>
  /** After a reload: tells of lists that changed by it, and ends the streams that cannot keep what they promised. */
  retain (): void
  /** Ends all streams, and refuses new ones. */
  close (): void
}

interface Stream {
  /** Without its params. */
  readonly call: ModernCall
  place: Place
  /** The lists as the client was last told of them. */
  view: Catalog
  kinds: ReadonlySet<ListKind>
  readonly legs: Map<UpstreamName, { readonly leg: Leg, readonly names: Names }>
  readonly outbox: ListenOutbox
  end (): void
}

/** The call where its endpoint stands now. */
const seenBy = ({ call, place }: Stream): ModernCall => ({ ...call, ...place })

/** How long upstreams may take to acknowledge, in milliseconds: what they have not by then, the client is not promised. */
const patienceOf = ({ snapshot: { limits: { coldStartMs } } }: Place): number => Math.min(Math.max(coldStartMs, 1_000), 10_000)

export function createListen ({ floor, listings, old, watch, definitionsOf, profileOf, placeOf, clock, random, log }: ListenOptions): Listen {
  const streams = new Set<Stream>()
  const seats = createSeats()
  const use = createListenUse({ listings, definitionsOf, clock, places: () => [...streams].map((stream) => ({ place: stream.place, profile: profileOf(seenBy(stream)) })) })
  let closed = false

  const nowAt = ({ tenant, endpoint }: Place): Place | undefined => placeOf(tenant.id, endpoint.name)

  const isOld = (definition: UpstreamDefinition): boolean => !isModernRevision(listings.peek(definition)?.revision ?? latestModern)

  /** No connection is opened to find out what is known already. */
  const mayServe = (definition: UpstreamDefinition): boolean => !isOld(definition) || has(listings.peek(definition)?.capabilities ?? {}, ['resources', 'subscribe'])

  function connect (stream: Stream, definition: UpstreamDefinition, names: Names): void {
    const { call, outbox } = stream
    const asked = { uris: [...names.uris.keys()], taskIds: [...names.taskIds.keys()] }
    const onUpdated: LegOptions['onUpdated'] = (uri, below, meta) => {
      const own = below ? undefined : names.uris.get(uri)
      for (const shown of own ?? [stream.view.uriMap(definition.name)(uri)]) {
        outbox.send(shown, { method: 'notifications/resources/updated', params: { uri: shown, ...meta !== undefined && { _meta: meta } } })
      }
    }
    const connection = (): ReturnType<typeof watch> => watch(seenBy(stream), definition.name)
    const leg = isOld(definition) ? old.open({
      definition,
      uris: asked.uris,
      watch: connection,
      onUpdated ({ uri, _meta }) {
        if (typeof uri !== 'string') return
        const below = !leg.granted.uris.includes(uri)
        if (!below || leg.granted.uris.some((granted) => covers(granted, uri))) onUpdated(uri, below, boundedMeta(_meta))
      },
      patienceMs: patienceOf(stream.place)
    }) : openLeg({
      definition,
      asked,
      capabilities: passedOn(call.client.capabilities, stream.place.endpoint),
      watch: connection,
      onUpdated,
      onTask (taskId, params) {
        try {
          outbox.send(taskId, { method: 'notifications/tasks', params: floor.shapeTask(seenBy(stream), definition.name, params) })
        } catch (err) {
          log.warn({ err, upstream: definition.name, tenant: definition.tenant }, 'a notification about a task could not be passed on; its client can ask')
        }
      },
      clock,
      random,
      log
    })
    stream.legs.set(definition.name, { leg, names })
  }

  /** What the upstreams have agreed to by now, in the client's own words. No later additions. */
  function grantedOf ({ legs }: Stream, kinds: ReadonlySet<ListKind>, wanted: Wanted): Wanted {
    const uris = new Set<string>()
    const taskIds = new Set<string>()
    for (const [name, { leg, names }] of legs) {
      for (const uri of leg.granted.uris) for (const shown of names.uris.get(uri) ?? []) uris.add(shown)
      for (const id of leg.granted.taskIds) taskIds.add(names.taskIds.get(id) ?? '')
      if (leg.granted.uris.length > 0 || leg.granted.taskIds.length > 0) continue
      leg.end()
      legs.delete(name)
    }
    return { kinds, uris: wanted.uris.filter((uri) => uris.has(uri)), taskIds: wanted.taskIds.filter((id) => taskIds.has(id)) }
  }

  /** Tells the streams of changes in the lists that their clients see. Those of one endpoint share views, so each is compared once. */
  function review (some: Iterable<Stream>): void {
    const compared = new Map<Catalog, { readonly now: Catalog, readonly kinds: ReadonlySet<ListKind> }>()
    for (const stream of some) {
      const { view } = stream
      const now = floor.catalog(seenBy(stream))
      if (now === view) continue
      let change = compared.get(view)
      if (change?.now !== now) compared.set(view, change = { now, kinds: changedKinds(view, now) })
      stream.view = now
      stream.outbox.changed([...change.kinds].filter((kind) => stream.kinds.has(kind)))
    }
  }

  listings.onChange((hash) => {
    if (streams.size > 0) review([...streams].filter(({ place }) => definitionsOf(place).some((definition) => definition.hash === hash)))
  })

  /** @returns whether all that the stream was promised is still where it was */
  function holds ({ legs, place, view }: Stream): boolean {
    const members = definitionsOf(place)
    return [...legs].every(([name, { leg, names }]) =>
      members.some(({ hash }) => hash === leg.definition.hash) &&
      leg.granted.uris.every((uri) => names.uris.get(uri)?.every((shown) => {
        const route = view.resource(shown)
        return route?.upstream === name && route.name === uri
      })))
  }

  async function serve (call: ModernCall, wanted: Wanted): Promise<void> {
    await floor.settled(call)
    // A reload may have come meanwhile.
    const place = nowAt(call)
    if (closed) throw stopping()
    if (place === undefined) throw new GatewayError('not_found', 'The endpoint is no longer configured.')
    if (call.signal.aborted) return
    const over = Promise.withResolvers<void>()
    const view = floor.catalog({ ...call, ...place })
    const kinds = new Set([...wanted.kinds].filter((kind) => has(view.capabilities, [kind, 'listChanged'])))
    const stream: Stream = { call, place, view, kinds, legs: new Map(), outbox: createOutbox((notification) => call.client.notify(notification), clock), end: over.resolve }
    call.signal.addEventListener('abort', stream.end, { once: true })
    streams.add(stream)
    use.opened(place)
    try {
      for (const [name, names] of routesOf(view, wanted, (id) => floor.taskIds.open({ ...call, ...place }, id))) {
        const definition = place.tenant.upstreams.get(name)
        if (definition !== undefined && mayServe(definition)) connect(stream, definition, names)
      }
      if (stream.legs.size > 0) await waitFor([...stream.legs.values()].map(({ leg }) => leg.begun), patienceOf(place), over.promise)
      if (call.signal.aborted) return
      stream.outbox.begin({ method: 'notifications/subscriptions/acknowledged', params: { notifications: filterOf(grantedOf(stream, kinds, wanted)) } })
      await over.promise
      if (!call.signal.aborted) stream.outbox.finish()
    } finally {
      call.signal.removeEventListener('abort', stream.end)
      streams.delete(stream)
      stream.outbox.end()
      for (const { leg } of stream.legs.values()) leg.end()
      if (streams.size === 0) use.stop()
    }
  }

  function waitFor (begun: ReadonlyArray<Promise<void>>, ms: number, over: Promise<void>): Promise<unknown> {
    let timer: { close (): unknown } | undefined
    const late = new Promise<void>((resolve) => { timer = clock.timer(ms, resolve) })
    return Promise.race([Promise.all(begun), late, over]).finally(() => timer?.close())
  }

  return {
    listen (whole) {
      // Read at once, and let go: the stream may be open for hours.
      const [call, filter] = [bare(whole), readOrder(whole)]
      return observe(call, { clock, log, route: () => undefined }, async () => {
        const wanted = await filter
        if (closed) throw stopping()
        const leave = seats.take(call.principal, wanted, call.client.capabilities)
        await serve(call, wanted).finally(leave)
        return { resultType: 'complete' }
      })
    },
    retain () {
      const broken: Stream[] = []
      for (const stream of streams) {
        const place = nowAt(stream.call)
        if (place === undefined) broken.push(stream)
        else stream.place = place
      }
      review([...streams].filter((stream) => !broken.includes(stream)))
      for (const stream of streams) if (broken.includes(stream) || !holds(stream)) stream.end()
    },
    close () {
      closed = true
      for (const stream of streams) stream.end()
    }
  }
}

const readOrder = async ({ request, client }: ModernCall): Promise<Wanted> => readFilter(request.params, client.capabilities)

const stopping = (): GatewayError => new GatewayError('shutting_down', 'The gateway is stopping. Retry; another process will answer.')
