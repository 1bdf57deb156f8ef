// The methods of MCP that the gateway knows, each in one row: who sends it, in which eras, and what it needs. In
// 2026-07-28 a server sends no requests of its own: what it may ask a client goes into input requests
// (basic/patterns/mrtr). Notifications that belong to one message (progress, cancelled, initialized, acknowledged) are
// the transports' business and not listed.

import type { Era } from './messages.ts'
import type { ListKind } from './seams.ts'

export interface Method {
  readonly method: string
  readonly kind: 'request' | 'notification'
  readonly sender: 'client' | 'server' | 'either'
  readonly eras: readonly Era[]
  /** Path of the capability that the receiver of a request must have declared; empty: it needs none. */
  readonly capability: readonly string[]
  /** Member of `params` that the header Mcp-Name repeats (2026-07-28 "Standard Request Headers"; tasks: SEP-2663). */
  readonly nameParam?: string
  /** A server may answer it with `input_required` (2026-07-28 basic/patterns/mrtr). */
  readonly takesInput?: true
  /** The list that a notification reports as changed. */
  readonly changedList?: ListKind
  /** A server may send it on a `subscriptions/listen` stream (2026-07-28 basic/patterns/subscriptions). */
  readonly onListenStream?: true
}

export const tasksExtension = 'io.modelcontextprotocol/tasks'

type Eras = Method['eras']
type Extras = Partial<Method>
const both: Eras = ['legacy', 'modern']
const legacy: Eras = ['legacy']
const modern: Eras = ['modern']
const modernTasks = ['extensions', tasksExtension]

const row =
  (kind: Method['kind'], sender: Method['sender']) =>
  (eras: Eras, method: string, capability: readonly string[] = [], extras: Extras = {}): Method => ({
    method,
    kind,
    sender,
    eras,
    capability,
    ...extras
  })

const fromClient = row('request', 'client')
const fromServer = row('request', 'server')
const fromEither = row('request', 'either')
const notification = row('notification', 'server')

const table: readonly Method[] = [
  fromClient(legacy, 'initialize'),
  fromClient(modern, 'server/discover'),
  fromEither(legacy, 'ping'),
  fromClient(both, 'tools/list', ['tools']),
  fromClient(both, 'tools/call', ['tools'], { nameParam: 'name', takesInput: true }),
  fromClient(both, 'prompts/list', ['prompts']),
  fromClient(both, 'prompts/get', ['prompts'], { nameParam: 'name', takesInput: true }),
  fromClient(both, 'resources/list', ['resources']),
  fromClient(both, 'resources/templates/list', ['resources']),
  fromClient(both, 'resources/read', ['resources'], { nameParam: 'uri', takesInput: true }),
  fromClient(legacy, 'resources/subscribe', ['resources', 'subscribe']),
  fromClient(legacy, 'resources/unsubscribe', ['resources', 'subscribe']),
  fromClient(modern, 'subscriptions/listen'),
  fromClient(both, 'completion/complete', ['completions']),
  fromClient(legacy, 'logging/setLevel', ['logging']),
  // 2025-11-25 basic/utilities/tasks: the receiver of the request that became a task keeps the task, be it the server
  // or the client.
  fromEither(legacy, 'tasks/get', ['tasks']),
  fromEither(legacy, 'tasks/result', ['tasks']),
  fromEither(legacy, 'tasks/list', ['tasks']),
  fromEither(legacy, 'tasks/cancel', ['tasks']),
  fromClient(modern, 'tasks/get', modernTasks, { nameParam: 'taskId' }),
  fromClient(modern, 'tasks/update', modernTasks, { nameParam: 'taskId' }),
  fromClient(modern, 'tasks/cancel', modernTasks, { nameParam: 'taskId' }),
  fromServer(both, 'sampling/createMessage', ['sampling']),
  fromServer(both, 'elicitation/create', ['elicitation']),
  fromServer(both, 'roots/list', ['roots']),
  notification(both, 'notifications/message'),
  notification(both, 'notifications/tools/list_changed', [], { changedList: 'tools', onListenStream: true }),
  notification(both, 'notifications/prompts/list_changed', [], { changedList: 'prompts', onListenStream: true }),
  notification(both, 'notifications/resources/list_changed', [], { changedList: 'resources', onListenStream: true }),
  notification(both, 'notifications/resources/updated', [], { onListenStream: true }),
  notification(legacy, 'notifications/elicitation/complete'),
  notification(legacy, 'notifications/tasks/status'),
  notification(modern, 'notifications/tasks', [], { onListenStream: true })
]

const select = (era: Era, kind: Method['kind'], sender: 'client' | 'server'): ReadonlyMap<string, Method> =>
  new Map(
    table
      .filter((each) => each.kind === kind && each.eras.includes(era) && [sender, 'either'].includes(each.sender))
      .map((each) => [each.method, each])
  )

/** By name: what a client of 2026-07-28 may request. */
export const modernClientRequests = select('modern', 'request', 'client')
/** By name: what a legacy server may request of a client. */
export const legacyServerRequests = select('legacy', 'request', 'server')
/** By name: what a modern server may ask a client by an input request. */
export const inputRequestMethods = select('modern', 'request', 'server')
/** By name: what a legacy server may report outside of any call. */
export const legacyServerNotifications = select('legacy', 'notification', 'server')
/** By name: what a modern server may report on the stream of a call or of `subscriptions/listen`. */
export const modernServerNotifications = select('modern', 'notification', 'server')
