// Composition of the modern relay. It holds nothing of any caller but the listen streams that are open.

import type { EndpointName, TenantId } from '../../protocol/ids.ts'
import type { Log } from '../../observe/log.ts'
import { observe } from '../../observe/calls.ts'
import { has } from '../../protocol/merge.ts'
import type { Implementation } from '../../protocol/messages.ts'
import type { Sealer } from '../../store/seal.ts'
import type { Pool } from '../../upstream/pool.ts'
import type { Place } from '../call.ts'
import { capabilitiesOf } from '../catalog.ts'
import { discreet } from '../discretion.ts'
import { definitionOf, find } from '../floor.ts'
import { freshFor } from '../freshness.ts'
import type { PaceClock } from '../pace.ts'
import type { Shared } from '../relay.ts'
import { whileWanted } from '../wanted.ts'
import { callerOf, cleaned } from './caller.ts'
import { withoutAnswers } from './calls.ts'
import { createModernConnections } from './connections.ts'
import { dispatch } from './dispatch.ts'
import type { ModernFloor } from './floor.ts'
import { createListen } from './listen.ts'
import { fitting } from './refusals.ts'
import type { ModernRelay } from './relay.ts'
import { createRequestStates } from './state.ts'
import { createTaskIds } from './task-ids.ts'
import { shapeTask } from './tasks.ts'

export interface ModernRelayOptions {
  readonly pool: Pool
  readonly sealer: Sealer
  /** Of the legacy relay. */
  readonly shared: Shared
  readonly clock: PaceClock
  /** The time of day, for what expires. */
  readonly wall: { now (): number }
  /** Between 0 and 1. */
  readonly random: () => number
  readonly log: Log
  readonly clientInfo: Implementation
  /** Where an endpoint stands now; undefined when it or its tenant is gone. */
  readonly placeOf: (tenant: TenantId, endpoint: EndpointName) => Place | undefined
}

export function createModernRelay (options: ModernRelayOptions): ModernRelay {
  const { pool, sealer, shared: { listings, catalogs, levels }, clock, wall, random, log, clientInfo, placeOf } = options
  const taskIds = createTaskIds(sealer)
  const settled = oncePer(catalogs.settled)
  const connections = createModernConnections({ pool, listings, levels, settled, clientInfo, log })

  const floor: ModernFloor = {
    catalog: (place) => catalogs.of(place, undefined),
    settled,
    reread: oncePer(catalogs.reread),
    definitionOf,
    offers (place, { upstream }, ...path) {
      const listing = listings.peek(definitionOf(place, upstream))
      return listing === undefined || has(capabilitiesOf(listing), path)
    },
    connect: (call, upstream) => whileWanted(connections.acquire(definitionOf(call, upstream), call), call.signal),
    async forward (call, { upstream: name }, request) {
      const definition = definitionOf(call, name)
      let over = false
      try {
        const upstream = await floor.connect(call, name)
        const outgoing = cleaned(request)
        const result = await upstream.request(upstream.era === 'modern' ? outgoing : withoutAnswers(outgoing), callerOf(call, name, () => over), call.signal)
        return upstream.era === 'modern' && typeof result['resultType'] === 'string' ? result : { ...result, resultType: 'complete' }
      } catch (error) {
        throw discreet(fitting(error, name, call.client.capabilities), definition)
      } finally {
        over = true
      }
    },
    ttlOf: (place, ...lists) => freshFor(catalogs.definitionsOf(place).map((definition) => listings.peek(definition)), lists, clock.now()),
    shapeTask: (call, upstream, task) => shapeTask(call, upstream, task, { taskIds, map: catalogs.of(call, undefined).uriMap(upstream) }),
    taskIds,
    states: createRequestStates(sealer, wall)
  }
  const { listen, retain, close } = createListen({ floor, listings, definitionsOf: catalogs.definitionsOf, placeOf, clock, random, log })

  return {
    call: (call) => observe(call, { clock, log, route: (name) => catalogs.of(call, undefined).tool(name) }, () => dispatch(call, floor)),
    async schemaOf (place, tool) {
      await find(place, floor, (catalog) => catalog.tool(tool))
      return floor.catalog(place).schemaOf(tool)
    },
    listen,
    retain,
    close
  }
}

/** One call asks several times on its way, the door for the schema of its tool and then the relay; what it has waited for in vain, it does not wait for again. */
function oncePer (wait: (place: Place) => Promise<void>): (place: Place) => Promise<void> {
  const waits = new WeakMap<Place, Promise<void>>()
  return (place) => {
    const known = waits.get(place) ?? wait(place)
    waits.set(place, known)
    return known
  }
}
