// Where a task of a legacy upstream is reached: on the connection that it was made on, or on one like it where the
// server knows its tasks beyond connections.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { GatewayError, type Result } from '../../protocol/messages.ts'
import type { ErrorCode } from '../../protocol/error-table.ts'
import { noClient } from '../../protocol/seams.ts'
import { abortable } from '../../time/clock.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { callerBindingOf, quotaKeyOf, type ModernCall } from '../call/call.ts'
import { conversationKey } from '../client/modern-client.ts'
import type { CallerConnections, LeasedConnection } from '../connections/caller-connections.ts'
import type { OpenTask, OpenTasks } from './open-tasks.ts'
import { taskGone, unknownTask, type LegacyTaskRef, type TaskRef } from './caller-tasks.ts'

export type LegacyTask = Pick<TaskRef, 'id'> & { readonly legacy: LegacyTaskRef }

/** A request of a modern client about a task at a legacy upstream. */
export interface LegacyTaskCall {
  readonly call: ModernCall
  readonly definition: UpstreamDefinition
  readonly task: LegacyTask
}

export function createLegacyTaskConnections(
  connections: Pick<CallerConnections, 'lease'>,
  pool: Pick<Pool, 'find'>,
  openTasks: OpenTasks
) {
  // Many a server numbers its tasks, and each process of it begins anew; and another definition is another server.
  const keyOf = ({ call, definition: { name, hash }, task: { id, legacy } }: LegacyTaskCall): string =>
    JSON.stringify([callerBindingOf(call), name, hash, legacy.connection, id])

  const opened = (of: LegacyTaskCall): OpenTask | undefined => openTasks.find(keyOf(of))

  function track(of: LegacyTaskCall, { upstream, scope }: Pick<LeasedConnection, 'upstream' | 'scope'>): OpenTask {
    const { call, definition, task } = of
    return openTasks.track({
      key: keyOf(of),
      owner: quotaKeyOf(call.principal),
      caller: { issuer: call.principal.issuer, subject: call.principal.subject },
      definition,
      scope,
      upstream,
      id: task.id,
      endpoint: call.endpoint,
      capabilities: task.legacy.capabilities
    })
  }

  /** Finds the task on the connection that it was made on, or was found on since. */
  function onOwnConnection(of: LegacyTaskCall): OpenTask | undefined {
    const { definition, connection } = of.task.legacy
    const known = definition === of.definition.hash ? pool.find(connection) : undefined
    return opened(of) ?? (known && track(of, known))
  }

  async function onAnotherConnection(of: LegacyTaskCall): Promise<OpenTask> {
    const { call, definition, task } = of
    // What another process has under this id is another task.
    if (definition.type === 'stdio') throw taskGone(definition)
    const { capabilities, conversation, connection, createdAt } = task.legacy
    const params = conversation === null ? {} : { _meta: { [conversationKey]: conversation } }
    const likeIt: ModernCall = {
      ...call,
      request: { method: call.request.method, params },
      client: { ...call.client, capabilities, logLevel: undefined }
    }
    const lease = await abortable(connections.lease(definition, likeIt), call.signal)
    try {
      const { upstream } = lease
      if (upstream.era !== 'legacy') throw unknownTask()
      if (upstream.id !== connection) {
        const request = { method: 'tasks/get', params: { taskId: task.id } }
        const found = await upstream.request(request, noClient, call.signal)
        if (createdAt === undefined || found['createdAt'] !== createdAt) throw taskGone(definition)
      }
      return track(of, lease)
    } finally {
      lease.release()
    }
  }

  return {
    track,
    /** The task where this process has it open. */
    opened,
    /** @throws GatewayError invalid_params where the task is gone with its connection */
    reach: async (of: LegacyTaskCall) => onOwnConnection(of) ?? (await onAnotherConnection(of)),
    /**
     * Sends a request that may be repeated: on another connection, where the one of the task is gone.
     * @throws GatewayError invalid_params where the task is gone; whatever the upstream answers
     */
    async send(of: LegacyTaskCall, method: string): Promise<{ readonly openTask: OpenTask; readonly result: Result }> {
      const { call, task } = of
      const sendOn = async (openTask: OpenTask): Promise<{ openTask: OpenTask; result: Result }> => {
        const request = { method, params: { taskId: task.id } }
        return { openTask, result: await openTask.upstream.request(request, noClient, call.signal) }
      }
      const first = onOwnConnection(of)
      if (first !== undefined) {
        try {
          return await sendOn(first)
        } catch (error) {
          if (call.signal.aborted || !(error instanceof GatewayError) || !connectionErrors.has(error.code)) throw error
          openTasks.drop(first.key)
        }
      }
      return await sendOn(await onAnotherConnection(of))
    }
  }
}

/** The errors of requests whose connection ends. */
const connectionErrors: ReadonlySet<string> = new Set<ErrorCode>(['upstream_lost', 'upstream_unavailable', 'cancelled'])
