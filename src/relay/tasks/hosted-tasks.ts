// Tasks of 2025-11-25 that clients of sessions host for upstreams: a server request with `task` becomes one. Each
// upstream reaches only the tasks that it asked for.

import {
  isObject,
  type Notification,
  rpcCodes,
  RpcError,
  type ServerRequest,
  type UpstreamName
} from '../../protocol/messages.ts'
import { mapRelatedTask, readTask, withCreatedTask, withTaskId, withTaskList } from '../../protocol/translate/tasks.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import type { SessionTaskIds, UpstreamScope } from './session-task-ids.ts'

export interface HostedTasks {
  /**
   * A server request to the client, with task ids as the client knows them, and its answer with those that the
   * upstream knows.
   * @throws RpcError -32602 where it names a task of another upstream
   */
  serverRequest(
    session: LiveSession,
    source: UpstreamScope,
    request: ServerRequest,
    ask: (request: ServerRequest) => Promise<unknown>
  ): Promise<unknown>
  /** A notification of the client about a task that it hosts. @returns undefined where it hosts none of the id */
  hostedFor(
    session: LiveSession,
    notification: Notification
  ): { readonly upstream: UpstreamName; readonly notification: Notification } | undefined
  drop(sessionKey: string): void
}

const maxPerSession = 1_000

export function createHostedTasks({
  toClient,
  toUpstream,
  sealHosted,
  openHosted
}: Pick<SessionTaskIds, 'toClient' | 'toUpstream' | 'sealHosted' | 'openHosted'>): HostedTasks {
  /** Session key -> task id of the client -> the upstream that asked for the task. */
  const hosted = new Map<string, Map<string, UpstreamName>>()

  function remember({ key }: LiveSession, id: string, upstream: UpstreamName): void {
    const own = hosted.get(key) ?? new Map<string, UpstreamName>()
    hosted.set(key, own.set(id, upstream))
    const [oldest] = own.keys()
    if (own.size > maxPerSession && oldest !== undefined) own.delete(oldest)
  }

  return {
    async serverRequest(session, source, { method, params }, ask) {
      const { name } = source.definition
      let outgoing = mapRelatedTask(params, toClient(session, source))
      if (method.startsWith('tasks/') && method !== 'tasks/list') {
        outgoing = withTaskId(outgoing ?? {}, (id) => {
          const own = openHosted(session, name, id)
          if (own !== undefined) return own
          throw new RpcError({
            code: rpcCodes.invalidParams,
            message: 'Unknown task: the client hosts none of this id for you.'
          })
        })
      }
      const answer = await ask(outgoing === undefined ? { method } : { method, params: outgoing })
      if (!isObject(answer)) return answer
      const related = mapRelatedTask(answer, toUpstream(session, source))
      const seal = (id: string): string => sealHosted(session, name, id)
      if (method === 'tasks/get' || method === 'tasks/cancel') return withTaskId(related, seal)
      if (method === 'tasks/list') return withTaskList(related, (id) => hosted.get(session.key)?.get(id) === name, seal)
      if (!isObject(params?.['task'])) return related
      const task = readTask(related['task'])
      if (task !== undefined) remember(session, task.taskId, name)
      return withCreatedTask(related, seal)
    },
    hostedFor(session, { method, params }) {
      const id = params?.['taskId']
      const upstream = typeof id === 'string' ? hosted.get(session.key)?.get(id) : undefined
      if (upstream === undefined || params === undefined) return undefined
      const sealed = withTaskId(params, (own) => sealHosted(session, upstream, own))
      return { upstream, notification: { method, params: sealed } }
    },
    drop: (sessionKey) => void hosted.delete(sessionKey)
  }
}
