// Tools of older upstreams that work only as tasks of 2025-11-25 (`execution.taskSupport: required`). A client of 2026-07-28 that knows the
// extension gets the task, in the words of SEP-2663; every other one gets the result, when it is there.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { GatewayError, RpcError } from '../../protocol/errors.ts'
import type { ErrorCode } from '../../protocol/errors.ts'
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
import type { ConnectionNames, NamedConnection } from '../connection-names.ts'
import type { Listings } from '../listings.ts'
import type { PaceClock } from '../pace.ts'
import { createTaskOnly } from '../task-only.ts'
import type { TaskOnly } from '../task-only.ts'
import { whileWanted } from '../wanted.ts'
import type { Lease, ModernConnections } from './connections.ts'
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
  handle (call: ModernCall, definition: UpstreamDefinition, task: MadeTask, map: UriMap): Promise<Result>
  /** The lease for one request: what tasks ask goes to their own clients, and the tool is called as a task, if it has to be, until it has ended. */
  dress (definition: UpstreamDefinition, lease: Lease, request: Request): Lease
}

type MadeTask = Pick<OpenedTask, 'id'> & { readonly old: OldTask }

export interface OldTasksOptions {
  readonly connections: Pick<ModernConnections, 'lease'>
  readonly names: ConnectionNames
  readonly listings: Pick<Listings, 'all'>
  readonly taskIds: TaskIds
  readonly held: HeldTasks
  /** This process. */
  readonly node: string
  /** Has another one answer the call. @throws GatewayError invalid_state where it is gone */
  readonly forward: (call: ModernCall, upstream: UpstreamName, node: string) => Promise<Result>
  readonly clock: PaceClock
}

export function createOldTasks ({ connections, names, listings, taskIds, held, node, forward, clock }: OldTasksOptions): OldTasks {
  const only = createTaskOnly(listings)
  // Many a server numbers its tasks, and does so anew with each process; and another definition is another server.
  const keyOf = (call: ModernCall, { name, hash }: UpstreamDefinition, { id, old }: MadeTask): string => JSON.stringify([bindingOf(call), name, hash, old.connection, id])

  function hold (call: ModernCall, definition: UpstreamDefinition, { upstream, scope }: NamedConnection, task: MadeTask): HeldTask {
    return held.hold({ key: keyOf(call, definition, task), owner: JSON.stringify(bindingOf(call)), definition, scope, upstream, id: task.id, endpoint: call.endpoint, capabilities: task.old.capabilities })
  }

  /** On the connection that it was made on, or was found on since. */
  function known (call: ModernCall, definition: UpstreamDefinition, task: MadeTask): HeldTask | undefined {
    const connection = task.old.definition === definition.hash ? names.find(task.old.connection) : undefined
    return held.find(keyOf(call, definition, task)) ?? (connection && hold(call, definition, connection, task))
  }

  /**
   * On a connection like it: a server behind a URL may know its tasks beyond connections, and say that this is the one.
   * @throws GatewayError invalid_params
   */
  async function found (call: ModernCall, definition: UpstreamDefinition, task: MadeTask): Promise<HeldTask> {
    // What another process has under this id is another task.
    if (definition.type === 'stdio') throw gone(definition)
    const { capabilities, conversation, connection, createdAt } = task.old
    const lease = await whileWanted(connections.lease(definition, {
      ...call,
      request: { method: call.request.method, params: conversation === null ? {} : { _meta: { [conversationKey]: conversation } } },
      client: { ...call.client, capabilities, logLevel: undefined }
    }), call.signal)
    try {
      const { upstream } = lease
      if (upstream.era !== 'legacy') throw unknown()
      if (names.nameOf(lease) !== connection) {
        const there = await upstream.request({ method: 'tasks/get', params: { taskId: task.id } }, nobody, call.signal)
        if (createdAt === undefined || there['createdAt'] !== createdAt) throw gone(definition)
      }
      return hold(call, definition, lease, task)
    } finally {
      lease.release()
    }
  }

  const reach = async (call: ModernCall, definition: UpstreamDefinition, task: MadeTask): Promise<HeldTask> => known(call, definition, task) ?? await found(call, definition, task)

  /** Asking changes nothing, so where the connection is gone it may be asked on another. */
  async function asked (call: ModernCall, definition: UpstreamDefinition, task: MadeTask, method: string): Promise<{ on: HeldTask, result: Result }> {
    const send = async (on: HeldTask): Promise<{ on: HeldTask, result: Result }> => ({ on, result: await on.upstream.request({ method, params: { taskId: task.id } }, nobody, call.signal) })
    const first = known(call, definition, task)
    if (first !== undefined) {
      try {
        return await send(first)
      } catch (error) {
        if (call.signal.aborted || !(error instanceof GatewayError) || !endings.has(error.code)) throw error
        held.drop(first.key)
      }
    }
    return await send(await found(call, definition, task))
  }

  /** `tasks/get`: with what it asks, or ended with, in it. */
  async function get (call: ModernCall, definition: UpstreamDefinition, task: MadeTask): Promise<JsonObject> {
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

  async function cancel (call: ModernCall, definition: UpstreamDefinition, task: MadeTask): Promise<void> {
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
        const { createdAt } = task
        const old: OldTask = {
          node,
          capabilities: profileOf(call.client.capabilities, call.endpoint),
          conversation: conversationOf(call),
          definition: definition.hash,
          connection: names.nameOf(lease),
          ...typeof createdAt === 'string' && { createdAt: createdAt.slice(0, 64) }
        }
        hold(call, definition, lease, { id: state.taskId, old }).seen(!ended(state))
        return { ...rest, ...modernTask(task), resultType: 'task', taskId: taskIds.toClient(call, upstream.name, state.taskId, old) }
      } finally {
        lease.release()
      }
    },

    async handle (call, definition, task, map) {
      const { method, params } = call.request
      if (task.old.node !== node && held.find(keyOf(call, definition, task)) === undefined) {
        try {
          return await forward(call, definition.name, task.old.node)
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
        // Of one that is not held nothing is asked, but whoever answers learns whether it is there.
        const on = held.find(keyOf(call, definition, task)) ?? (await asked(call, definition, task, 'tasks/get')).on
        on.seen(true)
        on.answer(responses)
      } else await cancel(call, definition, task)
      return { resultType: 'complete' }
    },

    dress (definition, lease, request) {
      const { upstream } = lease
      const own = (client: Client): Client => ({ ...client, ask: (question, options) => held.ask(upstream, question, options, () => client.ask(question, options)) })
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

/** Of connections, as requests on them end. */
const endings: ReadonlySet<string> = new Set<ErrorCode>(['upstream_lost', 'upstream_unavailable', 'cancelled'])

const unknown = (): GatewayError => new GatewayError('invalid_params', 'Unknown task: it is none that you were given at this endpoint, or its upstream is gone.')
const gone = ({ name }: UpstreamDefinition): GatewayError => new GatewayError('invalid_params', `The connection to upstream ${name} that the task ran on is gone, and the task with it. Whether it took effect is unknown: find out before you start it again.`, { data: { outcome: 'unknown', upstream: name } })
