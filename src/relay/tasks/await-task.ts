// Waiting for tasks at upstreams: for the result of one of 2025-11-25 (`tasks/result`), for the next state of any, and
// for the end of one of SEP-2663, which may ask the client of a session for input.

import { hash } from 'node:crypto'
import {
  GatewayError,
  isObject,
  type JsonObject,
  type Request,
  type Result,
  rpcCodes,
  RpcError
} from '../../protocol/messages.ts'
import { holdMemory } from '../../limits/memory.ts'
import { hasCapability, tasksExtension } from '../../protocol/methods.ts'
import { type Client, noClient, type Upstream } from '../../protocol/seams.ts'
import {
  isTaskOver,
  legacyOutcome,
  pollDelayMs,
  readTask,
  statusMessageOf,
  type TaskOutcome
} from '../../protocol/translate/tasks.ts'
import { type Clock, pause, timeoutSignal } from '../../time/clock.ts'
import type { ServerRequestQuotas } from '../../upstream/rpc/server-requests.ts'
import type { LegacyCall } from '../call/call.ts'
import type { MonotonicProgress } from '../call/monotonic-progress.ts'
import { askSession } from '../client/ask-session.ts'

/**
 * The longest that a task is waited for. Asked for as well: a server that is told no time may keep a task for ever,
 * or for a moment.
 */
export const maxTaskMs = 24 * 60 * 60_000
/** The failures of `tasks/get` in a row after which the wait ends. */
const maxFailures = 3
/** The most rounds of input of a task while one request waits for it. */
const maxInputRounds = 32

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

/** What is held of a task while it is waited for, which may be for a day: its server may say much of it. */
export function waitedFor(task: JsonObject): JsonObject {
  const pollInterval = task['pollIntervalMs'] ?? task['pollInterval']
  const statusMessage = statusMessageOf(task)
  return {
    taskId: readTask(task)?.taskId,
    ...(typeof pollInterval === 'number' && { pollInterval }),
    ...(statusMessage !== undefined && { statusMessage })
  }
}

/** @throws RpcError the error that the task ended with */
export function resultOfTask(outcome: TaskOutcome): Result {
  if ('error' in outcome) throw new RpcError(outcome.error)
  return outcome.result
}

/** A task of a call, at the upstream that runs it. */
interface TaskOfCall {
  readonly call: LegacyCall
  readonly upstream: Upstream
  /** The id of the task as the upstream knows it. */
  readonly id: string
  readonly client: Client
}

const cancelMs = 5_000

/**
 * Cancels a task that nobody waits for any more. Never rejects: where it fails, the server works on for nobody until
 * the time of the task is over.
 */
export async function cancelUnwanted(upstream: Upstream, taskId: string): Promise<void> {
  if (upstream.era === 'legacy' && !hasCapability(upstream.capabilities, ['tasks', 'cancel'])) return
  const client: Client = { ...noClient, era: upstream.era, capabilities: { extensions: { [tasksExtension]: {} } } }
  const request = { method: 'tasks/cancel', params: { taskId } }
  await upstream.request(request, client, timeoutSignal(cancelMs)).catch(() => {})
}

/** A task that was cancelled has no result; 2025-11-25 names no error for it. */
export const cancelledTask = { code: rpcCodes.internalError, message: 'The task was cancelled.' }

const passingErrors: ReadonlySet<string> = new Set(['upstream_timeout', 'upstream_lost', 'upstream_unavailable'])

/** Reads tasks of SEP-2663 on behalf of sessions: what a task asks for goes to the client of the session. */
export function createModernTaskReader(clock: Clock, quotas: Pick<ServerRequestQuotas, 'open'>, newId: () => string) {
  // Digests of input requests that are being answered: two requests that wait for one task must not both ask the
  // client.
  const asking = new Set<string>()

  /**
   * The task as it stands. Repeated where an answer was lost, since reading changes nothing.
   * @throws GatewayError, RpcError
   */
  async function read({ call, upstream, id, client }: TaskOfCall): Promise<JsonObject> {
    for (let failures = 1; ; failures++) {
      try {
        const task = await upstream.request({ method: 'tasks/get', params: { taskId: id } }, client, call.signal)
        if (readTask(task) === undefined || (task['status'] === 'completed' && !isObject(task['result'])))
          throw taskFault(upstream, 'answered tasks/get with what is no task')
        return task
      } catch (error) {
        const passing = error instanceof GatewayError && passingErrors.has(error.code)
        if (!passing || failures === maxFailures) throw error
        await pause(clock, pollDelayMs({}), call.signal)
      }
    }
  }

  /**
   * Waits for the end of the task.
   * @param options.known the task as it was created, as `waitedFor` gives it
   * @param options.shown its id as the client knows it, where it does
   * @param options.tell is given each state in between
   * @throws GatewayError upstream_protocol, cancelled; whatever `askSession` throws
   */
  async function outcome(
    of: TaskOfCall,
    { known, shown, tell }: { known?: JsonObject; shown?: string; tell?: (task: JsonObject) => void }
  ): Promise<TaskOutcome> {
    const { call, upstream, id, client } = of
    const own = new Set<string>()
    const since = clock.now()
    const last: { ended?: TaskOutcome | undefined } = {}
    let rounds = 0

    /**
     * Keys are unique as long as the task lives ("Task Update Requests"), and remain for a while after they were
     * answered.
     */
    async function answer(task: JsonObject, inputRequests: JsonObject): Promise<void> {
      const nameOf = (key: string): string =>
        hash('sha256', JSON.stringify([call.session.key, upstream.name, id, key]), 'base64url')
      const open = Object.entries(inputRequests).filter(([key]) => !asking.has(nameOf(key)))
      if (open.length === 0) return
      if (++rounds > maxInputRounds)
        throw taskFault(upstream, `asks for input more than ${maxInputRounds} times during one task`, unknownOutcome)
      for (const [key] of open) {
        asking.add(nameOf(key))
        own.add(nameOf(key))
      }
      const held = holdMemory(call.session.memory.share)
      const release = held.retain()
      try {
        const inputResponses = await askSession(call, {
          upstream: upstream.name,
          requests: Object.fromEntries(open),
          retained: task,
          quotas,
          held,
          newElicitationId: newId,
          ...(shown !== undefined && { taskId: shown })
        })
        await upstream.request({ method: 'tasks/update', params: { taskId: id, inputResponses } }, client, call.signal)
      } finally {
        release()
      }
    }

    async function next(): Promise<JsonObject> {
      const task = await read(of)
      const { status, inputRequests } = task
      last.ended = status === 'cancelled' ? { error: cancelledTask } : legacyOutcome(task)
      if (status === 'input_required' && isObject(inputRequests)) await answer(task, inputRequests)
      return waitedFor(task)
    }

    try {
      for await (const task of taskStates(next, clock, call.signal, known)) {
        if (last.ended !== undefined) return last.ended
        if (clock.now() - since > maxTaskMs)
          throw taskFault(upstream, 'works on a task for more than a day', unknownOutcome)
        tell?.(task)
      }
      throw new GatewayError('cancelled', 'The request was cancelled.')
    } finally {
      for (const name of own) asking.delete(name)
    }
  }

  return { read, outcome }
}

const unknownOutcome = { outcome: 'unknown' }

export const taskFault = ({ name }: Upstream, what: string, data: JsonObject = {}): GatewayError =>
  new GatewayError('upstream_protocol', `Upstream ${name} ${what}.`, { data: { ...data, upstream: name } })
