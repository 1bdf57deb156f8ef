// Tasks of 2025-11-25 on their way through (basic/utilities/tasks): ids, which both sides see only sealed, and what this process remembers
// of tasks that run: who has to hear of them, and which connections they keep open.

import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError, RpcError } from '../protocol/errors.ts'
import type { UpstreamName } from '../protocol/ids.ts'
import { isObject } from '../protocol/messages.ts'
import type { Notification, Request, ServerRequest } from '../protocol/messages.ts'
import type { Upstream } from '../protocol/seams.ts'
import { ended, readTask, withCreatedTask, withRelatedTask, withTaskId, withTaskList } from '../protocol/tasks.ts'
import type { LiveSession, LiveSessions } from '../session/live.ts'
import { tasksKept, tasksKey, tasksTtlMs } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'
import { createConnectionNames } from './connection-names.ts'
import { isKept } from './kept-tasks.ts'

/** A connection and those after it, as the pool knows them. */
export interface Source {
  readonly definition: UpstreamDefinition
  readonly scope: string
}

export interface Tasks {
  /** A task id, whoever minted it, as the client knows it. */
  toClient (live: LiveSession, source: Source): (id: string) => string
  /**
   * A request of a client with task ids as the upstream knows them, which is connected now.
   * @throws GatewayError invalid_params where it is about a task of another process
   */
  outgoing (live: LiveSession, source: Source, request: Request): Request
  /** The upstream of a task. @returns undefined for an id that this principal was not given at this endpoint */
  upstreamOf (live: LiveSession, publicId: string): UpstreamName | undefined
  /** The connection that is in use now. */
  opened (definition: UpstreamDefinition, scope: string, upstream: Upstream): void
  /** The state of a task, as a result or a notification told it, with the upstream's own id. */
  noted (live: LiveSession, source: Source, task: unknown): void
  /** Remembers whose task it is, for `tasks/list`. */
  created (live: LiveSession, source: Source, id: string): Promise<void>
  /** The tasks that the principal has created at the endpoint. @throws GatewayError unavailable */
  createdBy (live: LiveSession): Promise<(source: Source, id: string) => boolean>
  /** Binds a cursor of `tasks/list` to whom it is given. */
  sealCursor (live: LiveSession, text: string): string
  openCursor (live: LiveSession, cursor: string): string | undefined
  /** `notifications/tasks/status` of a connection that several sessions use: those that know the task. */
  sessionsOf (source: Source, id: string): LiveSession[]
  /** A request of an upstream to the client, and the client's answer back. @throws RpcError -32602 where it names a task of somebody else */
  asked (live: LiveSession, source: Source, request: ServerRequest, ask: (request: ServerRequest) => Promise<unknown>): Promise<unknown>
  /** A notification of the client about a task that it hosts. @returns undefined where it knows none of the id */
  hostedFor (live: LiveSession, notification: Notification): { readonly upstream: UpstreamName, readonly notification: Notification } | undefined
  drop (sessionKey: string): void
  close (): void
}

export interface TasksOptions {
  readonly sealer: Sealer
  readonly store: Store
  readonly live: LiveSessions
  readonly randomBytes: (size: number) => Buffer
  readonly clock: { now (): number, timer (ms: number, run: () => void): { close (): unknown, unref (): unknown } }
  /** The connections of a scope are in use. */
  readonly touch: (scope: string) => void
  readonly log: Log
}

/** The connection: where that matters. */
type Opened = readonly [upstream: UpstreamName, id: string, connection?: string]

interface Known {
  readonly key: string
  readonly source: Source
  readonly id: string
  readonly sessions: Set<string>
  running: boolean
  /** When the server may have forgotten it; epoch ms. */
  until: number
}

const maxPerSession = 1_000
const longestTouchMs = 5_000

export function createTasks ({ sealer, store, live: sessions, randomBytes, clock, touch, log }: TasksOptions): Tasks {
  const names = createConnectionNames(() => randomBytes(16).toString('base64url'))
  const known = new Map<string, Known>()
  const bySession = new Map<string, Set<Known>>()
  // Session -> id of a task that its client hosts -> the upstream that asked for it.
  const hosted = new Map<string, Map<string, UpstreamName>>()
  let toucher: { close (): unknown } | undefined

  const placeOf = ({ definition, scope }: Source): string => `${definition.hash}\n${scope}`
  // Many a server numbers its tasks, and begins anew with each process. One behind a URL gives its ids to whoever asks, so they are good for all of its connections.
  const connectionOf = (source: Source, id: string): string | undefined => source.definition.type === 'stdio' && !isKept(id) ? names.newest(placeOf(source)) : undefined
  const nameOf = (source: Source, id: string): string => JSON.stringify([source.definition.name, id, connectionOf(source, id)].filter((part) => part !== undefined))
  const keyOf = (source: Source, id: string): string => JSON.stringify([placeOf(source), nameOf(source, id)])
  const bindingOf = ({ endpoint, session: { record: { owner } } }: LiveSession): string[] => [owner.tenant, endpoint, owner.issuer, owner.subject, owner.clientId]
  const createdKey = ({ endpoint, session: { record: { owner } } }: LiveSession): string => tasksKey(owner.tenant, endpoint, owner.issuer, owner.subject, owner.clientId)

  function open (live: LiveSession, publicId: string): Opened | undefined {
    const opened = sealer.open('task', bindingOf(live), publicId)
    return opened === undefined ? undefined : JSON.parse(opened) as Opened
  }

  // Ids of the client's own tasks: another upstream could guess them, and would be answered in the name of the first.
  const sealHosted = (live: LiveSession, upstream: UpstreamName, id: string): string => sealer.seal('client-task', [live.key, upstream], id)
  const openHosted = (live: LiveSession, upstream: UpstreamName, id: string): string | undefined => sealer.open('client-task', [live.key, upstream], id)

  const toClient = (live: LiveSession, source: Source) => (id: string): string =>
    openHosted(live, source.definition.name, id) ?? sealer.seal('task', bindingOf(live), nameOf(source, id))
  function openAt (live: LiveSession, source: Source, publicId: string): string | undefined {
    const [upstream, id, connection] = open(live, publicId) ?? []
    return id !== undefined && upstream === source.definition.name && connection === connectionOf(source, id) ? id : undefined
  }
  const toUpstream = (live: LiveSession, source: Source) => (id: string): string => openAt(live, source, id) ?? sealHosted(live, source.definition.name, id)

  function forget (task: Known): void {
    known.delete(task.key)
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
    upstreamOf: (live, publicId) => open(live, publicId)?.[0],

    outgoing (live, source, { method, params }) {
      const related = withRelatedTask(params, toUpstream(live, source))
      const about = related === undefined || !method.startsWith('tasks/') ? related : withTaskId(related, (publicId) => {
        const id = openAt(live, source, publicId)
        if (id === undefined) throw elsewhere(source.definition)
        return id
      })
      return about === undefined ? { method } : { method, params: about }
    },

    opened: (definition, scope, upstream) => void names.nameOf({ upstream, scope: placeOf({ definition, scope }) }),

    noted (live, source, value) {
      const state = readTask(value)
      if (state === undefined || sessions.get(live.key) === undefined) return
      const key = keyOf(source, state.taskId)
      let task = known.get(key)
      if (task === undefined) known.set(key, task = { key, source, id: state.taskId, sessions: new Set(), running: false, until: Infinity })
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

    async created (live, source, id) {
      await store.append(createdKey(live), nameOf(source, id), { ttlMs: tasksTtlMs, keep: tasksKept }).catch((err: unknown) =>
        log.warn({ err, upstream: source.definition.name }, 'a task could not be written down; tasks/list will leave it out'))
    },

    async createdBy (live) {
      const entries = new Set(await store.entries(createdKey(live)))
      return (source, id) => entries.has(nameOf(source, id))
    },

    sealCursor: (live, text) => sealer.seal('tasks-cursor', bindingOf(live), text),
    openCursor: (live, cursor) => sealer.open('tasks-cursor', bindingOf(live), cursor),

    sessionsOf: (source, id) => [...known.get(keyOf(source, id))?.sessions ?? []].flatMap((key) => sessions.get(key) ?? []),

    async asked (live, source, request, ask) {
      const { method, params } = request
      const { name: upstream } = source.definition
      const inward = toUpstream(live, source)
      let outgoing = withRelatedTask(params, toClient(live, source))
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

const elsewhere = ({ name }: UpstreamDefinition): GatewayError => new GatewayError('invalid_params', `The task is none of the process of upstream ${name} that serves this session: that one is gone, or serves another session. Whether it took effect is unknown: find out before you start it again.`, { data: { outcome: 'unknown', upstream: name } })
