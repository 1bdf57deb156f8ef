// Which upstream serves which part of what a listen stream asks for.

import type { UpstreamName } from '../../protocol/messages.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { ListenFilter } from './listen-filter.ts'
import type { TaskRef } from '../tasks/caller-tasks.ts'

/** URIs and task ids as the upstream knows them -> as the client wrote them. */
export interface ListenNames {
  readonly uris: Map<string, string[]>
  readonly taskIds: Map<string, string>
}

/** URIs and task ids without an upstream are left out. */
export function listenRoutes(
  view: Pick<Catalog, 'resource'>,
  { uris, taskIds }: ListenFilter,
  openTask: (id: string) => TaskRef | undefined
): Map<UpstreamName, ListenNames> {
  const routes = new Map<UpstreamName, ListenNames>()
  const namesAt = (upstream: UpstreamName): ListenNames => {
    const names = routes.get(upstream) ?? { uris: new Map<string, string[]>(), taskIds: new Map<string, string>() }
    routes.set(upstream, names)
    return names
  }
  for (const uri of uris) {
    const route = view.resource(uri)
    if (route === undefined) continue
    const names = namesAt(route.upstream)
    names.uris.set(route.name, [...(names.uris.get(route.name) ?? []), uri])
  }
  for (const taskId of taskIds) {
    const opened = openTask(taskId)
    // Tasks of legacy upstreams can only be polled.
    if (opened !== undefined && opened.legacy === undefined) namesAt(opened.upstream).taskIds.set(opened.id, taskId)
  }
  return routes
}
