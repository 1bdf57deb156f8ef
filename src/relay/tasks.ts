// Tasks of 2025-11-25 on their way through (basic/utilities/tasks): ids, which both sides see only sealed, and what this process remembers
// of tasks that run: who has to hear of them, and which connections they keep open.

import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { RpcError } from '../protocol/errors.ts'
import type { UpstreamName } from '../protocol/ids.ts'
import { isObject } from '../protocol/messages.ts'
import type { Notification, ServerRequest } from '../protocol/messages.ts'
import { ended, readTask, withCreatedTask, withRelatedTask, withTaskId, withTaskList } from '../protocol/tasks.ts'
import type { LiveSession, LiveSessions } from '../session/live.ts'
import { tasksKept, tasksKey, tasksTtlMs } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'

/** A connection and those after it, as the pool knows them. */
export interface Source {
  readonly definition: UpstreamDefinition
  readonly scope: string
}

export interface Tasks {
  /** A task id, whoever minted it, as the client knows it. */
  toClient (live: LiveSession, upstream: UpstreamName): (id: string) => string
  /** A task id, whoever minted it, as the upstream knows it. */
  toUpstream (live: LiveSession, upstream: UpstreamName): (id: string) => string
  /** @returns undefined for an id that this principal was not given at this endpoint */
  open (live: LiveSession, publicId: string): { readonly upstream: UpstreamName, readonly id: string } | undefined
  /** The state of a task, as a result or a notification told it, with the upstream's own id. */
  noted (live: LiveSession, source: Source, task: unknown): void
  /** Remembers whose task it is, for `tasks/list`. */
  created (live: LiveSession, upstream: UpstreamName, id: string): Promise<void>
  /** The tasks that the principal has created at the endpoint. @throws GatewayError unavailable */
  createdBy (live: LiveSession): Promise<(upstream: UpstreamName, id: string) => boolean>
  /** Binds a cursor of `tasks/list` to whom it is given. */
  sealCursor (live: LiveSession, text: string): string
  openCursor (live: LiveSession, cursor: string): string | undefined
  /** `notifications/tasks/status` of a connection that several sessions use: those that know the task. */
  sessionsOf (source: Source, id: string): LiveSession[]
  /** A request of an upstream to the client, and the client's answer back. @throws RpcError -32602 where it names a task of somebody else */
  asked (live: LiveSession, upstream: UpstreamName, request: ServerRequest, ask: (request: ServerRequest) => Promise<unknown>): Promise<unknown>
  /** A notification of the client about a task that it hosts. @returns undefined where it knows none of the id */
  hostedFor (live: LiveSession, notification: Notification): { readonly upstream: UpstreamName, readonly notification: Notification } | undefined
  drop (sessionKey: string): void
  close (): void
}

export interface TasksOptions {
  readonly sealer: Sealer
  readonly store: Store
  readonly live: LiveSessions
  readonly clock: { now (): number, timer (ms: number, run: () => void): { close (): unknown, unref (): unknown } }
  /** The connections of a scope are in use. */
  readonly touch: (scope: string) => void
  readonly log: Log
}

interface Known {
  readonly source: Source
  readonly id: string
  readonly sessions: Set<string>
  running: boolean
  /** When the server may have forgotten it; epoch ms. */
  until: number
}

const maxPerSession = 1_000
const longestTouchMs = 5_000

export function createTasks ({ sealer, store, live: sessions, clock, touch, log }: TasksOptions): Tasks {
  const known = new Map<string, Known>()
  const bySession = new Map<string, Set<Known>>()
  // Session -> id of a task that its client hosts -> the upstream that asked for it.
  const hosted = new Map<string, Map<string, UpstreamName>>()
  let toucher: { close (): unknown } | undefined

  const keyOf = ({ definition, scope }: Source, id: string): string => JSON.stringify([definition.hash, scope, id])
  const bindingOf = ({ endpoint, session: { record: { owner } } }: LiveSession): string[] => [owner.tenant, endpoint, owner.issuer, owner.subject, owner.clientId]
  const createdKey = ({ endpoint, session: { record: { owner } } }: LiveSession): string => tasksKey(owner.tenant, endpoint, owner.issuer, owner.subject, owner.clientId)

  function open (live: LiveSession, publicId: string): { upstream: UpstreamName, id: string } | undefined {
    const opened = sealer.open('task', bindingOf(live), publicId)
    if (opened === undefined) return undefined
    const [upstream, id] = JSON.parse(opened) as [UpstreamName, string]
    return { upstream, id }
  }

  // Ids of the client's own tasks: another upstream could guess them, and would be answered in the name of the first.
  const sealHosted = (live: LiveSession, upstream: UpstreamName, id: string): string => sealer.seal('client-task', [live.key, upstream], id)
  const openHosted = (live: LiveSession, upstream: UpstreamName, id: string): string | undefined => sealer.open('client-task', [live.key, upstream], id)

  const toClient = (live: LiveSession, upstream: UpstreamName) => (id: string): string =>
    openHosted(live, upstream, id) ?? sealer.seal('task', bindingOf(live), JSON.stringify([upstream, id]))
  const toUpstream = (live: LiveSession, upstream: UpstreamName) => (id: string): string => {
    const opened = open(live, id)
    return opened?.upstream === upstream ? opened.id : sealHosted(live, upstream, id)
  }

  function forget (task: Known): void {
    known.delete(keyOf(task.source, task.id))
    for (const key of task.sessions) {
      const own = bySession.get(key)
      own?.delete(task)
      if (own?.size === 0) bySession.delete(key)
    }
  }

  /** Nobody may call for an hour while a task runs: its connection is in use all the same. */
  function keepOpen (): void {
    toucher?.close()
    toucher = undefined
    const now = clock.now()
    let every = Infinity
    for (const task of known.values()) {
      if (task.until < now) forget(task)
      else if (task.running) {
        touch(task.source.scope)
        every = Math.min(every, longestTouchMs, task.source.definition.idleMs / 3)
      }
    }
    if (every === Infinity) return
    const timer = clock.timer(every, keepOpen)
    timer.unref()
    toucher = timer
  }

  function remember (live: LiveSession, clientId: string, upstream: UpstreamName): void {
    const own = hosted.get(live.key) ?? new Map<string, UpstreamName>()
    hosted.set(live.key, own.set(clientId, upstream))
    const [oldest] = own.keys()
    if (own.size > maxPerSession && oldest !== undefined) own.delete(oldest)
  }

  return {
    toClient,
    toUpstream,
    open,

    noted (live, source, value) {
      const state = readTask(value)
      if (state === undefined || sessions.get(live.key) === undefined) return
      const key = keyOf(source, state.taskId)
      let task = known.get(key)
      if (task === undefined) known.set(key, task = { source, id: state.taskId, sessions: new Set(), running: false, until: Infinity })
      task.sessions.add(live.key)
      const own = bySession.get(live.key) ?? new Set<Known>()
      bySession.set(live.key, own.add(task))
      const [oldest] = own
      if (own.size > maxPerSession && oldest !== undefined) forget(oldest)
      // Its time runs from its creation, which is at most as late as this.
      if (state.ttl !== undefined) task.until = Math.min(task.until, clock.now() + state.ttl)
      const started = !task.running && !ended(state)
      task.running = !ended(state)
      if (started) keepOpen()
    },

    async created (live, upstream, id) {
      await store.append(createdKey(live), JSON.stringify([upstream, id]), { ttlMs: tasksTtlMs, keep: tasksKept }).catch((err: unknown) =>
        log.warn({ err, upstream }, 'a task could not be written down; tasks/list will leave it out'))
    },

    async createdBy (live) {
      const entries = new Set(await store.entries(createdKey(live)))
      return (upstream, id) => entries.has(JSON.stringify([upstream, id]))
    },

    sealCursor: (live, text) => sealer.seal('tasks-cursor', bindingOf(live), text),
    openCursor: (live, cursor) => sealer.open('tasks-cursor', bindingOf(live), cursor),

    sessionsOf: (source, id) => [...known.get(keyOf(source, id))?.sessions ?? []].flatMap((key) => sessions.get(key) ?? []),

    async asked (live, upstream, request, ask) {
      const { method, params } = request
      const inward = toUpstream(live, upstream)
      let outgoing = withRelatedTask(params, toClient(live, upstream))
      if (method.startsWith('tasks/') && method !== 'tasks/list') {
        outgoing = withTaskId(outgoing ?? {}, (id) => {
          const own = openHosted(live, upstream, id)
          if (own === undefined) throw new RpcError({ code: -32602, message: 'Unknown task: the client hosts none of this id for you.' })
          return own
        })
      }
      const answer = await ask(outgoing === undefined ? { method } : { method, params: outgoing })
      if (!isObject(answer)) return answer
      const related = withRelatedTask(answer, inward)
      const seal = (id: string): string => sealHosted(live, upstream, id)
      if (method === 'tasks/get' || method === 'tasks/cancel') return withTaskId(related, seal)
      if (method === 'tasks/list') return withTaskList(related, (id) => hosted.get(live.key)?.get(id) === upstream, seal)
      if (!isObject(params?.['task'])) return related
      const task = readTask(related['task'])
      if (task !== undefined) remember(live, task.taskId, upstream)
      return withCreatedTask(related, seal)
    },

    hostedFor (live, { method, params }) {
      const id = params?.['taskId']
      const upstream = typeof id === 'string' ? hosted.get(live.key)?.get(id) : undefined
      if (upstream === undefined || params === undefined) return undefined
      return { upstream, notification: { method, params: withTaskId(params, (own) => sealHosted(live, upstream, own)) } }
    },

    drop (sessionKey) {
      hosted.delete(sessionKey)
      for (const task of [...bySession.get(sessionKey) ?? []]) {
        task.sessions.delete(sessionKey)
        if (task.sessions.size === 0) forget(task)
      }
      bySession.delete(sessionKey)
    },

    close () {
      toucher?.close()
    }
  }
}
