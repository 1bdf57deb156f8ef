// Calls of tools that work only as tasks of 2025-11-25 (basic/utilities/tasks), from the side of whoever makes them.

import { GatewayError, RpcError } from '../../protocol/errors.ts'
import { has } from '../../protocol/merge.ts'
import { isObject, metaOf } from '../../protocol/messages.ts'
import type { JsonObject, Request, Result } from '../../protocol/messages.ts'
import { withParam } from '../../protocol/rewrite.ts'
import type { Client, Upstream } from '../../protocol/seams.ts'
import { pollAfter, statusOf, withoutRelatedTask } from '../../protocol/task-bridge.ts'
import type { TaskOutcome } from '../../protocol/task-bridge.ts'
import { ended, readTask } from '../../protocol/tasks.ts'
import { nobody } from '../../upstream/exchange.ts'
import { pause } from '../pace.ts'
import type { PaceClock } from '../pace.ts'
import { createRising } from '../rising.ts'

/** Asked for, since a server that is not told may keep a task for ever, or for a moment. Nor is one waited for any longer. */
const lifetimeMs = 24 * 60 * 60_000
const silentMs = 30_000

export const asTask = (request: Request): Request => withParam(request, 'task', { ttl: lifetimeMs })

/**
 * What a task ended with, or will: `tasks/result` blocks until then, which may be longer than an upstream may be silent.
 * @param wanted is it still to be asked for again?
 * @throws GatewayError upstream_*, cancelled
 */
export async function outcomeOf (upstream: Upstream, taskId: string, client: Client, signal: AbortSignal, wanted = (): boolean => true): Promise<TaskOutcome> {
  for (;;) {
    try {
      return { result: await upstream.request({ method: 'tasks/result', params: { taskId } }, client, signal) }
    } catch (error) {
      if (error instanceof RpcError) return { error: error.error }
      if (!(error instanceof GatewayError) || error.code !== 'upstream_timeout') throw error
      const task = readTask(await upstream.request({ method: 'tasks/get', params: { taskId } }, nobody, signal))
      if (task === undefined || ended(task) || !wanted()) throw error
    }
  }
}

/** For a client that knows no tasks: its call lasts as long as the task, and what the task says of itself is its progress. */
export function finished (upstream: Upstream, request: Request, client: Client, signal: AbortSignal, clock: PaceClock): Promise<Result> {
  const { progressToken } = metaOf(request.params)
  /** Aborted when there is nothing more for us to report. */
  const over = new AbortController()
  let answered = false
  const rising = createRising(client, progressToken)
  const heard: Client = {
    ...client,
    notify (notification) {
      // Its token is good for the task, but the call is over.
      if (answered) return
      // It reports by itself, with numbers of its own.
      if (notification.method === 'notifications/progress') over.abort()
      rising.client.notify(notification)
    }
  }
  const since = clock.now()
  const making = upstream.request(asTask(request), heard, signal)

  /** Nobody waits for the task any more. */
  function giveUp (taskId: string): void {
    if (!has(upstream.capabilities, ['tasks', 'cancel'])) return
    // Nobody is left to be told how that went.
    upstream.request({ method: 'tasks/cancel', params: { taskId } }, nobody, AbortSignal.timeout(silentMs)).catch(() => {})
  }

  async function report (taskId: string, task: JsonObject): Promise<void> {
    let said: string | undefined
    while (!over.signal.aborted) {
      const status = statusOf(task)
      if (status !== undefined && status !== said) rising.say(status)
      said = status
      await pause(clock, pollAfter(task, clock.now() - since), over.signal)
      if (!over.signal.aborted) task = await upstream.request({ method: 'tasks/get', params: { taskId } }, nobody, over.signal)
    }
  }

  // By itself, so that what was asked for is not kept for as long as it takes.
  async function follow (): Promise<Result> {
    const made = await making
    const { task } = made
    const state = readTask(task)
    if (state === undefined || !isObject(task)) return made
    const { taskId } = state
    // A server that tells of no progress takes nothing from the result.
    if (progressToken !== undefined) report(taskId, task).catch(() => {})
    try {
      const outcome = await outcomeOf(upstream, taskId, heard, signal, () => clock.now() - since < lifetimeMs).catch((error: unknown) => {
        giveUp(taskId)
        throw error
      })
      if ('error' in outcome) throw new RpcError(outcome.error)
      return withoutRelatedTask(outcome.result)
    } finally {
      answered = true
      over.abort()
    }
  }

  return follow()
}
