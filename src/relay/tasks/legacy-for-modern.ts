// Tools of legacy upstreams that work only as tasks of 2025-11-25 (`execution.taskSupport: required`), for clients of
// 2026-07-28: one that knows the extension gets the task, in the words of SEP-2663; every other one gets the result,
// when it is there.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import {
  GatewayError,
  isObject,
  type JsonObject,
  metaOf,
  type Request,
  type Result,
  rpcCodes,
  RpcError,
  type UpstreamName
} from '../../protocol/messages.ts'
import { type Client, noClient, type Upstream } from '../../protocol/seams.ts'
import { hasCapability } from '../../protocol/methods.ts'
import { firstOf } from '../../protocol/own-text.ts'
import { rewriteToolResult, type UriMap, withParam } from '../../protocol/translate/rewrite.ts'
import { isTaskOver, modernOutcome, modernTask, readTask, withoutRelatedTask } from '../../protocol/translate/tasks.ts'
import { abortable, type Clock } from '../../time/clock.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import type { ModernCall } from '../call/call.ts'
import type { Listings } from '../catalog/listings.ts'
import { declaredForCaller } from '../client/declared-capabilities.ts'
import { taskErrorForModern } from '../client/client-errors.ts'
import { requireInputResponses } from '../client/input-requests.ts'
import { conversationOf } from '../client/modern-client.ts'
import type { CallerConnections, Lease } from '../connections/caller-connections.ts'
import { legacyTaskOutcome } from './await-task.ts'
import { createLegacyTaskConnections, type LegacyTask, type LegacyTaskCall } from './legacy-task-connections.ts'
import type { OpenTasks } from './open-tasks.ts'
import type { LegacyTaskRef, SealedTaskIds } from './caller-tasks.ts'
import { asTask, callAsTask, requiresTask } from './task-required-tools.ts'

export type LegacyTasks = ReturnType<typeof createLegacyTasks>

export function createLegacyTasks({
  connections,
  pool,
  listings,
  taskIds,
  openTasks,
  node,
  forward,
  clock
}: {
  readonly connections: Pick<CallerConnections, 'lease'>
  readonly pool: Pick<Pool, 'find'>
  readonly listings: Pick<Listings, 'all'>
  readonly taskIds: SealedTaskIds
  readonly openTasks: OpenTasks
  /** This process. */
  readonly node: string
  /** Has another process answer the call. @throws GatewayError invalid_state where it is gone */
  readonly forward: (call: ModernCall, upstream: UpstreamName, node: string) => Promise<Result>
  readonly clock: Clock
}) {
  const tasks = createLegacyTaskConnections(connections, pool, openTasks)
  /** `tasks/get`: with what it asks, or ended with, in it. */
  async function get(of: LegacyTaskCall): Promise<JsonObject> {
    const { call, definition, task } = of
    const { openTask, result } = await tasks.send(of, 'tasks/get')
    const state = readTask(result)
    if (state === undefined)
      throw new GatewayError('upstream_protocol', `Upstream ${definition.name} answered tasks/get without a task.`, {
        data: { upstream: definition.name }
      })
    openTask.seen(!isTaskOver(state))
    if (state.status === 'cancelled') return modernTask(result)
    if (isTaskOver(state)) {
      const outcome = await legacyTaskOutcome(task.id, (request) =>
        openTask.upstream.request(request, noClient, call.signal)
      )
      if (!('error' in outcome)) return modernOutcome(result, outcome)
      const error = taskErrorForModern(outcome.error, definition.name, call)
      return modernOutcome(result, { error })
    }
    const inputRequests = await openTask.inputRequests(state.status === 'input_required')
    // A request on its way, or answered a moment ago, is nothing that the client could do anything about.
    if (Object.keys(inputRequests).length === 0) return { ...modernTask(result), status: 'working' }
    return { ...modernTask(result), status: 'input_required', inputRequests }
  }

  return {
    requiresTask: (definition: UpstreamDefinition, tool: unknown) => requiresTask(listings, definition, tool),

    /** `tools/call` of such a tool. @returns a task, as the client gets it, or a result where the server made none */
    async create(call: ModernCall, definition: UpstreamDefinition, request: Request): Promise<Result> {
      const lease = await abortable(connections.lease(definition, call), call.signal)
      try {
        const { upstream } = lease
        const { name } = upstream
        if (upstream.era !== 'legacy')
          throw new GatewayError('upstream_unavailable', `Upstream ${name} changed while it was called. Retry.`, {
            data: { upstream: name }
          })
        // The extension has no progress of tasks.
        const { progressToken: _token, ...meta } = metaOf(request.params)
        const result = await upstream.request(asTask(withParam(request, '_meta', meta)), noClient, call.signal)
        const { task, ...rest } = withoutRelatedTask(result)
        const state = readTask(task)
        if (state === undefined || !isObject(task)) return { ...result, resultType: 'complete' }
        const { createdAt } = task
        const legacy: LegacyTaskRef = {
          node,
          capabilities: declaredForCaller(call, 'legacy'),
          conversation: conversationOf(call),
          definition: definition.hash,
          connection: upstream.id,
          ...(typeof createdAt === 'string' && { createdAt: firstOf(createdAt, 64) })
        }
        tasks.track({ call, definition, task: { id: state.taskId, legacy } }, lease).seen(!isTaskOver(state))
        const taskId = taskIds.toClient(call, { upstream: name, id: state.taskId, legacy })
        return { ...rest, ...modernTask(task), resultType: 'task', taskId }
      } finally {
        lease.release()
      }
    },

    /**
     * `tasks/get`, `tasks/update` and `tasks/cancel` of what `create` made, with the client's own task id in the call.
     * @throws GatewayError, RpcError
     */
    async handle(call: ModernCall, definition: UpstreamDefinition, task: LegacyTask, map: UriMap): Promise<Result> {
      const { method, params } = call.request
      const of = { call, definition, task }
      if (task.legacy.node !== node && tasks.opened(of) === undefined) {
        try {
          return await forward(call, definition.name, task.legacy.node)
        } catch (error) {
          // With that process its connection is gone; a server that keeps tasks beyond connections still knows it.
          if (!(error instanceof GatewayError) || error.code !== 'invalid_state') throw error
        }
      }
      if (method === 'tasks/get') {
        const { result, ...shown } = await get(of)
        const own = isObject(result) && { result: rewriteToolResult(result, map) }
        return { ...shown, ...own, taskId: params?.['taskId'], resultType: 'complete' }
      }
      if (method === 'tasks/update') {
        const responses = requireInputResponses(params?.['inputResponses'])
        // A task that is not open here asks for nothing, but the client learns whether it is there.
        const openTask = tasks.opened(of) ?? (await tasks.send(of, 'tasks/get')).openTask
        openTask.seen(true)
        openTask.answer(responses)
        return { resultType: 'complete' }
      }
      const { upstream, inputs } = await tasks.reach(of)
      if (hasCapability(upstream.capabilities, ['tasks', 'cancel'])) {
        await tasks.send(of, method).catch(async (error: unknown) => {
          // Invalid params for a task that has ended; in SEP-2663 that is no error. One that is unknown stays unknown.
          if (!(error instanceof RpcError) || error.error.code !== rpcCodes.invalidParams) throw error
          await tasks.send(of, 'tasks/get')
        })
      }
      inputs.decline()
      return { resultType: 'complete' }
    },

    /**
     * The lease for one request: what open tasks ask on the connection goes to their own clients, and a tool that
     * requires it is called as a task, until that has ended.
     */
    leaseForRequest(definition: UpstreamDefinition, lease: Lease, request: Request): Lease {
      const { upstream } = lease
      const own = (client: Client): Client => ({
        ...client,
        ask: (serverRequest, options) =>
          openTasks.ask(upstream, serverRequest, options, () => client.ask(serverRequest, options))
      })
      const asOneTask = request.method === 'tools/call' && requiresTask(listings, definition, request.params?.['name'])
      return {
        ...lease,
        upstream: withRequest(upstream, (outgoing, client, signal) =>
          asOneTask
            ? callAsTask(upstream, outgoing, own(client), signal, clock)
            : upstream.request(outgoing, own(client), signal)
        )
      }
    }
  }
}

/** Returns the same connection with another way for requests. */
function withRequest(upstream: Upstream, request: Upstream['request']): Upstream {
  const changed = Object.create(upstream) as Upstream
  changed.request = request
  return changed
}
