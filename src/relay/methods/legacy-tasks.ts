// The methods of tasks (2025-11-25 basic/utilities/tasks).

import {
  GatewayError,
  RpcError,
  atLeast,
  type UpstreamName,
  type Request,
  type Result
} from '../../protocol/messages.ts'
import { hasCapability } from '../../protocol/methods.ts'
import { rewriteToolResult } from '../../protocol/translate/rewrite.ts'
import { withTaskId, withTaskList } from '../../protocol/translate/tasks.ts'
import { methodNotFound, stringParam, type LegacyCall } from '../call/call.ts'
import type { SessionConnection } from '../connections/session-connections.ts'
import { legacyTaskOutcome, resultOfTask } from '../tasks/await-task.ts'
import type { LegacyMethod } from './legacy.ts'
import { connect, forwardLegacy, send, type LegacyServices } from './legacy-forward.ts'
import { targetOf, type Target } from './shared.ts'

export const legacyTaskMethods: ReadonlyArray<readonly [method: string, handle: LegacyMethod]> = [
  ['tasks/get', (call, services) => getOrCancelTask(call, services, [])],
  ['tasks/cancel', (call, services) => getOrCancelTask(call, services, ['cancel'])],
  ['tasks/result', taskResult],
  ['tasks/list', listTasks]
]

/** `tasks/get` and `tasks/cancel` both answer with the task. */
async function getOrCancelTask(
  call: LegacyCall,
  services: LegacyServices,
  capability: readonly string[]
): Promise<Result> {
  const { session } = call
  checkOffered(call, services, ...capability)
  const connection = await connect(call, targetOfTask(call, services), services)
  const result = await send(call, connection, call.request, services)
  services.tasks.recordState(session, connection, result)
  return withTaskId(result, services.tasks.toClient(session, connection))
}

/** Blocks until the task has ended ("Result Retrieval" 3), which may be longer than an upstream may be silent. */
async function taskResult(call: LegacyCall, services: LegacyServices): Promise<Result> {
  checkOffered(call, services)
  const target = targetOfTask(call, services)
  const sendOne = (request: Request): Promise<Result> =>
    forwardLegacy(call, target, request.method === 'tasks/result' ? call.request : request, services)
  return rewriteToolResult(resultOfTask(await legacyTaskOutcome(stringParam(call, 'taskId'), sendOne)), target.uris)
}

/**
 * The tasks of one upstream after the other. An upstream that knows only the gateway's own credential lists what other
 * people created too: what this principal created here is shown ("Task Isolation and Access Control").
 */
async function listTasks(call: LegacyCall, services: LegacyServices): Promise<Result> {
  checkOffered(call, services, 'list')
  const { tasks, catalogs } = services
  const { session, endpoint } = call
  const { members } = endpoint
  let [at, cursor] = listPosition(
    call,
    services,
    members.map(({ upstream }) => upstream)
  )
  const createdHere = await tasks.createdBy(session)
  for (; at < members.length; at++, cursor = undefined) {
    const { upstream } = members[at] as { upstream: UpstreamName }
    if (!catalogs.offers(call, upstream, 'tasks', 'list')) continue
    const { cursor: _theirs, ...params } = call.request.params ?? {}
    const request = { method: 'tasks/list', params: cursor === undefined ? params : { ...params, cursor } }
    const target = targetOf(call, catalogs.of(call), { upstream, name: '' })
    let connection: SessionConnection
    let page: Result
    try {
      connection = await connect(call, target, services)
      page = await send(call, connection, request, services)
    } catch (error) {
      // An upstream that is down takes no list away from the others. A cursor that it refuses is reported to the
      // caller.
      if (members.length === 1 || call.signal.aborted || (cursor !== undefined && error instanceof RpcError))
        throw error
      continue
    }
    const source = connection
    const result = withTaskList(page, (id) => createdHere(source, id), tasks.toClient(session, source))
    const theirs = page['nextCursor']
    const following = members[at + 1]?.upstream
    const next = typeof theirs === 'string' ? [upstream, theirs] : following === undefined ? undefined : [following]
    // A page may be empty, where it held other people's tasks only; the client comes back for the next one.
    const { nextCursor: _replaced, ...rest } = result
    return next === undefined ? rest : { ...rest, nextCursor: tasks.sealCursor(session, JSON.stringify(next)) }
  }
  return { tasks: [] }
}

/** Reads a cursor: the index of the member, and the member's own cursor. */
function listPosition(
  { session, request }: LegacyCall,
  { tasks }: LegacyServices,
  members: readonly UpstreamName[]
): [at: number, cursor: string | undefined] {
  const given = request.params?.['cursor']
  if (given === undefined) return [0, undefined]
  const opened = typeof given === 'string' ? tasks.openCursor(session, given) : undefined
  const [upstream, cursor] = (opened === undefined ? [] : JSON.parse(opened)) as [UpstreamName?, string?]
  const at = upstream === undefined ? -1 : members.indexOf(upstream)
  if (at !== -1) return [at, cursor]
  throw new GatewayError('invalid_params', 'Unknown or outdated cursor. Start the list again without a cursor.')
}

/** @throws GatewayError method_not_found where `initialize` did not promise it */
function checkOffered(call: LegacyCall, { catalogs }: LegacyServices, ...capability: readonly string[]): void {
  const promised =
    atLeast(call.session.session.record.revision, '2025-11-25') &&
    hasCapability(catalogs.of(call).capabilities, ['tasks', ...capability])
  if (!promised) throw methodNotFound(call.request.method)
}

/** @throws GatewayError invalid_params: the same for a forged id, a foreign one, and one of an upstream that is gone */
function targetOfTask(call: LegacyCall, { tasks, catalogs }: LegacyServices): Target {
  const owner = tasks.upstreamOf(call.session, stringParam(call, 'taskId'))
  if (owner !== undefined && call.endpoint.members.some(({ upstream }) => upstream === owner)) {
    return targetOf(call, catalogs.of(call), { upstream: owner, name: '' })
  }
  const message = 'Unknown task: it is none that you created at this endpoint, or its upstream is gone.'
  throw new GatewayError('invalid_params', message)
}
