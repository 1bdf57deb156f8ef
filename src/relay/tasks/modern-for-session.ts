// Tasks of clients of 2025-11-25 at servers of 2026-07-28, whose tasks are those of SEP-2663. There the client says
// which calls shall be tasks, here the server decides: a call that ended at once is stored as a task that has ended,
// and a task that the client did not ask for is waited for.

import { hash } from 'node:crypto'
import { parseOwnJson } from '../../protocol/json.ts'
import {
  GatewayError,
  isObject,
  type JsonObject,
  type Request,
  type Result,
  type TenantId
} from '../../protocol/messages.ts'
import type { Client, Upstream } from '../../protocol/seams.ts'
import { firstOf } from '../../protocol/own-text.ts'
import { isTaskOver, legacyTask, readTask, statusMessageOf, withRelatedTask } from '../../protocol/translate/tasks.ts'
import { bridgedTaskCountKey, bridgedTaskCountTtlMs, bridgedTaskKey } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import type { Clock } from '../../time/clock.ts'
import type { ServerRequestQuotas } from '../../upstream/rpc/server-requests.ts'
import type { LegacyCall } from '../call/call.ts'
import type { MonotonicProgress } from '../call/monotonic-progress.ts'
import {
  cancelledTask,
  cancelUnwanted,
  createModernTaskReader,
  createTaskProgress,
  maxTaskMs,
  resultOfTask,
  taskFault
} from './await-task.ts'

const maxResultTtlMs = 10 * 60_000

/** Bytes of JSON. As much as is held of a stream to a client. */
const maxStoredBytes = 4 * 1024 * 1024
/**
 * Of one person, whatever the client and the endpoint, by the size of the result, so that large results do not replace
 * small ones: 36 MiB in all.
 */
const slotsBySize = [
  { slots: 64, maxBytes: 64 * 1024 },
  { slots: 16, maxBytes: 1024 * 1024 },
  { slots: 4, maxBytes: maxStoredBytes }
]
/** The most cancellations of tasks of one person in the store; later ones replace earlier ones. */
const cancelledSlots = 1_024

export function createModernTasks({
  clock,
  store,
  quotas,
  newId,
  taskId
}: {
  readonly clock: Clock
  readonly store: Store
  readonly quotas: Pick<ServerRequestQuotas, 'open'>
  readonly newId: () => string
  readonly taskId: (call: LegacyCall, upstream: Upstream, id: string) => string
}) {
  const stored = createResultStore(store, newId)
  const reader = createModernTaskReader(clock, quotas, newId)

  return {
    /** `CreateTaskResult` of a call that became a task. @param wrapped whether its result will be wrapped */
    created: (upstream: Upstream, task: Result, wrapped: boolean): Result => ({
      task: { ...legacyTask(task), taskId: `${wrapped ? 'wrap' : 'as'}.${idOf(upstream, task)}` }
    }),

    /** Keeps the result of a call that is over as a task. @param wanted `task` of the request */
    async ended(call: LegacyCall, upstream: Upstream, result: Result, wanted: unknown): Promise<Result> {
      const wantedMs = isObject(wanted) && typeof wanted['ttl'] === 'number' ? wanted['ttl'] : 0
      const ttl = Math.min(wantedMs > 0 ? wantedMs : maxResultTtlMs, maxResultTtlMs)
      const now = new Date(clock.now()).toISOString()
      const status = result['isError'] === true ? 'failed' : 'completed'
      const task = { status, createdAt: now, lastUpdatedAt: now, ttl }
      const made = await stored.add(call, upstream, task, result, ttl).catch((error: unknown) => {
        // The error of the store would invite to try again, and the tool would run twice.
        throw new GatewayError(
          'internal',
          `Upstream ${upstream.name} has answered, but the gateway could not keep the answer as a task.`,
          { cause: error, data: { outcome: 'unknown', upstream: upstream.name } }
        )
      })
      if (made !== undefined) return { task: made }
      const what =
        `has done its work, but its answer is longer than ${maxStoredBytes / 1024 / 1024} MiB, the most that is kept ` +
        'as a task. Call it without "task" to have such answers'
      throw taskFault(upstream, what, { outcome: 'unknown' })
    },

    /**
     * Waits for a task that the client does not know; cancels it where the wait fails.
     * @returns the result of the call
     */
    async finished(call: LegacyCall, upstream: Upstream, task: Result, progress: MonotonicProgress): Promise<Result> {
      const id = idOf(upstream, task)
      const { client } = progress
      const tell = createTaskProgress(progress)
      const outcome = await reader
        .outcome({ call, upstream, id, client }, { known: task, tell })
        .catch((error: unknown) => {
          void cancelUnwanted(upstream, id)
          throw error
        })
      return resultOfTask(outcome)
    },

    /**
     * `tasks/get`, `tasks/result` and `tasks/cancel`, with an id that `created` or `ended` gave.
     * @param shape the result of a tool for the client
     */
    async handle(
      call: LegacyCall,
      upstream: Upstream,
      { method, params }: Request,
      client: Client,
      shape: (result: Result, wrapped: boolean) => Result
    ): Promise<Result> {
      const shownId = String(params?.['taskId'])
      // The id is the gateway's own, the upstream's, or the upstream's with a result that has to be wrapped.
      const [, idKind, id] = /^(own|as|wrap)\.(.*)$/s.exec(shownId) ?? []
      const clientId = taskId(call, upstream, shownId)
      const known = await stored.find(call, upstream, idKind === 'own' ? shownId : clientId)
      if (id === undefined || (idKind === 'own' && known === undefined))
        throw new GatewayError('invalid_params', 'Unknown task: its time is over, or newer ones have taken its place.')
      const of = { call, upstream, id, client }
      switch (method) {
        case 'tasks/get':
          return known?.task ?? { ...legacyTask(await reader.read(of)), taskId: shownId }
        case 'tasks/cancel': {
          const task = known === undefined ? await reader.read(of) : undefined
          const state = readTask(task)
          if (task === undefined || state === undefined || isTaskOver(state))
            throw new GatewayError('invalid_params', 'The task has ended: it cannot be cancelled any more.')
          await upstream.request({ method, params: { taskId: id } }, client, call.signal)
          // There it is a wish; here it is done when it is answered, and stays so ("Task Cancellation" of both).
          const lastUpdatedAt = new Date(clock.now()).toISOString()
          const cancelled = { ...legacyTask(task), taskId: shownId, status: 'cancelled', lastUpdatedAt }
          const { ttlMs } = task
          const keptMs = Math.min(maxTaskMs, typeof ttlMs === 'number' ? Math.max(1, ttlMs) : maxTaskMs)
          await stored.put(call, upstream, clientId, { task: inBrief(cancelled) }, keptMs)
          return cancelled
        }
        case 'tasks/result': {
          if (known === undefined) {
            const result = resultOfTask(await reader.outcome(of, { shown: clientId }))
            return withRelatedTask(shape(result, idKind === 'wrap'), shownId)
          }
          const { result } = known
          return withRelatedTask(resultOfTask(result === undefined ? { error: cancelledTask } : { result }), shownId)
        }
        default:
          throw new GatewayError('method_not_found', `Method not found: ${method}`)
      }
    }
  }
}

function idOf(upstream: Upstream, task: Result): string {
  const state = readTask(task)
  if (state === undefined) throw taskFault(upstream, 'made a task without an id')
  return state.taskId
}

/** Returns the part of a cancelled task that is kept: the members of 2025-11-25, in reasonable length. */
function inBrief(task: JsonObject): JsonObject {
  const { taskId, status, createdAt, lastUpdatedAt, ttl, pollInterval } = task
  const statusMessage = statusMessageOf(task)
  return {
    taskId,
    status,
    ...(statusMessage !== undefined && { statusMessage }),
    createdAt: firstOf(String(createdAt), 64),
    lastUpdatedAt,
    ttl,
    ...(pollInterval !== undefined && { pollInterval })
  }
}

const ownId = /^own\.(\d+-\d+)\./

/** Is it the id of a task that ended here? */
export const isStoredTaskId = (id: string): boolean => ownId.test(id)

interface StoredTask {
  readonly task: JsonObject
  readonly result?: Result
}

/**
 * Results of calls that ended at the gateway and are told as tasks, in the store. Each person has a fixed number of
 * slots, which are used in turn: a new task replaces the oldest, whichever process stored it, so that nothing has to be
 * counted or cleared. All throw GatewayError unavailable.
 */
function createResultStore(store: Store, newId: () => string) {
  const personOf = ({ session: { record } }: LegacyCall['session']): [TenantId, string, string, string] => {
    const { tenant, issuer, subject } = record.owner
    return [tenant, String(record.epoch), issuer, subject]
  }
  /** The same person does not see the task at another endpoint, or by another client. */
  const bindingOf = ({ session: { endpoint, session } }: LegacyCall, { name }: Upstream, id: string): string =>
    JSON.stringify([endpoint, session.record.owner.clientId, name, id])

  /** The id of a task of the gateway names its slot. Of one of a server it follows, and may be lost. */
  function keyOf(call: LegacyCall, upstream: Upstream, id: string): string {
    const [, own] = ownId.exec(id) ?? []
    const digits = hash('sha256', bindingOf(call, upstream, id)).slice(0, 8)
    return bridgedTaskKey(...personOf(call.session), own ?? `mark-${parseInt(digits, 16) % cancelledSlots}`)
  }

  /** @param stored without a result: the end of a task that its server knows under `id` */
  async function put(call: LegacyCall, upstream: Upstream, id: string, stored: StoredTask, ttlMs: number) {
    const entry = { ...stored, binding: bindingOf(call, upstream, id) }
    await store.set(keyOf(call, upstream, id), JSON.stringify(entry), { ttlMs })
  }

  return {
    put,
    /** @returns the task with the id that it got; undefined where the result is larger than `maxStoredBytes` */
    async add(call: LegacyCall, upstream: Upstream, task: JsonObject, result: Result, ttlMs: number) {
      const bytes = Buffer.byteLength(JSON.stringify(result))
      const at = slotsBySize.findIndex(({ maxBytes }) => bytes <= maxBytes)
      const size = slotsBySize[at]
      if (size === undefined) return undefined
      const countKey = bridgedTaskCountKey(...personOf(call.session), String(at))
      const turn = await store.count(countKey, 1, bridgedTaskCountTtlMs)
      const taskId = `own.${at}-${turn % size.slots}.${newId()}`
      const made = { taskId, ...task }
      await put(call, upstream, taskId, { task: made, result }, ttlMs)
      return made
    },
    /** Finds the task that `add` or `put` stored under this id. */
    async find(call: LegacyCall, upstream: Upstream, id: string): Promise<StoredTask | undefined> {
      const text = await store.get(keyOf(call, upstream, id))
      if (text === undefined) return undefined
      const entry = parseOwnJson(text) as StoredTask & { readonly binding: string }
      return entry.binding === bindingOf(call, upstream, id) ? entry : undefined
    }
  }
}
