// What a client asks `subscriptions/listen` for: read strictly, bounded, and compared with what it is granted. Pure.

import { GatewayError } from '../../protocol/errors.ts'
import { has, tasksExtension } from '../../protocol/merge.ts'
import { isObject } from '../../protocol/messages.ts'
import type { ClientCapabilities, JsonObject } from '../../protocol/messages.ts'
import type { ListKind } from '../../protocol/seams.ts'

const maxEntries = 1_000
const maxLength = 8_192

/** `params.notifications`, complete: what is absent is not wanted. */
export interface Wanted {
  readonly kinds: ReadonlySet<ListKind>
  /** As the client writes them, each once. */
  readonly uris: readonly string[]
  readonly taskIds: readonly string[]
}

const memberOf = { tools: 'toolsListChanged', prompts: 'promptsListChanged', resources: 'resourcesListChanged' } as const
const kinds = Object.keys(memberOf) as ListKind[]

/**
 * Members that we do not know are left out of the acknowledgment (2026-07-28 basic/patterns/subscriptions), so they are no error.
 * @throws GatewayError invalid_params; missing_capability for `taskIds` of a client that declares no tasks (SEP-2663)
 */
export function readFilter (params: JsonObject | undefined, capabilities: ClientCapabilities): Wanted {
  const filter = params?.['notifications']
  if (!isObject(filter)) throw invalid('"params.notifications" must be an object; {} where nothing is wanted.')
  const wanted = {
    kinds: new Set(kinds.filter((kind) => flag(filter, memberOf[kind]))),
    uris: strings(filter, 'resourceSubscriptions'),
    taskIds: strings(filter, 'taskIds')
  }
  if (wanted.taskIds.length > 0 && !has(capabilities, ['extensions', tasksExtension])) {
    throw new GatewayError('missing_capability', `Notifications about tasks are for clients that declare the extension ${tasksExtension} in io.modelcontextprotocol/clientCapabilities.`, {
      data: { requiredCapabilities: { extensions: { [tasksExtension]: {} } } }
    })
  }
  return wanted
}

/** The same in the words of the protocol, for an acknowledgment or an upstream. What is not wanted is left out. */
export function filterOf ({ kinds: listed, uris, taskIds }: Wanted): JsonObject {
  return {
    ...Object.fromEntries(kinds.filter((kind) => listed.has(kind)).map((kind) => [memberOf[kind], true])),
    ...uris.length === 0 ? {} : { resourceSubscriptions: uris },
    ...taskIds.length === 0 ? {} : { taskIds }
  }
}

/** What a server has acknowledged of what it was asked for. Whatever it says beyond that does not count. */
export function acknowledged (asked: Pick<Wanted, 'uris' | 'taskIds'>, params: JsonObject | undefined): Pick<Wanted, 'uris' | 'taskIds'> {
  const filter = params?.['notifications']
  const listed = (name: string): ReadonlySet<unknown> => {
    const list = isObject(filter) ? filter[name] : undefined
    return new Set(Array.isArray(list) ? list : [])
  }
  const [uris, taskIds] = [listed('resourceSubscriptions'), listed('taskIds')]
  return { uris: asked.uris.filter((uri) => uris.has(uri)), taskIds: asked.taskIds.filter((id) => taskIds.has(id)) }
}

function flag (filter: JsonObject, name: string): boolean {
  const value = filter[name]
  if (value !== undefined && typeof value !== 'boolean') throw invalid(`"notifications.${name}" must be a boolean.`)
  return value === true
}

function strings (filter: JsonObject, name: string): string[] {
  const list = filter[name]
  if (list === undefined) return []
  if (!Array.isArray(list) || list.length > maxEntries || !list.every((entry) => typeof entry === 'string' && entry.length <= maxLength)) {
    throw invalid(`"notifications.${name}" must be an array of at most ${maxEntries} strings of at most ${maxLength} characters.`)
  }
  return [...new Set(list as string[])]
}

const invalid = (message: string): GatewayError => new GatewayError('invalid_params', message)
