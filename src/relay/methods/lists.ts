// The four lists of an endpoint, page by page, for either era.

import type { RequestInContext } from '../call/call.ts'
import type { Result, Revision } from '../../protocol/messages.ts'
import { pageOf } from '../../protocol/pagination.ts'
import type { Catalog, ListName } from '../catalog/catalog.ts'

export interface List {
  readonly method: string
  readonly list: ListName
  /** The member of the result that holds the entries. */
  readonly member: string
  /** The member of an entry that names it. */
  readonly name: string
}

export const lists: readonly List[] = [
  { method: 'tools/list', list: 'tools', member: 'tools', name: 'name' },
  { method: 'prompts/list', list: 'prompts', member: 'prompts', name: 'name' },
  { method: 'resources/list', list: 'resources', member: 'resources', name: 'uri' },
  { method: 'resources/templates/list', list: 'templates', member: 'resourceTemplates', name: 'uriTemplate' }
]

/** @throws GatewayError invalid_params on a cursor that is none */
export function listPage(
  call: RequestInContext,
  { list, member, name }: List,
  catalog: Catalog,
  revision: Revision
): Result {
  const { entries, nextCursor } = pageOf(
    catalog.list(list, revision),
    call.request.params?.['cursor'],
    call.snapshot.limits.pageSize,
    (entry) => String(entry[name])
  )
  return nextCursor === undefined ? { [member]: entries } : { [member]: entries, nextCursor }
}
