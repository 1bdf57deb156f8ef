// Which upstreams have no sessions.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Upstream } from '../../protocol/seams.ts'

/** Upstreams that gave the last connection, over HTTP in the older era, no session: no request depends on another. */
export function createSessionless() {
  const known = new Set<string>()
  return {
    /** False while nothing is known. */
    has: ({ hash }: UpstreamDefinition): boolean => known.has(hash),
    /** @returns the connection */
    seen({ hash }: UpstreamDefinition, upstream: Upstream): Upstream {
      if (upstream.hasSession === false) known.add(hash)
      else known.delete(hash)
      return upstream
    },
    retain(hashes: Pick<ReadonlySet<string>, 'has'>): void {
      for (const hash of known) if (!hashes.has(hash)) known.delete(hash)
    }
  }
}
