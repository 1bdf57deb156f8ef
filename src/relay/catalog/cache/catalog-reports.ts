// What the log says of catalogs as they are built. Each thing once for an endpoint: a server changes its lists as often
// as it likes, and sessions and clients have catalogs of their own.

import type { Endpoint } from '../../../config/snapshot.ts'
import { digest } from '../../../store/keys.ts'
import type { Log } from '../../../observe/log.ts'
import type { Catalog } from '../catalog.ts'
import { maxMatchedInEndpoint } from '../resource-routes.ts'

/** The most names of one catalog in one line of the log. */
const maxReported = 20
/** Of names of an endpoint: a server that lists other ones each time fills no log, and hides nothing else. */
const maxLines = 100

export function createCatalogReports(log: Log) {
  const reported = new WeakMap<Endpoint, Set<string>>()
  const withManyTemplates = new WeakSet<Endpoint>()

  return (
    endpoint: Endpoint,
    { clashes, shortened, matchedOfEach }: Pick<Catalog, 'clashes' | 'shortened' | 'matchedOfEach'>
  ): void => {
    const lines = reported.get(endpoint) ?? new Set<string>()
    reported.set(endpoint, lines)
    const where = { tenant: endpoint.tenant, endpoint: endpoint.name }
    function once(level: 'warn' | 'info', fields: object, message: string): void {
      const line = digest(JSON.stringify([message, fields]))
      if (lines.has(line) || lines.size >= maxLines) return
      lines.add(line)
      log[level]({ ...where, ...fields }, message)
    }
    if (clashes.length > 0)
      once(
        'warn',
        { names: clashes.slice(0, maxReported) },
        'two upstreams claim the same name: it is the one whose prefix it begins with, or that the endpoint names ' +
          'first; give one of them another prefix, or rename the tool'
      )
    if (shortened.length > 0)
      once('info', { names: shortened.slice(0, maxReported) }, 'names that hosts would refuse are changed')
    if (matchedOfEach === Infinity || withManyTemplates.has(endpoint)) return
    withManyTemplates.add(endpoint)
    log.warn(
      { ...where, max: maxMatchedInEndpoint, ofEachUpstream: matchedOfEach },
      'the upstreams of an endpoint list more templates than a bare URI is tried on: it matches none of the rest; ' +
        'divide them among several endpoints'
    )
  }
}
