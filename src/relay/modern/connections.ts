// Which connection serves a modern call. A modern server keeps nothing between requests, so over HTTP one connection per credential serves
// everybody, the listing too. A legacy one may keep state, and a process is one of a person's own: these get a connection per person, unless
// the operator says that it may be shared.

import { hash } from 'node:crypto'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { Implementation } from '../../protocol/messages.ts'
import { isModernRevision } from '../../protocol/revisions.ts'
import type { Upstream, UpstreamEvents } from '../../protocol/seams.ts'
import { nobody } from '../../upstream/exchange.ts'
import type { Pool } from '../../upstream/pool.ts'
import type { ModernCall, Place } from '../call.ts'
import type { Levels } from '../levels.ts'
import type { Listings } from '../listings.ts'
import { bindingOf } from './task-ids.ts'

export interface ModernConnectionsOptions {
  readonly pool: Pool
  readonly listings: Listings
  readonly levels: Levels
  /** Waits for upstreams of the endpoint that are not known yet. */
  readonly settled: (place: Place) => Promise<void>
  readonly clientInfo: Implementation
  readonly log: Log
}

export interface ModernConnections {
  /** @throws GatewayError upstream_unavailable, too_many */
  acquire (definition: UpstreamDefinition, call: ModernCall): Promise<Upstream>
}

export function createModernConnections ({ pool, listings, levels, settled, clientInfo, log }: ModernConnectionsOptions): ModernConnections {
  const eventsOf = (definition: UpstreamDefinition): UpstreamEvents => ({
    listChanged: (kind) => listings.changed(definition, kind),
    notification () {}, // It belongs to no request, and 2026-07-28 knows nobody else whom it could concern.
    ask: nobody.ask, // It declares nothing that could be asked.
    closed (reason) {
      log.warn({ upstream: definition.name, tenant: definition.tenant, reason: reason.message }, 'upstream connection of a caller ended')
    }
  })

  async function own (definition: UpstreamDefinition, call: ModernCall): Promise<Upstream> {
    // The clients of one person's legacy sessions have declared other things, and may be asked.
    const scope = `caller:${hash('sha256', JSON.stringify(bindingOf(call)), 'base64url')}`
    const upstream = await pool.acquire(definition, scope, { clientInfo, era: 'modern', capabilities: {} }, eventsOf(definition))
    return await speaking(upstream, call, false)
  }

  async function speaking (upstream: Upstream, { client }: ModernCall, shared: boolean): Promise<Upstream> {
    if (client.logLevel !== undefined && upstream.era === 'legacy') await levels.set(upstream, client.logLevel, shared)
    return upstream
  }

  return {
    async acquire (definition, call) {
      listings.use(definition)
      let listing = listings.peek(definition)
      if (listing === undefined) {
        await settled(call)
        listing = listings.peek(definition)
      }
      if (definition.isolation === 'shared') return await speaking(await listings.connect(definition), call, true)
      // What a process says of itself over stdio names no request: nobody shares one unless the operator says so.
      if (listing === undefined || !isModernRevision(listing.revision) || definition.type === 'stdio') return await own(definition, call)
      const upstream = await listings.connect(definition)
      // It was modern when it was listed: state that it may keep by now belongs to one person.
      return upstream.era === 'modern' ? upstream : await own(definition, call)
    }
  }
}
