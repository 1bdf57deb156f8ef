// The methods of tasks (2025-11-25 basic/utilities/tasks), and the calls that create them.

import { GatewayError, RpcError } from '../protocol/errors.ts'
import type { UpstreamName } from '../protocol/ids.ts'
import { has } from '../protocol/merge.ts'
import type { Result } from '../protocol/messages.ts'
import { rewriteToolResult, without } from '../protocol/rewrite.ts'
import { atLeast } from '../protocol/revisions.ts'
import { ended, readTask, withCreatedTask, withTaskId, withTaskList } from '../protocol/tasks.ts'
import type { Call } from './call.ts'
import type { Route } from './catalog.ts'
import { methodNotFound, text } from './floor.ts'
import type { Floor, Handler } from './floor.ts'

export const taskHandlers: ReadonlyArray<readonly [method: string, handler: Handler]> = [
  ['tasks/get', (call, floor) => single(call, floor, [])],
  ['tasks/cancel', (call, floor) => single(call, floor, ['cancel'])],
  ['tasks/result', resultOf],
  ['tasks/list', list]
]

/** `tools/call` for the upstream: with its `task` only where that means something ("Task Support and Handling" 1). */
export function withKnownTask (call: Call, floor: Floor, route: Route): Call['request'] {
  if (call.request.params?.['task'] === undefined) return call.request
  const known = atLeast(call.live.session.record.revision, '2025-11-25') && floor.offers(call, route, 'tasks', 'requests', 'tools', 'call')
  return known ? call.request : without(call.request, 'task')
}

/** The result of a call that may have become a task. */
export async function created (call: Call, floor: Floor, route: Route, sent: Call['request'], result: Result): Promise<Result> {
  const task = sent.params?.['task'] === undefined ? undefined : readTask(result['task'])
  if (task === undefined) return result
  const source = floor.sourceOf(call, route)
  floor.tasks.noted(call.live, source, result['task'])
  await floor.tasks.created(call.live, source, task.taskId)
  return withCreatedTask(result, floor.tasks.toClient(call.live, source))
}

/** `tasks/get` and `tasks/cancel`, which answer with the task. */
async function single (call: Call, floor: Floor, capability: readonly string[]): Promise<Result> {
  check(call, floor, ...capability)
  const route = routeOf(call, floor)
  const result = await floor.forward(call, route, call.request)
  const source = floor.sourceOf(call, route)
  floor.tasks.noted(call.live, source, result)
  return withTaskId(result, floor.tasks.toClient(call.live, source))
}

/** Blocks until the task has ended ("Result Retrieval" 3), which may be longer than an upstream may be silent. */
async function resultOf (call: Call, floor: Floor): Promise<Result> {
  check(call, floor)
  const route = routeOf(call, floor)
  for (;;) {
    try {
      return rewriteToolResult(await floor.forward(call, route, call.request), floor.catalog(call).uriMap(route.upstream))
    } catch (error) {
      // Asking for a result changes nothing, so it may be asked again; a server that has no word on the task either is not waited for.
      if (!(error instanceof GatewayError) || error.code !== 'upstream_timeout') throw error
      const task = readTask(await floor.forward(call, route, { method: 'tasks/get', params: { taskId: text(call, 'taskId') } }))
      if (task === undefined || ended(task)) throw error
    }
  }
}

/**
 * The tasks of one upstream after the other. An upstream may know only the gateway's own credential, so it lists what other people
 * created too: shown is what this principal created here ("Task Isolation and Access Control").
 */
async function list (call: Call, floor: Floor): Promise<Result> {
  check(call, floor, 'list')
  const { members } = call.endpoint
  let [at, cursor] = startOf(call, floor, members.map(({ upstream }) => upstream))
  const mine = await floor.tasks.createdBy(call.live)
  for (; at < members.length; at++, cursor = undefined) {
    const { upstream } = members[at] as { upstream: UpstreamName }
    const route: Route = { upstream, name: '' }
    if (!floor.offers(call, route, 'tasks', 'list')) continue
    const { cursor: _theirs, ...params } = call.request.params ?? {}
    const page = await floor.forward(call, route, { method: 'tasks/list', params: cursor === undefined ? params : { ...params, cursor } }).catch((error: unknown) => {
      // One upstream that is down takes no list away from the others. A cursor that it refuses is the caller's to know.
      if (members.length === 1 || call.signal.aborted || (cursor !== undefined && error instanceof RpcError)) throw error
      return undefined
    })
    if (page === undefined) continue
    const source = floor.sourceOf(call, route)
    const result = withTaskList(page, (id) => mine(source, id), floor.tasks.toClient(call.live, source))
    const theirs = page['nextCursor']
    const next = typeof theirs === 'string' ? [upstream, theirs] : members[at + 1] === undefined ? undefined : [members[at + 1]?.upstream]
    // A page may be empty, where it held other people's tasks only; the client comes back for the next one.
    const { nextCursor: _replaced, ...rest } = result
    return next === undefined ? rest : { ...rest, nextCursor: floor.tasks.sealCursor(call.live, JSON.stringify(next)) }
  }
  return { tasks: [] }
}

/** Where the cursor says to go on: the member's place, and its own cursor. */
function startOf (call: Call, floor: Floor, members: readonly UpstreamName[]): [at: number, cursor: string | undefined] {
  const given = call.request.params?.['cursor']
  if (given === undefined) return [0, undefined]
  const opened = typeof given === 'string' ? floor.tasks.openCursor(call.live, given) : undefined
  const [upstream, cursor] = (opened === undefined ? [] : JSON.parse(opened)) as [UpstreamName?, string?]
  const at = upstream === undefined ? -1 : members.indexOf(upstream)
  if (at === -1) throw new GatewayError('invalid_params', 'Unknown or outdated cursor. Start the list again without a cursor.')
  return [at, cursor]
}

/** @throws GatewayError method_not_found where `initialize` did not promise it */
function check (call: Call, floor: Floor, ...capability: readonly string[]): void {
  const promised = atLeast(call.live.session.record.revision, '2025-11-25') && has(floor.catalog(call).capabilities, ['tasks', ...capability])
  if (!promised) throw methodNotFound(call.request.method)
}

/** @throws GatewayError invalid_params: the same for a forged id, a foreign one, and one of an upstream that is gone */
function routeOf (call: Call, floor: Floor): Route {
  const of = floor.tasks.upstreamOf(call.live, text(call, 'taskId'))
  if (of === undefined || !call.endpoint.members.some(({ upstream }) => upstream === of)) {
    throw new GatewayError('invalid_params', 'Unknown task: it is none that you created at this endpoint, or its upstream is gone.')
  }
  return { upstream: of, name: '' }
}
