// Remembers which upstreams have no sessions.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Upstream } from '../../protocol/seams.ts'

/** The legacy HTTP upstreams whose latest handshake gave no session: none of their requests depends on another. */
export function createSessionless() {
  const known = new Set<string>()
  return {
    /** Whether the upstream has no sessions; false also before its first connection. */
    has: ({ hash }: UpstreamDefinition): boolean => known.has(hash),
    /** Notes whether a connection has a session. @returns the connection */
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
