// Names of connections, for as long as they live. A server that numbers its tasks begins anew with each process, so that the id of a task
// means nothing but on the connection that it was made on.

import type { Upstream } from '../protocol/seams.ts'

export interface NamedConnection {
  readonly upstream: Upstream
  /** As the pool knows the connection and those after it. */
  readonly scope: string
}

export interface ConnectionNames {
  /** The same each time for the same connection, and never that of another one, be it of another process of ours. */
  nameOf (connection: NamedConnection): string
  /** @returns undefined where it is gone; what it returns may have ended too */
  find (name: string): NamedConnection | undefined
  /** The newest connection of the scope that has a name. */
  newest (scope: string): string | undefined
}

/** @param newId random */
export function createConnectionNames (newId: () => string): ConnectionNames {
  const names = new WeakMap<Upstream, string>()
  // Whoever uses a connection keeps it; that somebody may ask for it by name is no use.
  const named = new Map<string, { readonly upstream: WeakRef<Upstream>, readonly scope: string }>()
  const newest = new Map<string, string>()
  const forgotten = new FinalizationRegistry<string>((name) => {
    const scope = named.get(name)?.scope
    named.delete(name)
    if (scope !== undefined && newest.get(scope) === name) newest.delete(scope)
  })

  return {
    nameOf ({ upstream, scope }) {
      const known = names.get(upstream)
      if (known !== undefined) return known
      const name = newId()
      names.set(upstream, name)
      named.set(name, { upstream: new WeakRef(upstream), scope })
      newest.set(scope, name)
      forgotten.register(upstream, name)
      return name
    },
    find (name) {
      const found = named.get(name)
      const upstream = found?.upstream.deref()
      return found === undefined || upstream === undefined ? undefined : { upstream, scope: found.scope }
    },
    newest: (scope) => newest.get(scope)
  }
}
