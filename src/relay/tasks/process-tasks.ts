// Tasks of 2026-07-28 at servers over stdio. Many a server numbers its tasks, and each process of it begins anew: a
// task is asked of the process that made it, wherever that is, and of no other. So is input for a call that a process
// asked for, as long as that runs. Over HTTP a server knows both on all connections.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { GatewayError, type Request, type Result, type UpstreamName } from '../../protocol/messages.ts'
import type { Upstream } from '../../protocol/seams.ts'
import { isTaskOver, readTask } from '../../protocol/translate/tasks.ts'
import { ProcessGone } from '../../session/bus/bus-errors.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { callerBindingOf, quotaKeyOf, type ModernCall } from '../call/call.ts'
import type { LeasedConnection } from '../connections/caller-connections.ts'
import { taskGone, type TaskProcess } from './caller-tasks.ts'
import type { OpenTasks } from './open-tasks.ts'

export type ProcessTasks = ReturnType<typeof createProcessTasks>

export function createProcessTasks({
  pool,
  openTasks,
  node,
  forward
}: {
  readonly pool: Pick<Pool, 'find'>
  readonly openTasks: Pick<OpenTasks, 'track'>
  /** This process of the gateway. */
  readonly node: string
  /** Has another process of the gateway answer the call. @throws GatewayError invalid_state where it is gone */
  readonly forward: (call: ModernCall, upstream: UpstreamName, node: string, outgoing?: Request) => Promise<Result>
}) {
  return {
    /** Returns the process that knows a task of this connection; undefined: every connection to its server does. */
    of: ({ type, hash }: UpstreamDefinition, { id }: Upstream): TaskProcess | undefined =>
      type === 'stdio' ? { node, definition: hash, connection: id } : undefined,

    /** The connection that a task was made on; undefined where it has ended, or is not of this process. */
    find({ hash }: UpstreamDefinition, { definition, connection }: TaskProcess): LeasedConnection | undefined {
      const found = definition === hash ? pool.find(connection) : undefined
      return found && { ...found, release() {} }
    },

    /**
     * The answer to a request about a task that is not known here.
     * @throws GatewayError invalid_params where it is gone with its process
     */
    async elsewhere(call: ModernCall, definition: UpstreamDefinition, process: TaskProcess): Promise<Result> {
      if (process.node === node || process.definition !== definition.hash) throw taskGone(definition)
      try {
        return await forward(call, definition.name, process.node)
      } catch (error) {
        if (error instanceof GatewayError && error.code === 'invalid_state') throw taskGone(definition)
        throw error
      }
    },

    /**
     * The answer to a request with input for a child process of another process of the gateway.
     * @returns undefined where that is gone, or is this one: nothing was sent
     */
    async retriedElsewhere(
      call: ModernCall,
      definition: UpstreamDefinition,
      process: TaskProcess,
      outgoing: Request
    ): Promise<Result | undefined> {
      if (process.node === node || process.definition !== definition.hash) return undefined
      try {
        return await forward(call, definition.name, process.node, outgoing)
      } catch (error) {
        if (error instanceof ProcessGone) return undefined
        throw error
      }
    },

    /** Notes the state of a task: its process is kept while it runs, and it ends with its caller's access. */
    noted(call: ModernCall, definition: UpstreamDefinition, { upstream, scope }: LeasedConnection, task: Result): void {
      const state = definition.type === 'stdio' ? readTask(task) : undefined
      if (state === undefined) return
      const { endpoint, client, principal } = call
      const entry = openTasks.track({
        key: JSON.stringify([callerBindingOf(call), upstream.id, state.taskId]),
        owner: quotaKeyOf(principal),
        caller: { issuer: principal.issuer, subject: principal.subject },
        definition,
        scope,
        upstream,
        id: state.taskId,
        endpoint,
        capabilities: client.capabilities
      })
      entry.seen(!isTaskOver(state))
    }
  }
}
