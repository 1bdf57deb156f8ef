// Tasks of clients of 2025-11-25 at servers of 2026-07-28, whose tasks are those of the extension (SEP-2663). The client says which calls
// shall be tasks and the server decides which are, so each gets what it expects: a call that ended at once is kept as a task that has
// ended, and a task that nobody asked for is waited for.

import { hash } from 'node:crypto'
import { GatewayError, RpcError } from '../protocol/errors.ts'
import { isObject } from '../protocol/messages.ts'
import type { JsonObject, Request, Result } from '../protocol/messages.ts'
import type { Client, Upstream } from '../protocol/seams.ts'
import { legacyOutcome, legacyTask, pollAfter, statusOf, withRelated } from '../protocol/task-bridge.ts'
import type { TaskOutcome } from '../protocol/task-bridge.ts'
import { ended, readTask } from '../protocol/tasks.ts'
import type { Store } from '../store/port.ts'
import type { AskRooms } from '../upstream/ask-room.ts'
import type { Call } from './call.ts'
import { askAll } from './fulfil-asks.ts'
import { createKeptTasks, maxKept } from './kept-tasks.ts'
import { pause } from './pace.ts'
import type { PaceClock } from './pace.ts'
import type { Rising } from './rising.ts'

export interface BridgedTasksOptions {
  readonly clock: PaceClock
  readonly store: Store
  /** For what is asked. */
  readonly askRooms: Pick<AskRooms, 'open'>
  readonly mint: () => string
  readonly taskId: (call: Call, upstream: Upstream, id: string) => string
}

export interface BridgedTasks {
  /** `CreateTaskResult` of a call that became a task. @param wrapped whether its result will have to be wrapped */
  created (upstream: Upstream, task: Result, wrapped: boolean): Result
  /** The same for a call that is over. @param wanted `task` of the request */
  ended (call: Call, upstream: Upstream, result: Result, wanted: unknown): Promise<Result>
  /** Waits for a task that the client knows nothing of; one that is no longer waited for is cancelled. @returns the result of the call */
  finished (call: Call, upstream: Upstream, task: Result, rising: Rising): Promise<Result>
  /** `tasks/get`, `tasks/result` and `tasks/cancel`, with an id that `created` or `ended` gave. @param shape the result of a tool for the client */
  handle (call: Call, upstream: Upstream, request: Request, client: Client, shape: (result: Result, wrapped: boolean) => Result): Promise<Result>
}

const resultMs = 10 * 60_000
/** A server may say for ever that it works on something. */
const longestMs = 24 * 60 * 60_000
const maxFailures = 3
/** How often a task may ask for input while one request waits for it. */
const maxRounds = 32

/** Of the gateway's own, of the upstream's, and of the upstream's with results that have to be wrapped. */
type Mark = 'own' | 'as' | 'wrap'
const marked = (mark: Mark, id: string): string => `${mark}.${id}`

export function createBridgedTasks ({ clock, store, askRooms, mint, taskId }: BridgedTasksOptions): BridgedTasks {
  // Questions of tasks that somebody is answering: two who wait for one task must not both ask.
  const asking = new Set<string>()
  const kept = createKeptTasks({ store, mint })

  /** A task as it stands; asking changes nothing, so it is asked again where an answer was lost. */
  async function get (call: Call, upstream: Upstream, id: string, client: Client): Promise<JsonObject> {
    for (let failures = 1; ; failures++) {
      try {
        const task = await upstream.request({ method: 'tasks/get', params: { taskId: id } }, client, call.signal)
        if (readTask(task) === undefined || (task['status'] === 'completed' && !isObject(task['result']))) throw fault(upstream, 'answered tasks/get with what is no task')
        return task
      } catch (error) {
        const passing = error instanceof GatewayError && (error.code === 'upstream_timeout' || error.code === 'upstream_lost' || error.code === 'upstream_unavailable')
        if (!passing || failures === maxFailures) throw error
        await pause(clock, pollAfter({}), call.signal)
      }
    }
  }

  /**
   * Waits for the end of a task, and asks the client what the task wants to know.
   * @param known the task as it was made
   * @param shown its id as the client knows it, where it does
   */
  async function follow (call: Call, upstream: Upstream, id: string, client: Client, { known, shown, told }: { known?: JsonObject, shown?: string, told?: (task: JsonObject) => void }): Promise<TaskOutcome> {
    const mine = new Set<string>()
    const since = clock.now()
    try {
      for (let after = known, rounds = 0; ; ) {
        const ranMs = clock.now() - since
        if (ranMs > longestMs) throw fault(upstream, 'works on a task for more than a day', { outcome: 'unknown' })
        if (after !== undefined) {
          told?.(after)
          await pause(clock, pollAfter(after, ranMs), call.signal)
        }
        const task = after = await get(call, upstream, id, client)
        const outcome = legacyOutcome(task)
        if (outcome !== undefined) return outcome
        if (task['status'] === 'cancelled') return { error: cancelledTask }
        if (task['status'] !== 'input_required' || !isObject(task['inputRequests'])) continue
        // Keys are unique as long as the task lives ("Task Update Requests"), and remain for a while after they were answered.
        const open = Object.entries(task['inputRequests']).map(([key, request]) => ({ key, request, name: hash('sha256', JSON.stringify([call.live.key, upstream.name, id, key]), 'base64url') })).filter(({ name }) => !asking.has(name))
        if (open.length === 0) continue
        if (++rounds > maxRounds) throw fault(upstream, `asks for input more than ${maxRounds} times during one task`, { outcome: 'unknown' })
        for (const { name } of open) {
          asking.add(name)
          mine.add(name)
        }
        const requests = Object.fromEntries(open.map(({ key, request }) => [key, request]))
        const inputResponses = await askAll(call, { upstream: upstream.name, requests, kept: task, askRooms, mint, ...shown === undefined ? {} : { taskId: shown } })
        await upstream.request({ method: 'tasks/update', params: { taskId: id, inputResponses } }, client, call.signal)
      }
    } finally {
      for (const name of mine) asking.delete(name)
    }
  }

  async function cancel (call: Call, upstream: Upstream, id: string, client: Client, given: string): Promise<Result> {
    const task = await get(call, upstream, id, client)
    const state = readTask(task)
    if (state === undefined || ended(state)) throw over()
    await upstream.request({ method: 'tasks/cancel', params: { taskId: id } }, client, call.signal)
    // There it is a wish; here it is done when it is answered, and stays so ("Task Cancellation" of both).
    const cancelled = { ...legacyTask(task), taskId: given, status: 'cancelled', lastUpdatedAt: new Date(clock.now()).toISOString() }
    await kept.mark(call, upstream, taskId(call, upstream, given), inBrief(cancelled), Math.min(longestMs, typeof task['ttlMs'] === 'number' ? Math.max(1, task['ttlMs']) : longestMs))
    return cancelled
  }

  return {
    created: (upstream, task, wrapped) => {
      const state = readTask(task)
      if (state === undefined) throw fault(upstream, 'made a task without an id')
      return { task: { ...legacyTask(task), taskId: marked(wrapped ? 'wrap' : 'as', state.taskId) } }
    },

    async ended (call, upstream, result, wanted) {
      const asked = isObject(wanted) && typeof wanted['ttl'] === 'number' && wanted['ttl'] > 0 ? wanted['ttl'] : resultMs
      const now = new Date(clock.now()).toISOString()
      const ttl = Math.min(asked, resultMs)
      const of = (taskId: string): JsonObject => ({ taskId, status: result['isError'] === true ? 'failed' : 'completed', createdAt: now, lastUpdatedAt: now, ttl })
      const made = await kept.add(call, upstream, of, result, ttl).catch((error: unknown) => {
        // To come again, as the store itself would have it, would be to do it again.
        throw new GatewayError('internal', `Upstream ${upstream.name} has answered, but the gateway could not keep the answer as a task.`, { cause: error, data: { outcome: 'unknown', upstream: upstream.name } })
      })
      if (made === undefined) throw fault(upstream, `has done its work, but its answer is longer than ${maxKept / 1024 / 1024} MiB, the most that is kept as a task. Call it without "task" to have such answers`, { outcome: 'unknown' })
      return { task: made.task }
    },

    async finished (call, upstream, task, rising) {
      const state = readTask(task)
      if (state === undefined) throw fault(upstream, 'made a task without an id')
      let said: string | undefined
      const told = (task: JsonObject): void => {
        const status = statusOf(task)
        if (status === undefined || status === said) return
        said = status
        rising.say(status)
      }
      return resultOf(await follow(call, upstream, state.taskId, rising.client, { known: task, told }).catch((error: unknown) => {
        upstream.request({ method: 'tasks/cancel', params: { taskId: state.taskId } }, { ...rising.client, notify () {} }, AbortSignal.timeout(5_000)).catch(() => {
          // The server's own loss: it works on for nobody until the task's time is over.
        })
        throw error
      }))
    },

    async handle (call, upstream, request, client, shape) {
      const given = String(request.params?.['taskId'])
      const [, mark, id] = /^(own|as|wrap)\.(.*)$/s.exec(given) ?? []
      const known = await kept.find(call, upstream, mark === 'own' ? given : taskId(call, upstream, given))
      if (id === undefined || (mark === 'own' && known === undefined)) throw new GatewayError('invalid_params', 'Unknown task: its time is over, or newer ones have taken its place.')
      switch (request.method) {
        case 'tasks/get': return known?.task ?? { ...legacyTask(await get(call, upstream, id, client)), taskId: given }
        case 'tasks/cancel':
          if (known !== undefined) throw over()
          return await cancel(call, upstream, id, client, given)
        case 'tasks/result': {
          if (known !== undefined) return withRelated(resultOf(known.result === undefined ? { error: cancelledTask } : { result: known.result }), given)
          const outcome = await follow(call, upstream, id, client, { shown: taskId(call, upstream, given) })
          return withRelated(shape(resultOf(outcome), mark === 'wrap'), given)
        }
        default: throw new GatewayError('method_not_found', `Method not found: ${request.method}`)
      }
    }
  }
}

/** @throws RpcError the error that the call ended with */
function resultOf (outcome: TaskOutcome): Result {
  if ('error' in outcome) throw new RpcError(outcome.error)
  return outcome.result
}

/** What is kept of a cancelled task: what 2025-11-25 says of it, in reasonable length. */
function inBrief (task: JsonObject): JsonObject {
  const { taskId, status, createdAt, lastUpdatedAt, ttl, pollInterval } = task
  const statusMessage = statusOf(task)
  return { taskId, status, ...statusMessage !== undefined && { statusMessage }, createdAt: String(createdAt).slice(0, 64), lastUpdatedAt, ttl, ...pollInterval !== undefined && { pollInterval } }
}

/** A task that was cancelled has no result; 2025-11-25 names no error for it. */
const cancelledTask = { code: -32_603, message: 'The task was cancelled.' }

const over = (): GatewayError => new GatewayError('invalid_params', 'The task has ended: it cannot be cancelled any more.')

const fault = ({ name }: Upstream, what: string, data: JsonObject = {}): GatewayError => new GatewayError('upstream_protocol', `Upstream ${name} ${what}.`, { data: { ...data, upstream: name } })
