// The only place that makes HTTP dispatchers. One pool of sockets per connection definition, so that no two tenants and
// no two credentials ever share a socket; no redirects, no retries, no decompression.

import { Pool, type Dispatcher } from 'undici'
import type { HttpDefinition } from '../../config/snapshot.ts'

/** The way to one upstream's origin. */
export interface SocketPool {
  readonly dispatcher: Dispatcher
  /** The last one to release it closes the sockets. Idempotent. */
  release(): void
}

export interface Egress {
  open(definition: HttpDefinition): SocketPool
}

// An idle socket that the server closes just as we write is a call whose outcome nobody knows. Node's servers close
// after 5 s.
const keepAliveMs = 4_000
const keepAliveMarginMs = 2_000

export function createEgress(): Egress {
  const pools = new Map<string, { readonly pool: Pool; users: number }>()
  return {
    open(definition) {
      let shared = pools.get(definition.hash)
      if (shared === undefined) pools.set(definition.hash, (shared = { pool: poolFor(definition), users: 0 }))
      const { pool } = shared
      const mine = shared
      mine.users++
      let released = false
      return {
        dispatcher: pool,
        release() {
          if (released) return
          released = true
          if (--mine.users > 0) return
          pools.delete(definition.hash)
          // Nobody is left to hear how it went.
          pool.destroy().catch(() => {})
        }
      }
    }
  }
}

function poolFor(definition: HttpDefinition): Pool {
  return new Pool(new URL(definition.url).origin, {
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: keepAliveMs,
    keepAliveTimeoutThreshold: keepAliveMarginMs,
    connect: { timeout: definition.connectMs },
    // Whoever waits for an answer has a clock of its own (`Exchange`), which knows what counts as a sign of life.
    headersTimeout: 0,
    bodyTimeout: 0
  })
}
