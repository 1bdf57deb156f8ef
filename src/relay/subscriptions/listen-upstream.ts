// The part of a client's listen stream that one upstream serves: a listen request there, opened again when it breaks.
// What it is granted at first is all that it ever gets (2026-07-28 basic/patterns/subscriptions: a filter does not
// change).

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { isObject, type JsonObject, type Notification } from '../../protocol/messages.ts'
import { hasCapability, tasksExtension } from '../../protocol/methods.ts'
import { noClient, type Client, type Upstream } from '../../protocol/seams.ts'
import { backoffMs, createDelay, timeoutSignal } from '../../time/clock.ts'
import { quotaKeyOf, type ModernCall, type Runtime } from '../call/call.ts'
import { declaredForCaller } from '../client/declared-capabilities.ts'
import type { LeasedConnection } from '../connections/caller-connections.ts'
import { acknowledgedFilter, notificationFilterOf, type UpstreamFilter } from './listen-filter.ts'
import { coversUri } from './subscription-index.ts'

export interface UpstreamPart {
  readonly definition: UpstreamDefinition
  /** Resolves when the upstream has acknowledged, or will not. Never rejects. */
  readonly settled: Promise<void>
  /** The filter that the upstream has acknowledged; empty until then. */
  readonly granted: UpstreamFilter
  end(): void
}

/** The listen stream of a client, which parts tell what their upstreams say. */
export interface ListenTarget {
  /** The client's call, where its endpoint stands now. */
  readonly call: ModernCall
  /** @param below none of the URIs that the upstream granted, but a part of one of them */
  updated(uri: string, below: boolean, meta: JsonObject | undefined): void
  /** `params` of `notifications/tasks` about one of the tasks that the upstream granted. */
  taskChanged(taskId: string, params: JsonObject): void
}

const none: UpstreamFilter = { uris: [], taskIds: [] }
/** A stream that lasted this long has worked: the back-off starts again. */
const provenMs = 5_000
const readTaskMs = 30_000
const retryDelay = { firstMs: 500, maxMs: 60_000 }
/** Characters of JSON in the `_meta` of an update; the rest of it is a URI. */
const maxMeta = 4_096

/** @param connect undefined: the only connection that could serve the part is gone */
export function openUpstreamPart(
  definition: UpstreamDefinition,
  asked: UpstreamFilter,
  target: ListenTarget,
  connect: () => Promise<LeasedConnection | undefined>,
  { clock, random, log }: Pick<Runtime, 'clock' | 'random' | 'log'>
): UpstreamPart {
  const { call } = target
  // An upstream speaks of tasks only to clients that declare them.
  const capabilities = declaredForCaller(call, 'modern')
  const quotaKey = quotaKeyOf(call.principal)
  const stop = new AbortController()
  const settled = Promise.withResolvers<void>()
  let granted: UpstreamFilter | undefined
  let grantedUris: ReadonlySet<string> = new Set()
  let grantedTasks: ReadonlySet<string> = new Set()
  let failures = 0
  const retry = createDelay(clock)
  const client = (notify: Client['notify']): Client => ({
    era: 'modern',
    capabilities,
    quotaKey,
    ask: noClient.ask,
    notify
  })
  const who = { upstream: definition.name, tenant: definition.tenant }

  /** The client of one stream at the upstream. What comes before its acknowledgment is ignored. */
  function listener(upstream: Upstream, filter: UpstreamFilter, signal: AbortSignal, acked: () => void): Client {
    let open = false
    return client(({ method, params = {} }: Notification) => {
      if (signal.aborted) return
      if (open) {
        if (method === 'notifications/resources/updated') updated(params)
        else if (method === 'notifications/tasks') task(params)
      } else if (method === 'notifications/subscriptions/acknowledged') {
        open = true
        acked()
        if (granted !== undefined) return void catchUp(upstream, granted, signal)
        granted = acknowledgedFilter(filter, params)
        grantedUris = new Set(granted.uris)
        grantedTasks = new Set(granted.taskIds)
        settled.resolve()
        if (isEmpty(granted)) end()
      }
    })
  }

  function updated({ uri, _meta }: JsonObject): void {
    if (typeof uri !== 'string') return
    const below = !grantedUris.has(uri)
    if (below && granted?.uris.some((each) => coversUri(each, uri)) !== true) return
    target.updated(uri, below, boundedMeta(_meta))
  }

  function task(params: JsonObject): void {
    const { taskId } = params
    if (typeof taskId === 'string' && grantedTasks.has(taskId)) target.taskChanged(taskId, params)
  }

  /** After a break: nobody knows what was missed, so each resource counts as updated and each task is read. */
  async function catchUp(upstream: Upstream, { uris, taskIds }: UpstreamFilter, signal: AbortSignal): Promise<void> {
    for (const uri of uris) target.updated(uri, false, undefined)
    for (const taskId of taskIds) {
      try {
        const {
          resultType: _type,
          _meta,
          ...state
        } = await upstream.request(
          { method: 'tasks/get', params: { taskId } },
          client(() => {}),
          AbortSignal.any([signal, timeoutSignal(readTaskMs)])
        )
        if (signal.aborted) return
        target.taskChanged(taskId, { ...state, taskId })
      } catch (err) {
        if (signal.aborted) return
        log.debug({ err, ...who }, 'the state of a task could not be had after a break; its client can ask')
      }
    }
  }

  async function listen(): Promise<void> {
    let since = Infinity
    const stream = new AbortController()
    let connection: LeasedConnection | undefined
    try {
      connection = await connect()
      if (connection === undefined) return end()
      const { upstream } = connection
      if (stop.signal.aborted) return
      const filter = granted ?? offered(upstream, asked)
      if (isEmpty(filter)) return end()
      const params = { notifications: notificationFilterOf({ kinds: new Set(), ...filter }) }
      await upstream.request(
        { method: 'subscriptions/listen', params },
        listener(upstream, filter, AbortSignal.any([stop.signal, stream.signal]), () => {
          since = clock.now()
        }),
        stop.signal
      )
      if (stop.signal.aborted) return
      log.debug(who, 'an upstream ended a listen stream')
    } catch (err) {
      if (stop.signal.aborted) return
      log[granted === undefined ? 'info' : 'debug'](
        { err, ...who },
        'a listen stream of an upstream broke or was refused'
      )
    } finally {
      // A catch-up that still runs is repeated after the next start.
      stream.abort()
      connection?.release()
    }
    // What the client was not promised is not retried.
    if (granted === undefined) return end()
    if (clock.now() - since >= provenMs) failures = 0
    retry.start(backoffMs(failures++, { ...retryDelay, random }), () => void listen())
  }

  function end(): void {
    settled.resolve()
    retry.close()
    stop.abort()
  }

  void listen()
  return {
    definition,
    settled: settled.promise,
    get granted() {
      return granted ?? none
    },
    end
  }
}

/** `_meta` of an update as it is passed on; left out where it is too long. */
export const boundedMeta = (meta: unknown): JsonObject | undefined =>
  isObject(meta) && JSON.stringify(meta).length <= maxMeta ? meta : undefined

const isEmpty = ({ uris, taskIds }: UpstreamFilter): boolean => uris.length === 0 && taskIds.length === 0

/** Only what the server declares: a legacy one has no such streams at all. */
function offered({ era, capabilities }: Upstream, { uris, taskIds }: UpstreamFilter): UpstreamFilter {
  if (era !== 'modern') return none
  return {
    uris: hasCapability(capabilities, ['resources', 'subscribe']) ? uris : [],
    taskIds: hasCapability(capabilities, ['extensions', tasksExtension]) ? taskIds : []
  }
}
