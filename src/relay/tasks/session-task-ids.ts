// Ids of tasks of 2025-11-25 (basic/utilities/tasks) in messages between a session and its upstreams. Each side sees
// those of the other only sealed, so that nobody can use the id of a task that was not told to it.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { bytesPerChar } from '../../limits/memory.ts'
import {
  GatewayError,
  RpcError,
  isObject,
  rpcCodes,
  type Notification,
  type Request,
  type ServerRequest,
  type UpstreamName
} from '../../protocol/messages.ts'
import type { Upstream } from '../../protocol/seams.ts'
import { mapRelatedTask, readTask, withCreatedTask, withTaskId, withTaskList } from '../../protocol/translate/tasks.ts'
import type { LiveSession, LiveSessions } from '../../session/live-sessions.ts'
import type { Sealer } from '../../store/seal.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { sessionBindingOf } from '../call/call.ts'
import { isStoredTaskId } from './modern-for-session.ts'

/** The connections of a scope to one upstream, one after the other. */
export interface UpstreamScope {
  readonly definition: UpstreamDefinition
  readonly scope: string
  /** The one that is meant, where it is at hand; else the newest that is open. */
  readonly upstream?: Upstream
}

/** Bytes of what a session remembers of a task, beside its ids. */
const taskBytes = 512

const bytesOf = (ids: readonly string[]): number => ids.reduce((sum, id) => sum + id.length * bytesPerChar, taskBytes)

/** Counts a task that a session remembers. @returns false where there is no memory for it */
export const takeFor = ({ memory }: LiveSession, ...ids: readonly string[]): boolean => memory.take(bytesOf(ids))

/** It forgets one. @param session undefined: it has ended, and counts for nothing any more */
export const giveBack = (session: LiveSession | undefined, ...ids: readonly string[]): void =>
  session?.memory.set(session.memory.bytes - bytesOf(ids))

/** Tasks of a session's client that are remembered as hosted for upstreams. */
const maxHosted = 1_000

export function createSessionTaskIds(sealer: Sealer, pool: Pick<Pool, 'peek'>, sessions: Pick<LiveSessions, 'get'>) {
  // Many a server numbers its tasks, and each process of it begins anew. A server behind a URL knows its tasks on all
  // connections.
  const connectionOf = ({ definition, scope, upstream }: UpstreamScope, id: string): string | undefined =>
    definition.type === 'stdio' && !isStoredTaskId(id) ? (upstream ?? pool.peek(definition, scope))?.id : undefined
  /**
   * Returns a name that is unique among the tasks of a tenant: with the connection, where that alone knows the task.
   */
  const nameOf = (source: UpstreamScope, id: string): string => {
    const connection = connectionOf(source, id)
    return JSON.stringify([source.definition.name, id, ...(connection === undefined ? [] : [connection])])
  }

  function open(session: LiveSession, publicId: string): [upstream?: UpstreamName, id?: string, connection?: string] {
    const opened = sealer.open('task', sessionBindingOf(session), publicId)
    return opened === undefined ? [] : JSON.parse(opened)
  }

  function openAt(session: LiveSession, source: UpstreamScope, publicId: string): string | undefined {
    const [upstream, id, connection] = open(session, publicId)
    if (id === undefined || upstream !== source.definition.name) return undefined
    return connection === connectionOf(source, id) ? id : undefined
  }

  // Ids of tasks that the client hosts: another upstream could guess them.
  const sealHosted = (session: LiveSession, upstream: UpstreamName, id: string): string =>
    sealer.seal('client-task', [session.key, upstream], id)
  const openHosted = (session: LiveSession, upstream: UpstreamName, id: string): string | undefined =>
    sealer.open('client-task', [session.key, upstream], id)
  const toUpstream = (session: LiveSession, source: UpstreamScope) => (id: string) =>
    openAt(session, source, id) ?? sealHosted(session, source.definition.name, id)

  /** The id of a task as the client knows it, wherever the task runs. */
  const toClient = (session: LiveSession, source: UpstreamScope) => (id: string) =>
    openHosted(session, source.definition.name, id) ??
    sealer.seal('task', sessionBindingOf(session), nameOf(source, id))

  /**
   * Tasks that clients host for upstreams, each of which reaches only those that it asked for: session key -> task id
   * of the client -> the upstream.
   */
  const hosted = new Map<string, Map<string, UpstreamName>>()

  /** The answer of the client to a server request, with task ids as the upstream knows them. */
  function answered(
    session: LiveSession,
    source: UpstreamScope,
    { method, params }: ServerRequest,
    answer: unknown
  ): unknown {
    const { name } = source.definition
    if (!isObject(answer)) return answer
    const related = mapRelatedTask(answer, toUpstream(session, source))
    const seal = (id: string): string => sealHosted(session, name, id)
    if (method === 'tasks/get' || method === 'tasks/cancel') return withTaskId(related, seal)
    if (method === 'tasks/list') return withTaskList(related, (id) => hosted.get(session.key)?.get(id) === name, seal)
    if (!isObject(params?.['task'])) return related
    const task = readTask(related['task'])
    const isKnown = task !== undefined && hosted.get(session.key)?.has(task.taskId) === true
    const isLive = sessions.get(session.key) === session
    if (task !== undefined && isLive && (isKnown || takeFor(session, task.taskId))) {
      const own = hosted.get(session.key) ?? new Map<string, UpstreamName>()
      hosted.set(session.key, own.set(task.taskId, name))
      const [oldest] = own.keys()
      if (own.size > maxHosted && oldest !== undefined) {
        own.delete(oldest)
        giveBack(session, oldest)
      }
    }
    return withCreatedTask(related, seal)
  }

  return {
    toClient,
    /**
     * A request of the client with task ids as its upstream, which is connected, knows them.
     * @throws GatewayError invalid_params where it is about a task of another process of the upstream
     */
    outgoing(session: LiveSession, source: UpstreamScope, { method, params }: Request): Request {
      const related = mapRelatedTask(params, toUpstream(session, source))
      if (related === undefined) return { method }
      if (!method.startsWith('tasks/')) return { method, params: related }
      const own = withTaskId(related, (publicId) => {
        const id = openAt(session, source, publicId)
        if (id !== undefined) return id
        const { name: upstream } = source.definition
        throw new GatewayError(
          'invalid_params',
          `The task is none of the process of upstream ${upstream} that serves this session: that one is gone, or ` +
            'serves another session. Whether it took effect is unknown: find out before you start it again.',
          { data: { outcome: 'unknown', upstream } }
        )
      })
      return { method, params: own }
    },
    /** The upstream of a task. @returns undefined for an id that this principal was not given at this endpoint */
    upstreamOf: (session: LiveSession, publicId: string) => open(session, publicId)[0],
    nameOf,
    /** Binds a cursor of `tasks/list` to whom it is given. */
    sealCursor: (session: LiveSession, text: string) => sealer.seal('tasks-cursor', sessionBindingOf(session), text),
    openCursor: (session: LiveSession, cursor: string) =>
      sealer.open('tasks-cursor', sessionBindingOf(session), cursor),
    /**
     * A server request to the client, with task ids as the client knows them, and its answer with those that the
     * upstream knows.
     * @param ask is not held until the answer comes
     * @throws RpcError -32602 where it names a task of another upstream; then nothing was asked
     */
    serverRequest(
      session: LiveSession,
      source: UpstreamScope,
      request: ServerRequest,
      ask: (request: ServerRequest) => Promise<unknown>
    ): Promise<unknown> {
      const { name } = source.definition
      const { method, params } = request
      let outgoing = mapRelatedTask(params, toClient(session, source))
      if (method.startsWith('tasks/') && method !== 'tasks/list') {
        outgoing = withTaskId(outgoing ?? {}, (id) => {
          const own = openHosted(session, name, id)
          if (own !== undefined) return own
          const message = 'Unknown task: the client hosts none of this id for you.'
          throw new RpcError({ code: rpcCodes.invalidParams, message })
        })
      }
      const asked = ask(outgoing === undefined ? { method } : { method, params: outgoing })
      return asked.then((answer) => answered(session, source, request, answer))
    },
    /** A notification of the client about a task that it hosts. @returns undefined where it hosts none of the id */
    hostedFor(session: LiveSession, { method, params }: Notification) {
      const id = params?.['taskId']
      const upstream = typeof id === 'string' ? hosted.get(session.key)?.get(id) : undefined
      if (upstream === undefined || params === undefined) return undefined
      const sealed = withTaskId(params, (own) => sealHosted(session, upstream, own))
      return { upstream, notification: { method, params: sealed } }
    },
    drop: (sessionKey: string) => void hosted.delete(sessionKey)
  }
}
