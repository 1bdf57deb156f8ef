// How calls went in the last hour, in steps of ten seconds, from the same record as metrics: for the plots of whoever
// looks now. Of this process and in its memory only; what is older is told by metrics.

import { countedName, type CallOutcome, type ObservedCall } from '../../observe/calls.ts'
import type { Clock } from '../../time/clock.ts'
import { callsSince, countCall, errorsSince, minuteOf, minutesKept, spanOf, stepsOf, type Row } from './call-steps.ts'

/** The most tenants that are counted by themselves; beyond, and beyond the names of one tenant, all are `other`. */
const maxTenants = 64
const maxRows = 192
const maxNames = 40

/** They stay open as long as their client likes: how long says nothing. */
const openEnded: ReadonlySet<string> = new Set(['subscriptions/listen'])

export const seriesKinds = ['tenant', 'endpoint', 'upstream', 'tool'] as const
export type SeriesKind = (typeof seriesKinds)[number]

interface TenantRows {
  readonly all: Row
  readonly parts: Readonly<Record<Exclude<SeriesKind, 'tenant'>, Map<string, Row>>>
}

interface NamedRows {
  readonly tenant: string
  readonly name: string
  readonly rows: readonly Row[]
}

export type Series = ReturnType<typeof createSeries>

const other = 'other'

/** @param wall the time of day */
export function createSeries(wall: Pick<Clock, 'now'>) {
  const tenants = new Map<string, TenantRows>()
  /** Calls of tenants that are not counted by themselves. */
  const others: Row = new Map()
  let rows = 0

  function tenantRows(tenant: string): TenantRows | undefined {
    const known = tenants.get(tenant)
    if (known !== undefined) return known
    if (tenants.size >= maxTenants || rows >= maxRows) forgetIdle()
    if (tenants.size >= maxTenants || rows >= maxRows) return undefined
    rows++
    const made = { all: new Map(), parts: { endpoint: new Map(), upstream: new Map(), tool: new Map() } }
    tenants.set(tenant, made)
    return made
  }

  function rowOf(parts: Map<string, Row>, name: string): Row {
    const known = parts.get(name)
    if (known !== undefined) return known
    const isFull = (): boolean => parts.size >= maxNames || rows >= maxRows
    if (isFull()) forgetIdle()
    if (isFull()) name = other
    else rows++
    const row = parts.get(name) ?? new Map()
    parts.set(name, row)
    return row
  }

  /** The rows of the last call of a route, by the route in the catalog. */
  const known = new WeakMap<
    object,
    Readonly<Record<'tenant' | 'endpoint' | 'method', string>> & {
      /** How often rows had been forgotten by then: these may have been among them. */
      readonly since: number
      readonly rows: readonly Row[]
    }
  >()
  let forgotten = 0

  /** The minute in which rows without a call within the hour were forgotten. */
  let forgottenAt = -1
  function forgetIdle(): void {
    const now = minuteOf(wall.now())
    if (now === forgottenAt) return
    forgottenAt = now
    forgotten++
    const isIdle = (row: Row): boolean => [...row.values()].every(({ at }) => at <= now - minutesKept)
    for (const [tenant, { all, parts }] of tenants) {
      for (const part of Object.values(parts))
        for (const [name, row] of part) {
          if (!isIdle(row)) continue
          part.delete(name)
          if (name !== other) rows--
        }
      if (!isIdle(all)) continue
      tenants.delete(tenant)
      rows--
    }
  }

  function rowsOf({ tenant, endpoint, request: { method }, record }: ObservedCall): readonly Row[] {
    const route = record?.route
    const last = route && known.get(route)
    if (
      last !== undefined &&
      last.since === forgotten &&
      last.tenant === tenant.id &&
      last.endpoint === endpoint.name &&
      last.method === method
    )
      return last.rows
    const found = tenantRows(tenant.id)
    if (found === undefined) return [others]
    const { all, parts } = found
    if (route === undefined) return [all, rowOf(parts.endpoint, endpoint.name)]
    const name = method === 'tools/call' ? countedName(route) : undefined
    const tool = name && `${route.upstream}/${name}`
    const rows = [all, rowOf(parts.endpoint, endpoint.name), rowOf(parts.upstream, route.upstream)]
    if (tool !== undefined) rows.push(rowOf(parts.tool, tool))
    // What counts as `other` gets a row of its own as soon as there is room.
    if (parts.endpoint.has(endpoint.name) && parts.upstream.has(route.upstream) && (!tool || parts.tool.has(tool)))
      known.set(route, { tenant: tenant.id, endpoint: endpoint.name, method, since: forgotten, rows })
    return rows
  }

  function callEnded(call: ObservedCall, { outcome, ms }: CallOutcome, now = wall.now()): void {
    if (openEnded.has(call.request.method)) return
    countCall(rowsOf(call), now, outcome, ms)
  }

  function named(kind: SeriesKind, isWanted: (tenant: string) => boolean): NamedRows[] {
    return [...tenants]
      .filter(([tenant]) => isWanted(tenant))
      .flatMap(([tenant, { all, parts }]) =>
        kind === 'tenant'
          ? [{ tenant, name: tenant, rows: [all] }]
          : [...parts[kind]].map(([name, row]) => ({ tenant, name, rows: [row] }))
      )
  }

  return {
    meter: { callEnded },
    /**
     * Those with the most calls by name, the rest together, and all of them.
     * @param wanted tenants; undefined: all
     * @param only the one of this name, and what is counted as `other`, in which it may be, too
     */
    read(kind: SeriesKind, wanted: ReadonlySet<string> | undefined, minutes: number, top: number, only?: string) {
      const now = wall.now()
      const isWanted = (tenant: string): boolean => wanted?.has(tenant) !== false
      const totals = named('tenant', isWanted).flatMap(({ rows: all }) => all)
      if (wanted === undefined) totals.push(others)
      const parts = named(kind, isWanted)
      if (kind === 'tenant' && wanted === undefined) parts.push({ tenant: '', name: other, rows: [others] })
      const since = minuteOf(now) - minutes
      const sorted = parts
        .map((part) => ({ part, calls: callsSince(part.rows, since) }))
        .filter(({ part, calls }) => calls > 0 && (only === undefined || [only, other].includes(part.name)))
        .sort((a, b) => Number(a.part.name === other) - Number(b.part.name === other) || b.calls - a.calls)
        .map(({ part }) => part)
      const [shown, left] = [sorted.slice(0, top), sorted.slice(top)]
      const rest = { tenant: '', name: other, rows: left.flatMap((part) => part.rows) }
      return {
        ...spanOf(now, minutes),
        total: stepsOf(totals, now, minutes),
        items: [...shown, ...(left.length > 0 ? [rest] : [])].map(({ tenant, name, rows: own }) => ({
          tenant,
          name,
          ...stepsOf(own, now, minutes)
        }))
      }
    },
    /** Calls to an upstream that failed since then, as far as they are kept. */
    failuresSince(tenant: string, upstream: string, since: number): number {
      const row = tenants.get(tenant)?.parts.upstream.get(upstream)
      return row === undefined ? 0 : errorsSince(row, since)
    }
  }
}
