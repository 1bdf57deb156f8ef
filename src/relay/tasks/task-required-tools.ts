// Tools of legacy upstreams that work only as tasks of 2025-11-25 (`execution.taskSupport: required`): which they are,
// and how they are called for clients that know no tasks.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import {
  isModernRevision,
  isObject,
  type JsonObject,
  metaOf,
  type Request,
  type Result
} from '../../protocol/messages.ts'
import { type Client, noClient, type Upstream } from '../../protocol/seams.ts'
import { hasCapability } from '../../protocol/methods.ts'
import { withParam } from '../../protocol/translate/rewrite.ts'
import { readTask, withoutRelatedTask } from '../../protocol/translate/tasks.ts'
import { type Clock, timeoutSignal } from '../../time/clock.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import { createMonotonicProgress } from '../call/monotonic-progress.ts'
import type { Listings } from '../catalog/listings.ts'
import { createTaskProgress, legacyTaskOutcome, maxTaskMs, resultOfTask, taskStates, waitedFor } from './await-task.ts'

const cancelMs = 30_000

/** The names of such tools, by listing. */
const taskTools = new WeakMap<Listing, ReadonlySet<unknown>>()

/** In a server without the capability, `taskSupport` means nothing ("Tool-Level Negotiation"). */
function taskToolsOf(listing: Listing): ReadonlySet<unknown> {
  const known = taskTools.get(listing)
  if (known !== undefined) return known
  const { revision, capabilities, tools } = listing
  const able = !isModernRevision(revision) && hasCapability(capabilities, ['tasks', 'requests', 'tools', 'call'])
  const required = tools.filter(({ execution }) => isObject(execution) && execution['taskSupport'] === 'required')
  const names = new Set(able ? required.map(({ name }) => name) : [])
  taskTools.set(listing, names)
  return names
}

/** Does the tool work only as a task? @param tool as the upstream knows it */
export const requiresTask = (listings: Pick<Listings, 'all'>, definition: UpstreamDefinition, tool: unknown): boolean =>
  // Views differ in which tools they hold, not in what a tool of one name is.
  listings.all(definition).some((listing) => taskToolsOf(listing).has(tool))

export const asTask = (request: Request): Request => withParam(request, 'task', { ttl: maxTaskMs })

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
  const making = upstream
    .request(asTask(request), caller, signal)
    .then((made) => (isObject(made['task']) && readTask(made['task']) ? { task: waitedFor(made['task']) } : { made }))

  async function report(known: JsonObject, get: Request): Promise<void> {
    const tell = createTaskProgress(progress)
    const read = (): Promise<JsonObject> => upstream.request(get, noClient, reporting.signal).then(waitedFor)
    for await (const task of taskStates(read, clock, reporting.signal, known)) tell(task)
  }

  // A function of its own, so that the request is not held in memory for as long as the task runs.
  async function follow(): Promise<Result> {
    const { made, task } = await making
    if (made !== undefined) return made
    const taskId = String(task['taskId'])
    const params = { taskId }
    // A server that tells of no progress takes nothing from the result.
    if (progressToken !== undefined && !reporting.signal.aborted)
      report(task, { method: 'tasks/get', params }).catch(() => {})
    try {
      const outcome = await legacyTaskOutcome(
        taskId,
        (each) => upstream.request(each, each.method === 'tasks/result' ? caller : noClient, signal),
        () => clock.now() - since < maxTaskMs
      ).catch((error: unknown) => {
        if (hasCapability(upstream.capabilities, ['tasks', 'cancel'])) {
          // Nobody is left to be told how that went.
          upstream.request({ method: 'tasks/cancel', params }, noClient, timeoutSignal(cancelMs)).catch(() => {})
        }
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
