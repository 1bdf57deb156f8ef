// Tools of older upstreams that work only as tasks of 2025-11-25 (`execution.taskSupport: required`). A client of 2026-07-28 that knows the
// extension gets the task, in the words of SEP-2663; every other one gets the result, when it is there.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { GatewayError, RpcError } from '../../protocol/errors.ts'
import type { UpstreamName } from '../../protocol/ids.ts'
import { has } from '../../protocol/merge.ts'
import { isObject, metaOf } from '../../protocol/messages.ts'
import type { JsonObject, Request, Result } from '../../protocol/messages.ts'
import { rewriteToolResult, withParam } from '../../protocol/rewrite.ts'
import type { UriMap } from '../../protocol/rewrite.ts'
import type { Client } from '../../protocol/seams.ts'
import { modernOutcome, modernTask, withoutRelatedTask } from '../../protocol/task-bridge.ts'
import { ended, readTask } from '../../protocol/tasks.ts'
import { nobody } from '../../upstream/exchange.ts'
import type { ModernCall } from '../call.ts'
import type { Listings } from '../listings.ts'
import type { PaceClock } from '../pace.ts'
import { createTaskOnly } from '../task-only.ts'
import type { TaskOnly } from '../task-only.ts'
import { whileWanted } from '../wanted.ts'
import type { Connection, Lease, ModernConnections } from './connections.ts'
import { conversationKey, conversationOf } from './conversations.ts'
import type { HeldTask, HeldTasks } from './held-tasks.ts'
import { asTask, finished, outcomeOf } from './old-task-calls.ts'
import { profileOf } from './profile.ts'
import { fittingOutcome } from './refusals.ts'
import { bindingOf } from './task-ids.ts'
import type { OldTask, OpenedTask, TaskIds } from './task-ids.ts'

export interface OldTasks {
  readonly only: TaskOnly
  /** `tools/call` of such a tool. @returns a task, as the client gets it, or a result where the server made none */
  create (call: ModernCall, definition: UpstreamDefinition, request: Request): Promise<Result>
  /**
   * `tasks/get`, `tasks/update` and `tasks/cancel` of what `create` made, with the client's own task id in the call.
   * @throws GatewayError, RpcError
   */
  handle (call: ModernCall, definition: UpstreamDefinition, task: OpenedTask & { readonly old: OldTask }, map: UriMap): Promise<Result>
  /** The lease for one request: what tasks ask goes to their own clients, and the tool is called as a task, if it has to be, until it has ended. */
  dress (definition: UpstreamDefinition, lease: Lease, request: Request): Lease
}

export interface OldTasksOptions {
  readonly connections: Pick<ModernConnections, 'lease'>
  readonly listings: Pick<Listings, 'all'>
  readonly taskIds: TaskIds
  readonly held: HeldTasks
  /** This process. */
  readonly node: string
  /** Has another one answer the call. @throws GatewayError invalid_state where it is gone */
  readonly forward: (call: ModernCall, upstream: UpstreamName, node: string) => Promise<Result>
  readonly clock: PaceClock
}

export function createOldTasks ({ connections, listings, taskIds, held, node, forward, clock }: OldTasksOptions): OldTasks {
  const only = createTaskOnly(listings)
  const keyOf = (call: ModernCall, { upstream, id }: Pick<OpenedTask, 'upstream' | 'id'>): string => JSON.stringify([bindingOf(call), upstream, id])

  function hold (call: ModernCall, definition: UpstreamDefinition, { upstream, scope }: Connection, id: string, { capabilities }: OldTask): HeldTask {
    return held.hold({ key: keyOf(call, { upstream: upstream.name, id }), owner: JSON.stringify(bindingOf(call)), definition, scope, upstream, id, endpoint: call.endpoint, capabilities })
  }

  /** The connection that the task runs on, or one like it: what was made with the same capabilities is found by them. */
  async function reach (call: ModernCall, definition: UpstreamDefinition, task: OpenedTask & { readonly old: OldTask }): Promise<HeldTask> {
    const known = held.find(keyOf(call, task))
    if (known !== undefined) return known
    const { capabilities, conversation } = task.old
    const lease = await whileWanted(connections.lease(definition, {
      ...call,
      request: { method: call.request.method, params: conversation === null ? {} : { _meta: { [conversationKey]: conversation } } },
      client: { ...call.client, capabilities, logLevel: undefined }
    }), call.signal)
    lease.release()
    if (lease.upstream.era !== 'legacy') throw unknown()
    return hold(call, definition, lease, task.id, task.old)
  }

  /** Asking changes nothing, so where the connection is gone it may be asked on another. */
  async function asked (call: ModernCall, definition: UpstreamDefinition, task: OpenedTask & { readonly old: OldTask }, method: string): Promise<{ on: HeldTask, result: Result }> {
    const remembered = held.find(keyOf(call, task)) !== undefined
    const on = await reach(call, definition, task)
    const send = async (to: HeldTask): Promise<{ on: HeldTask, result: Result }> => ({ on: to, result: await to.upstream.request({ method, params: { taskId: task.id } }, nobody, call.signal) })
    return await send(on).catch(async (error: unknown) => {
      const broken = error instanceof GatewayError && error.code !== 'cancelled' && error.code !== 'upstream_timeout'
      if (!remembered || !broken || call.signal.aborted) throw error
      held.drop(on.key)
      return await send(await reach(call, definition, task))
    })
  }

  /** `tasks/get`: with what it asks, or ended with, in it. */
  async function get (call: ModernCall, definition: UpstreamDefinition, task: OpenedTask & { readonly old: OldTask }): Promise<JsonObject> {
    const { on, result } = await asked(call, definition, task, 'tasks/get')
    const state = readTask(result)
    if (state === undefined) throw new GatewayError('upstream_protocol', `Upstream ${definition.name} answered tasks/get without a task.`, { data: { upstream: definition.name } })
    on.seen(!ended(state))
    if (state.status === 'cancelled') return modernTask(result)
    if (ended(state)) {
      const outcome = await outcomeOf(on.upstream, task.id, nobody, call.signal)
      return modernOutcome(result, 'error' in outcome ? { error: fittingOutcome(outcome.error, definition.name, call.client.capabilities) } : outcome)
    }
    const inputRequests = await on.questions(state.status === 'input_required')
    // A question on its way, or answered a moment ago, is nothing that the client could do anything about.
    return Object.keys(inputRequests).length === 0 ? { ...modernTask(result), status: 'working' } : { ...modernTask(result), status: 'input_required', inputRequests }
  }

  async function cancel (call: ModernCall, definition: UpstreamDefinition, task: OpenedTask & { readonly old: OldTask }): Promise<void> {
    const on = await reach(call, definition, task)
    if (has(on.upstream.capabilities, ['tasks', 'cancel'])) {
      await asked(call, definition, task, 'tasks/cancel').catch(async (error: unknown) => {
        // -32602 for a task that has ended; here that is no error. One that is unknown stays unknown.
        if (!(error instanceof RpcError) || error.error.code !== -32_602) throw error
        await asked(call, definition, task, 'tasks/get')
      })
    }
    on.turnAway()
  }

  return {
    only,

    async create (call, definition, request) {
      const lease = await whileWanted(connections.lease(definition, call), call.signal)
      try {
        const { upstream } = lease
        if (upstream.era !== 'legacy') throw new GatewayError('upstream_unavailable', `Upstream ${upstream.name} changed while it was called. Retry.`, { data: { upstream: upstream.name } })
        // The extension has no progress of tasks.
        const { progressToken: _token, ...meta } = metaOf(request.params)
        const result = await upstream.request(asTask(withParam(request, '_meta', meta)), nobody, call.signal)
        const { task, ...rest } = withoutRelatedTask(result)
        const state = readTask(task)
        if (state === undefined || !isObject(task)) return { ...result, resultType: 'complete' }
        const old: OldTask = { node, capabilities: profileOf(call.client.capabilities, call.endpoint), conversation: conversationOf(call) }
        hold(call, definition, lease, state.taskId, old).seen(!ended(state))
        return { ...rest, ...modernTask(task), resultType: 'task', taskId: taskIds.toClient(call, upstream.name, state.taskId, old) }
      } finally {
        lease.release()
      }
    },

    async handle (call, definition, task, map) {
      const { method, params } = call.request
      if (task.old.node !== node && held.find(keyOf(call, task)) === undefined) {
        try {
          return await forward(call, task.upstream, task.old.node)
        } catch (error) {
          // With that process its connection is gone; a server that keeps tasks beyond connections still knows it.
          if (!(error instanceof GatewayError) || error.code !== 'invalid_state') throw error
        }
      }
      if (method === 'tasks/get') {
        const { result, ...shown } = await get(call, definition, task)
        return { ...shown, ...isObject(result) && { result: rewriteToolResult(result, map) }, taskId: params?.['taskId'], resultType: 'complete' }
      }
      if (method === 'tasks/update') {
        const responses = params?.['inputResponses']
        if (!isObject(responses)) throw new GatewayError('invalid_params', '"inputResponses" must be an object.')
        const on = await reach(call, definition, task)
        on.seen(true)
        on.answer(responses)
      } else await cancel(call, definition, task)
      return { resultType: 'complete' }
    },

    dress (definition, lease, request) {
      const { upstream, scope } = lease
      const own = (client: Client): Client => ({ ...client, ask: (question, options) => held.ask(definition, scope, question, options, () => client.ask(question, options)) })
      const asOne = request.method === 'tools/call' && only(definition, request.params?.['name'])
      return {
        ...lease,
        upstream: {
          ...upstream,
          request: (outgoing, client, signal) => asOne ? finished(upstream, outgoing, own(client), signal, clock) : upstream.request(outgoing, own(client), signal)
        }
      }
    }
  }
}

const unknown = (): GatewayError => new GatewayError('invalid_params', 'Unknown task: it is none that you were given at this endpoint, or its upstream is gone.')
