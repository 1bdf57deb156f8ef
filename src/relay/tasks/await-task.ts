// Waiting for tasks at upstreams: for their result, which 2025-11-25 answers `tasks/result` with, and for their next
// state.

import {
  GatewayError,
  isObject,
  type JsonObject,
  metaOf,
  type Request,
  type Result,
  RpcError
} from '../../protocol/messages.ts'
import { type Client, noClient, type Upstream } from '../../protocol/seams.ts'
import { hasCapability } from '../../protocol/translate/merge.ts'
import { withParam } from '../../protocol/translate/rewrite.ts'
import {
  pollDelayMs,
  statusMessageOf,
  type TaskOutcome,
  withoutRelatedTask
} from '../../protocol/translate/task-translate.ts'
import { isTaskOver, readTask } from '../../protocol/translate/tasks.ts'
import { type Clock, pause, timeoutSignal } from '../../time/clock.ts'
import { createMonotonicProgress, type MonotonicProgress } from '../call/monotonic-progress.ts'

/**
 * The longest that a task is waited for. Asked for as well: a server that is told no time may keep a task for ever,
 * or for a moment.
 */
export const maxTaskMs = 24 * 60 * 60_000
const cancelMs = 30_000

export const asTask = (request: Request): Request => withParam(request, 'task', { ttl: maxTaskMs })

/**
 * `tasks/result`, which blocks until the task has ended ("Result Retrieval" 3): longer than an upstream may be
 * silent. Repeated while the server says that the task runs, since reading a result changes nothing.
 * @param send sends to the server of the task
 * @param isWanted whether to ask again
 * @throws GatewayError upstream_*, cancelled
 */
export async function legacyTaskOutcome(
  taskId: string,
  send: (request: Request) => Promise<Result>,
  isWanted = (): boolean => true
): Promise<TaskOutcome> {
  for (;;) {
    try {
      return { result: await send({ method: 'tasks/result', params: { taskId } }) }
    } catch (error) {
      if (error instanceof RpcError) return { error: error.error }
      if (!(error instanceof GatewayError) || error.code !== 'upstream_timeout') throw error
      const task = readTask(await send({ method: 'tasks/get', params: { taskId } }))
      if (task === undefined || isTaskOver(task) || !isWanted()) throw error
    }
  }
}

/**
 * The states of a task, read as often as its server suggests. Ends when the signal is aborted, else with its reader.
 * @param known the first state, where it is known already
 */
export async function* taskStates(
  read: () => Promise<JsonObject>,
  clock: Clock,
  signal: AbortSignal,
  known?: JsonObject
): AsyncGenerator<JsonObject, void> {
  const since = clock.now()
  for (let task = known ?? (await read()); ; task = await read()) {
    yield task
    await pause(clock, pollDelayMs(task, clock.now() - since), signal)
    if (signal.aborted) return
  }
}

/** Tells a client what a task says of itself, as the progress of the call. */
export function createTaskProgress(progress: MonotonicProgress): (task: JsonObject) => void {
  let last: string | undefined
  return (task) => {
    const message = statusMessageOf(task)
    if (message !== undefined && message !== last) progress.say(message)
    last = message ?? last
  }
}

/** @throws RpcError the error that the task ended with */
export function resultOfTask(outcome: TaskOutcome): Result {
  if ('error' in outcome) throw new RpcError(outcome.error)
  return outcome.result
}

/**
 * Calls a tool as a task of 2025-11-25 for a client that knows no tasks: the call lasts as long as the task.
 * @throws RpcError the error that the task ended with; GatewayError upstream_*, cancelled
 */
export function callAsTask(
  upstream: Upstream,
  request: Request,
  client: Client,
  signal: AbortSignal,
  clock: Clock
): Promise<Result> {
  const { progressToken } = metaOf(request.params)
  const progress = createMonotonicProgress(client, progressToken)
  /** Aborted when the status of the task is not reported any more. */
  const reporting = new AbortController()
  let over = false
  const caller: Client = {
    ...client,
    notify(notification) {
      // The token stays good for the task, but the call is over.
      if (over) return
      // The server reports by itself, with numbers of its own.
      if (notification.method === 'notifications/progress') reporting.abort()
      progress.client.notify(notification)
    }
  }
  const since = clock.now()
  const making = upstream.request(asTask(request), caller, signal)

  async function report(known: JsonObject, get: Request): Promise<void> {
    const tell = createTaskProgress(progress)
    const read = (): Promise<Result> => upstream.request(get, noClient, reporting.signal)
    for await (const task of taskStates(read, clock, reporting.signal, known)) tell(task)
  }

  function cancel(taskId: string): void {
    if (!hasCapability(upstream.capabilities, ['tasks', 'cancel'])) return
    // Nobody is left to be told how that went.
    const request = { method: 'tasks/cancel', params: { taskId } }
    upstream.request(request, noClient, timeoutSignal(cancelMs)).catch(() => {})
  }

  // A function of its own, so that the request is not held in memory for as long as the task runs.
  async function follow(): Promise<Result> {
    const made = await making
    const { task } = made
    const state = readTask(task)
    if (state === undefined || !isObject(task)) return made
    const { taskId } = state
    // A server that tells of no progress takes nothing from the result.
    if (progressToken !== undefined && !reporting.signal.aborted)
      report(task, { method: 'tasks/get', params: { taskId } }).catch(() => {})
    try {
      const outcome = await legacyTaskOutcome(
        taskId,
        (each) => upstream.request(each, each.method === 'tasks/result' ? caller : noClient, signal),
        () => clock.now() - since < maxTaskMs
      ).catch((error: unknown) => {
        cancel(taskId)
        throw error
      })
      return withoutRelatedTask(resultOfTask(outcome))
    } finally {
      over = true
      reporting.abort()
    }
  }

  return follow()
}
