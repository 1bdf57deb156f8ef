// The public names of tools or prompts of one endpoint. The configuration alone decides whose namespace a name is in:
// an upstream that takes the prefix of another would otherwise get its calls while that one is down.

import type { Endpoint } from '../../config/snapshot.ts'
import type { JsonObject, PublicName } from '../../protocol/messages.ts'
import type { Route } from './catalog.ts'

interface Namespaces {
  /** Does the name begin with the prefix of this member, and with no longer one? */
  isWithin(name: string, prefix: string): boolean
  /**
   * Does the name of an entry of this member begin with a longer prefix of another one? `a__b` and its `x` mean
   * `a__b__x`, not `a` and its `b__x`.
   */
  isElsewhere(name: string, prefix: string): boolean
}

export function namespacesOf({ members, separator }: Endpoint): Namespaces {
  const startOf = (prefix: string): string => (prefix === '' ? '' : prefix + separator)
  const starts = members.map(({ prefix }) => startOf(prefix))
  const isElsewhere = (name: string, prefix: string): boolean =>
    starts.some((start) => start.length > startOf(prefix).length && name.startsWith(start))
  return { isElsewhere, isWithin: (name, prefix) => name.startsWith(startOf(prefix)) && !isElsewhere(name, prefix) }
}

interface PublicNames {
  readonly collisions: ReadonlySet<string>
  route(name: string): Route | undefined
  entry(name: string): JsonObject | undefined
  entries(): JsonObject[]
  /** A name that is claimed twice leads nowhere: an upstream would be called in the name of the other. */
  add(name: PublicName, route: Route, entry: JsonObject): void
}

export function createPublicNames(): PublicNames {
  const known = new Map<string, { readonly route: Route; readonly entry: JsonObject }>()
  const collisions = new Set<string>()
  return {
    collisions,
    route: (name) => known.get(name)?.route,
    entry: (name) => known.get(name)?.entry,
    entries: () => [...known.values()].map(({ entry }) => entry),
    add(name, route, entry) {
      const taken = known.get(name)?.route
      if (collisions.has(name)) return
      if (taken === undefined) known.set(name, { route, entry })
      else if (taken.upstream !== route.upstream || taken.name !== route.name) {
        known.delete(name)
        collisions.add(name)
      }
    }
  }
}
