// The part of a client's listen stream that one upstream serves: a listen request there, opened again when it breaks. What it is
// granted at first is all that it ever gets (2026-07-28 basic/patterns/subscriptions: a filter does not change).

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { has, tasksExtension } from '../../protocol/merge.ts'
import { isObject } from '../../protocol/messages.ts'
import type { ClientCapabilities, JsonObject, Notification } from '../../protocol/messages.ts'
import type { Client, Upstream } from '../../protocol/seams.ts'
import { nobody } from '../../upstream/exchange.ts'
import type { PaceClock } from '../pace.ts'
import { covers } from '../subscriptions.ts'
import type { Connection } from './connections.ts'
import { acknowledged, filterOf } from './listen-filter.ts'
import type { Wanted } from './listen-filter.ts'

/** URIs and task ids as the upstream knows them. */
export type Asked = Pick<Wanted, 'uris' | 'taskIds'>

export interface Leg {
  readonly definition: UpstreamDefinition
  /** Resolves when the upstream has acknowledged, or will not. Never rejects. */
  readonly begun: Promise<void>
  /** What the upstream agreed to; empty until it has. */
  readonly granted: Asked
  end (): void
}

export interface LegOptions {
  readonly definition: UpstreamDefinition
  readonly asked: Asked
  /** Of the client: an upstream speaks of tasks only to those that declare them. */
  readonly capabilities: ClientCapabilities
  /** The connection to listen on. */
  readonly watch: () => Promise<Connection>
  /** Of `notifications/resources/updated`. @param below it is none of the URIs that the upstream granted, but belongs to one of them */
  readonly onUpdated: (uri: string, below: boolean, meta: JsonObject | undefined) => void
  /** `params` of `notifications/tasks` about one of the tasks that the upstream granted. */
  readonly onTask: (taskId: string, params: JsonObject) => void
  readonly clock: PaceClock
  /** Between 0 and 1. */
  readonly random: () => number
  readonly log: Log
}

const none: Asked = { uris: [], taskIds: [] }
const firstRetryMs = 500
const longestRetryMs = 60_000
/** A stream that breaks younger than this never really worked. */
const provenMs = 5_000
const silentMs = 30_000
/** Characters of JSON in the `_meta` of an update; the rest of it is a URI. */
const maxMeta = 4_096

export function openLeg ({ definition, asked, capabilities, watch, onUpdated, onTask, clock, random, log }: LegOptions): Leg {
  const stop = new AbortController()
  const begun = Promise.withResolvers<void>()
  let granted: Asked | undefined
  let grantedUris: ReadonlySet<string> = new Set()
  let grantedTasks: ReadonlySet<string> = new Set()
  let failures = 0
  let retry: { close (): unknown } | undefined
  const client = (notify: Client['notify']): Client => ({ era: 'modern', capabilities, ask: nobody.ask, notify })
  const who = { upstream: definition.name, tenant: definition.tenant }

  /** Whoever listens to one stream of the upstream: the acknowledgment comes first, and nothing counts before it. */
  function listener (upstream: Upstream, filter: Asked, signal: AbortSignal, acked: () => void): Client {
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
        granted = acknowledged(filter, params)
        grantedUris = new Set(granted.uris)
        grantedTasks = new Set(granted.taskIds)
        begun.resolve()
        if (isEmpty(granted)) end()
      }
    })
  }

  function updated ({ uri, _meta }: JsonObject): void {
    if (typeof uri !== 'string') return
    const below = !grantedUris.has(uri)
    if (below && granted?.uris.some((each) => covers(each, uri)) !== true) return
    onUpdated(uri, below, boundedMeta(_meta))
  }

  function task (params: JsonObject): void {
    const { taskId } = params
    if (typeof taskId === 'string' && grantedTasks.has(taskId)) onTask(taskId, params)
  }

  /** It was broken and is whole again, until the signal says that it is not. What changed in between nobody knows: each resource may have, and a task can be asked. */
  async function catchUp (upstream: Upstream, { uris, taskIds }: Asked, signal: AbortSignal): Promise<void> {
    for (const uri of uris) onUpdated(uri, false, undefined)
    for (const taskId of taskIds) {
      try {
        const { resultType: _type, _meta, ...state } = await upstream.request({ method: 'tasks/get', params: { taskId } }, client(() => {}), AbortSignal.any([signal, AbortSignal.timeout(silentMs)]))
        if (signal.aborted) return
        onTask(taskId, { ...state, taskId })
      } catch (err) {
        if (signal.aborted) return
        log.debug({ err, ...who }, 'the state of a task could not be had after a break; its client can ask')
      }
    }
  }

  async function listen (): Promise<void> {
    let since = Infinity
    const stream = new AbortController()
    let connection: Connection | undefined
    try {
      connection = await watch()
      const { upstream } = connection
      if (stop.signal.aborted) return
      const filter = granted ?? offered(upstream, asked)
      if (isEmpty(filter)) return end()
      const params = { notifications: filterOf({ kinds: new Set(), ...filter }) }
      await upstream.request({ method: 'subscriptions/listen', params }, listener(upstream, filter, AbortSignal.any([stop.signal, stream.signal]), () => { since = clock.now() }), stop.signal)
      if (stop.signal.aborted) return
      log.debug(who, 'an upstream ended a listen stream')
    } catch (err) {
      if (stop.signal.aborted) return
      log[granted === undefined ? 'info' : 'debug']({ err, ...who }, 'a listen stream of an upstream broke or was refused')
    } finally {
      // What is still asked after the last break is asked again after this one.
      stream.abort()
      connection?.release()
    }
    // What was never promised is not run after: the client can ask again.
    if (granted === undefined) return end()
    if (clock.now() - since >= provenMs) failures = 0
    const delay = Math.min(longestRetryMs, firstRetryMs * 2 ** Math.min(failures++, 10))
    // All streams of an upstream break at the same moment, and must not come back at the same moment.
    const timer = clock.timer(Math.round(delay * (1 + random() * 0.5)), () => { void listen() })
    timer.unref()
    retry = timer
  }

  function end (): void {
    begun.resolve()
    retry?.close()
    stop.abort()
  }

  void listen()
  return {
    definition,
    begun: begun.promise,
    get granted () { return granted ?? none },
    end
  }
}

/** `_meta` of an update as it is passed on: what is too long for a remark is left out. */
export const boundedMeta = (meta: unknown): JsonObject | undefined => isObject(meta) && JSON.stringify(meta).length <= maxMeta ? meta : undefined

const isEmpty = ({ uris, taskIds }: Asked): boolean => uris.length === 0 && taskIds.length === 0

/** Only what the server declares: a legacy one has no such streams at all. */
function offered ({ era, capabilities }: Upstream, { uris, taskIds }: Asked): Asked {
  if (era !== 'modern') return none
  return {
    uris: has(capabilities, ['resources', 'subscribe']) ? uris : [],
    taskIds: has(capabilities, ['extensions', tasksExtension]) ? taskIds : []
  }
}
