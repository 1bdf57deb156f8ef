// Which upstream serves which part of what a listen stream asks for.

import type { UpstreamName } from '../../protocol/ids.ts'
import type { Catalog } from '../catalog.ts'
import type { Wanted } from './listen-filter.ts'
import type { OpenedTask } from './task-ids.ts'

/** From what an upstream knows to what the client wrote. */
export interface Names {
  readonly uris: Map<string, string[]>
  readonly taskIds: Map<string, string>
}

/** What leads nowhere is left out. */
export function routesOf (view: Pick<Catalog, 'resource'>, { uris, taskIds }: Wanted, openTask: (id: string) => OpenedTask | undefined): Map<UpstreamName, Names> {
  const routes = new Map<UpstreamName, Names>()
  const namesAt = (upstream: UpstreamName): Names => {
    const names = routes.get(upstream) ?? { uris: new Map<string, string[]>(), taskIds: new Map<string, string>() }
    routes.set(upstream, names)
    return names
  }
  for (const uri of uris) {
    const route = view.resource(uri)
    if (route === undefined) continue
    const names = namesAt(route.upstream)
    names.uris.set(route.name, [...names.uris.get(route.name) ?? [], uri])
  }
  for (const taskId of taskIds) {
    const opened = openTask(taskId)
    // Of older ones it can only be asked.
    if (opened !== undefined && opened.old === undefined) namesAt(opened.upstream).taskIds.set(opened.id, taskId)
  }
  return routes
}
