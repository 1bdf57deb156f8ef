// Composition of the modern relay. It holds nothing of any caller but its open listen streams and its parked calls.

import type { EndpointName, TenantId, UpstreamName } from '../../protocol/ids.ts'
import type { Log } from '../../observe/log.ts'
import { observe } from '../../observe/calls.ts'
import { has } from '../../protocol/merge.ts'
import type { Implementation, Result } from '../../protocol/messages.ts'
import type { Client } from '../../protocol/seams.ts'
import type { Bus } from '../../session/bus.ts'
import type { Sealer } from '../../store/seal.ts'
import type { Pool } from '../../upstream/pool.ts'
import { isCaller } from '../call.ts'
import type { ModernCall, Place, Seen } from '../call.ts'
import { capabilitiesOf } from '../catalog.ts'
import type { Catalog } from '../catalog.ts'
import { createConnectionNames } from '../connection-names.ts'
import { discreet } from '../discretion.ts'
import { definitionOf, find } from '../floor.ts'
import { freshFor } from '../freshness.ts'
import type { PaceClock } from '../pace.ts'
import { profilesOf } from '../profiles.ts'
import type { Profile } from '../profiles.ts'
import { shareOf } from '../share.ts'
import type { Shared } from '../shared.ts'
import { whileWanted } from '../wanted.ts'
import { callerOf, cleaned } from './caller.ts'
import { withQuestions, withoutAnswers } from './calls.ts'
import { createModernConnections } from './connections.ts'
import type { Heard } from './connections.ts'
import { dispatch } from './dispatch.ts'
import type { ModernFloor } from './floor.ts'
import { createHeldTasks } from './held-tasks.ts'
import { createListen } from './listen.ts'
import { createOldSubscriptions } from './old-subscriptions.ts'
import { createOldTasks } from './old-tasks.ts'
import { createParking } from './parking.ts'
import { profileOf as declaredBy } from './profile.ts'
import { fitting } from './refusals.ts'
import type { ModernRelay } from './relay.ts'
import { createRequestStates } from './state.ts'
import { createTaskIds } from './task-ids.ts'
import { ofTask, shapeTask } from './tasks.ts'

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
  /** This process, among those on the same store. */
  readonly node: string
  /** To the other ones. */
  readonly bus: Pick<Bus, 'ask' | 'serve'>
  /** Random, and long enough that nobody guesses one. */
  readonly newId: () => string
  /** For how long a call waits for input of its client; default ten minutes. */
  readonly parkedMs?: number | undefined
}

export function createModernRelay (options: ModernRelayOptions): ModernRelay {
  const { pool, sealer, shared: { listings, catalogs, levels, updates }, clock, wall, random, log, clientInfo, placeOf, node, bus, newId, parkedMs } = options
  const taskIds = createTaskIds(sealer)
  const old = createOldSubscriptions({ touch: pool.touch, wantedElsewhere: updates.wants, clock, random, log })
  updates.join(old)
  const held = createHeldTasks({ clock, touch: pool.touch, newId, log })
  const heard: Heard = { notification: old.notification, lost: old.lost, ask: held.ask, needs: held.needs }
  const declared = profilesOf(true, ({ capabilities }: Client, endpoint) => declaredBy(capabilities, endpoint))
  const profileOf = (seen: Seen): Profile | undefined => isCaller(seen) ? declared(seen.client, seen.endpoint, () => shareOf(seen.principal)) : undefined
  const catalogOf = (seen: Seen): Catalog => catalogs.of(seen, undefined, profileOf(seen))
  const settled = oncePer((seen) => catalogs.settled(seen, profileOf(seen)))
  const connections = createModernConnections({ pool, listings, levels, settled, clientInfo, clock, heard, log })
  const states = createRequestStates(sealer, wall)
  const oldTasks = createOldTasks({ connections, names: createConnectionNames(newId), listings, taskIds, held, node, forward: (call, upstream, there) => parking.forward(call, upstream, there), clock })
  const parking = createParking({ states, node, bus, placeOf, clock, wall, newId, log, serveOther: (call) => ofTask(call, floor), lifetimeMs: parkedMs })

  /** Errors as the caller may have them. */
  async function fittingOf (call: ModernCall, name: UpstreamName, run: () => Promise<Result>): Promise<Result> {
    const definition = definitionOf(call, name)
    try {
      return await run()
    } catch (error) {
      throw discreet(fitting(error, name, call.client.capabilities), definition)
    }
  }

  const floor: ModernFloor = {
    catalog: catalogOf,
    settled,
    reread: oncePer(catalogs.reread),
    definitionOf,
    offers (call, { upstream }, ...path) {
      const listing = listings.peek(definitionOf(call, upstream), profileOf(call))
      return listing === undefined || has(capabilitiesOf(listing), path)
    },
    async forward (call, { upstream: name }, request) {
      return await fittingOf(call, name, async () => {
        const lease = await whileWanted(connections.lease(definitionOf(call, name), call), call.signal)
        const outgoing = cleaned(request)
        if (lease.upstream.era === 'legacy') return await parking.run(call, oldTasks.dress(definitionOf(call, name), lease, outgoing), withoutAnswers(outgoing))
        let over = false
        try {
          const result = await lease.upstream.request(outgoing, callerOf(call, name, () => over), call.signal)
          return typeof result['resultType'] === 'string' ? withQuestions(call, states, name, result) : { ...result, resultType: 'complete' }
        } finally {
          over = true
          lease.release()
        }
      })
    },
    resume: (call, { upstream }, parked, answers) => fittingOf(call, upstream, () => parking.resume(call, upstream, parked, answers)),
    onlyAsTask: (call, { upstream, name }) => oldTasks.only(definitionOf(call, upstream), name),
    makeTask: (call, { upstream }, request) => fittingOf(call, upstream, () => oldTasks.create(call, definitionOf(call, upstream), withoutAnswers(cleaned(request)))),
    oldTask: (call, task) => fittingOf(call, task.upstream, () => oldTasks.handle(call, definitionOf(call, task.upstream), task, catalogOf(call).uriMap(task.upstream))),
    ttlOf: (place, ...lists) => freshFor(catalogs.definitionsOf(place).map((definition) => listings.peek(definition)), lists, clock.now()),
    shapeTask: (call, upstream, task) => shapeTask(call, upstream, task, { taskIds, map: catalogOf(call).uriMap(upstream) }),
    taskIds,
    states
  }
  const { listen, retain, close } = createListen({ floor, listings, old, watch: async (call, upstream) => await connections.watch(definitionOf(call, upstream), call), definitionsOf: catalogs.definitionsOf, profileOf, placeOf, clock, random, log })

  return {
    call: (call) => observe(call, { clock, log, route: (name) => catalogOf(call).tool(name) }, () => dispatch(call, floor)),
    async schemaOf (call, tool) {
      await find(call, floor, (catalog) => catalog.tool(tool))
      return catalogOf(call).schemaOf(tool)
    },
    listen,
    retain (hashes) {
      retain()
      parking.retain()
      connections.retain(hashes)
    },
    async close () {
      held.close()
      old.close()
      close()
      await parking.close()
    }
  }
}

/** One call asks several times on its way, the door for the schema of its tool and then the relay; what it has waited for in vain, it does not wait for again. */
function oncePer (wait: (call: Seen) => Promise<void>): (call: Seen) => Promise<void> {
  const waits = new WeakMap<Seen, Promise<void>>()
  return (call) => {
    const known = waits.get(call) ?? wait(call)
    waits.set(call, known)
    return known
  }
}
