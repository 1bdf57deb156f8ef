// The connections of the pool, found by definition and scope, by scope alone, or by id.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Upstream } from '../../protocol/seams.ts'
import type { Clock } from '../../time/clock.ts'
import type { PooledConnection } from './pooled-connection.ts'

export const connectionKeyOf = ({ hash }: UpstreamDefinition, scope: string): string => `${hash}\n${scope}`

export type OpenConnections = ReturnType<typeof createOpenConnections>

export function createOpenConnections(clock: Pick<Clock, 'now'>) {
  /** Connections that are given out, or being opened. */
  const current = new Map<string, PooledConnection>()
  /** The same by scope. A scope may be a session, and there are too many sessions to search all connections. */
  const scopes = new Map<string, readonly PooledConnection[]>()
  /** Connections that are no longer given out but not closed yet. */
  const retired = new Set<PooledConnection>()
  const ofScope = (scope: string): readonly PooledConnection[] => scopes.get(scope) ?? []

  return {
    current: current as ReadonlyMap<string, PooledConnection>,
    retired,
    ofScope,
    add(connection: PooledConnection): void {
      current.set(connection.key, connection)
      scopes.set(connection.scope, [...ofScope(connection.scope), connection])
    },
    /** @returns false if the connection was removed or replaced before */
    remove(connection: PooledConnection): boolean {
      const { key, scope } = connection
      if (current.get(key) !== connection) return false
      current.delete(key)
      const others = ofScope(scope).filter((each) => each !== connection)
      if (others.length > 0) scopes.set(scope, others)
      else scopes.delete(scope)
      return true
    },
    touch(scope: string, only?: UpstreamDefinition): void {
      const now = clock.now()
      const touched = only === undefined ? ofScope(scope) : [current.get(connectionKeyOf(only, scope))]
      for (const connection of touched) if (connection !== undefined) connection.touchedAt = now
    },
    lent({ id }: Pick<Upstream, 'id'>, scope: string, ms: number, isForNewCalls: boolean): boolean {
      const now = clock.now()
      const found = [...ofScope(scope), ...(isForNewCalls ? [] : retired)].find(({ upstream }) => upstream?.id === id)
      if (found === undefined) return false
      found.touchedAt = now
      found.lentUntil = Math.max(found.lentUntil, now + ms)
      return true
    },
    peek(definition: UpstreamDefinition, scope: string): Upstream | undefined {
      const key = connectionKeyOf(definition, scope)
      return current.get(key)?.upstream ?? [...retired].find((each) => each.key === key)?.upstream
    },
    find(id: string): { readonly upstream: Upstream; readonly scope: string } | undefined {
      for (const { upstream, scope } of [...current.values(), ...retired])
        if (upstream?.id === id) return { upstream, scope }
      return undefined
    }
  }
}
