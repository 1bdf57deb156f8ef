// The lists that a plan assumes. What an upstream with a changed definition will list is unknown before it is
// connected, so its present tools are assumed: a change of a timeout, for example, takes no tool away.

import type { Snapshot, UpstreamDefinition } from '../../../config/snapshot.ts'
import { createCatalogCache } from '../../../relay/catalog/cache/catalog-cache.ts'
import { definitionsOf } from '../../../relay/catalog/client-catalogs.ts'
import type { Listing } from '../../../upstream/listing/listing.ts'
import type { AdminServices } from '../../route.ts'
import type { EndpointPlace } from '../rule-effects.ts'

export type AssumedLists = ReturnType<typeof assumedLists>

/** @param before what is configured now */
export function assumedLists(before: Snapshot, services: Pick<AdminServices, 'listings' | 'catalogOf' | 'log'>) {
  const { listings, log } = services
  const assumed = (definition: UpstreamDefinition): Listing | undefined => {
    if (listings.peek(definition) !== undefined) return undefined
    const old = before.tenants.get(definition.tenant)?.upstreams.get(definition.name)
    return old === undefined || old.hash === definition.hash ? undefined : listings.peek(old)
  }
  const peek = (definition: UpstreamDefinition): Listing | undefined => listings.peek(definition) ?? assumed(definition)
  const counts = { asked: 0, misses: 0 }
  const ofPlan = createCatalogCache(
    { catalogs: counts, peek, last: peek, version: () => counts, changeCount: () => 0 },
    log
  )
  const namesOf = (place: EndpointPlace | undefined, isMeant: (definition: UpstreamDefinition) => boolean): string[] =>
    place === undefined ? [] : definitionsOf(place).flatMap((each) => (isMeant(each) ? [String(each.name)] : []))
  return {
    catalogOf: ((viewer, ...rest) =>
      (viewer.snapshot === before ? services.catalogOf : ofPlan)(viewer, ...rest)) satisfies AdminServices['catalogOf'],
    /** Upstreams of an endpoint whose tools are those of their definition of now. */
    mayChange: (place: EndpointPlace | undefined) => namesOf(place, (each) => assumed(each) !== undefined),
    /** Returns the upstreams whose tools are not known. */
    unknown: (place: EndpointPlace | undefined) => namesOf(place, (each) => peek(each) === undefined)
  }
}
