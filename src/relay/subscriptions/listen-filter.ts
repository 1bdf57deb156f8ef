// What a client asks `subscriptions/listen` for: read strictly, bounded, and compared with what it is granted. Pure.

import { type ClientCapabilities, GatewayError, isObject, type JsonObject } from '../../protocol/messages.ts'
import { hasCapability, tasksExtension } from '../../protocol/methods.ts'
import type { ListKind } from '../../protocol/seams.ts'

const maxEntries = 1_000
const maxLength = 8_192

/** `params.notifications`, complete. */
export interface ListenFilter {
  readonly kinds: ReadonlySet<ListKind>
  /** As the client writes them, each once. */
  readonly uris: readonly string[]
  readonly taskIds: readonly string[]
}

const memberOf = {
  tools: 'toolsListChanged',
  prompts: 'promptsListChanged',
  resources: 'resourcesListChanged'
} as const
const kinds = Object.keys(memberOf) as ListKind[]

/**
 * Unknown members are no error: the acknowledgment leaves them out (2026-07-28 basic/patterns/subscriptions).
 * @throws GatewayError invalid_params; missing_capability for `taskIds` of a client that declares no tasks (SEP-2663)
 */
export function readListenFilter(params: JsonObject | undefined, capabilities: ClientCapabilities): ListenFilter {
  const filter = params?.['notifications']
  if (!isObject(filter)) throw invalid('"params.notifications" must be an object; {} where nothing is wanted.')
  const wanted = {
    kinds: new Set(kinds.filter((kind) => flag(filter, memberOf[kind]))),
    uris: strings(filter, 'resourceSubscriptions'),
    taskIds: strings(filter, 'taskIds')
  }
  if (wanted.taskIds.length > 0 && !hasCapability(capabilities, ['extensions', tasksExtension])) {
    throw new GatewayError(
      'missing_capability',
      `Notifications about tasks are for clients that declare the extension ${tasksExtension} in ` +
        'io.modelcontextprotocol/clientCapabilities.',
      {
        data: { requiredCapabilities: { extensions: { [tasksExtension]: {} } } }
      }
    )
  }
  return wanted
}

/** `notifications` of an acknowledgment or of a request to an upstream. */
export function notificationFilterOf({ kinds: listed, uris, taskIds }: ListenFilter): JsonObject {
  return {
    ...Object.fromEntries(kinds.filter((kind) => listed.has(kind)).map((kind) => [memberOf[kind], true])),
    ...(uris.length === 0 ? {} : { resourceSubscriptions: uris }),
    ...(taskIds.length === 0 ? {} : { taskIds })
  }
}

/** What a server has acknowledged of what it was asked for. Anything beyond that is ignored. */
export function acknowledgedFilter(
  asked: Pick<ListenFilter, 'uris' | 'taskIds'>,
  params: JsonObject | undefined
): Pick<ListenFilter, 'uris' | 'taskIds'> {
  const filter = params?.['notifications']
  const listed = (name: string): ReadonlySet<unknown> => {
    const list = isObject(filter) ? filter[name] : undefined
    return new Set(Array.isArray(list) ? list : [])
  }
  const [uris, taskIds] = [listed('resourceSubscriptions'), listed('taskIds')]
  return { uris: asked.uris.filter((uri) => uris.has(uri)), taskIds: asked.taskIds.filter((id) => taskIds.has(id)) }
}

function flag(filter: JsonObject, name: string): boolean {
  const value = filter[name]
  if (value !== undefined && typeof value !== 'boolean') throw invalid(`"notifications.${name}" must be a boolean.`)
  return value === true
}

function strings(filter: JsonObject, name: string): string[] {
  const list = filter[name]
  if (list === undefined) return []
  if (
    !Array.isArray(list) ||
    list.length > maxEntries ||
    !list.every((entry) => typeof entry === 'string' && entry.length <= maxLength)
  ) {
    throw invalid(
      `"notifications.${name}" must be an array of at most ${maxEntries} strings of at most ${maxLength} characters.`
    )
  }
  return [...new Set(list as string[])]
}

const invalid = (message: string): GatewayError => new GatewayError('invalid_params', message)
