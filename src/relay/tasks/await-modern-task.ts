// Waiting for a task of SEP-2663 on behalf of a session: what the task asks for goes to the client of the session.

import { hash } from 'node:crypto'
import { GatewayError, isObject, type JsonObject, rpcCodes } from '../../protocol/messages.ts'
import type { Client, Upstream } from '../../protocol/seams.ts'
import { legacyOutcome, pollDelayMs, type TaskOutcome } from '../../protocol/translate/task-translate.ts'
import { readTask } from '../../protocol/translate/tasks.ts'
import { type Clock, pause } from '../../time/clock.ts'
import type { ServerRequestQuotas } from '../../upstream/rpc/server-requests.ts'
import type { LegacyCall } from '../call/call.ts'
import { askSession } from '../client/ask-session.ts'
import { maxTaskMs, taskStates } from './await-task.ts'

/** A task of a call, at the upstream that runs it. */
export interface TaskOfCall {
  readonly call: LegacyCall
  readonly upstream: Upstream
  /** As the upstream knows it. */
  readonly id: string
  readonly client: Client
}

export interface ModernTaskReader {
  /**
   * The task as it stands. Repeated where an answer was lost, since reading changes nothing.
   * @throws GatewayError, RpcError
   */
  read(task: TaskOfCall): Promise<JsonObject>
  /**
   * Waits for the end of the task.
   * @param options.known the task as it was created
   * @param options.shown its id as the client knows it, where it does
   * @param options.tell is given each state in between
   * @throws GatewayError upstream_protocol, cancelled; whatever `askSession` throws
   */
  outcome(
    task: TaskOfCall,
    options: { known?: JsonObject; shown?: string; tell?: (task: JsonObject) => void }
  ): Promise<TaskOutcome>
}

export interface ModernTaskReaderOptions {
  readonly clock: Clock
  readonly askRooms: Pick<ServerRequestQuotas, 'open'>
  readonly mint: () => string
}

const maxFailures = 3
/** How often a task may ask for input while one request waits for it. */
const maxInputRounds = 32

/** A task that was cancelled has no result; 2025-11-25 names no error for it. */
export const cancelledTask = { code: rpcCodes.internalError, message: 'The task was cancelled.' }

export function createModernTaskReader({ clock, askRooms, mint }: ModernTaskReaderOptions): ModernTaskReader {
  // Digests of input requests that are being answered: two requests that wait for one task must not both ask the
  // client.
  const asking = new Set<string>()

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

  async function outcome(
    of: TaskOfCall,
    { known, shown, tell }: { known?: JsonObject; shown?: string; tell?: (task: JsonObject) => void }
  ): Promise<TaskOutcome> {
    const { call, upstream, id, client } = of
    const own = new Set<string>()
    const since = clock.now()
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
      const inputResponses = await askSession(call, {
        upstream: upstream.name,
        requests: Object.fromEntries(open),
        retained: task,
        quotas: askRooms,
        newElicitationId: mint,
        ...(shown !== undefined && { taskId: shown })
      })
      await upstream.request({ method: 'tasks/update', params: { taskId: id, inputResponses } }, client, call.signal)
    }

    try {
      for await (const task of taskStates(() => read(of), clock, call.signal, known)) {
        if (task !== known) {
          const ended = legacyOutcome(task)
          if (ended !== undefined) return ended
          const { status, inputRequests } = task
          if (status === 'cancelled') return { error: cancelledTask }
          if (status === 'input_required' && isObject(inputRequests)) await answer(task, inputRequests)
        }
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

const passingErrors: ReadonlySet<string> = new Set(['upstream_timeout', 'upstream_lost', 'upstream_unavailable'])
const unknownOutcome = { outcome: 'unknown' }

export const taskFault = ({ name }: Upstream, what: string, data: JsonObject = {}): GatewayError =>
  new GatewayError('upstream_protocol', `Upstream ${name} ${what}.`, { data: { ...data, upstream: name } })
