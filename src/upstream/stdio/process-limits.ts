// Limits how many processes run for one caller, for one tenant and in all, and keeps some free for other tenants.

import type { Resources, StdioDefinition } from '../../config/snapshot.ts'
import { GatewayError, type TenantId } from '../../protocol/messages.ts'
import type { LinkContext } from '../rpc/transport.ts'

/** One in this many processes is reserved for tenants that run few; each tenant has an equal share of the reserve. */
const perKept = 2
/** One in this many processes is reserved for reading lists and for shared servers; calls may not use it. */
const perListing = 8

export interface Running {
  readonly tenant: TenantId
  readonly definition: StdioDefinition
  /** Undefined if the process belongs to no caller: it then does not count for `processesPerTenant`. */
  readonly own: { readonly quotaKey: string | undefined } | undefined
}

/** What a process starts for, and for which caller. */
export interface Starter {
  readonly use: LinkContext['use']
  readonly quotaKey: string | undefined
}

/** Whether the process counts for its caller and for `processesPerTenant`. */
export const isOwn = (isolation: StdioDefinition['isolation'], use: LinkContext['use']): boolean =>
  use === 'calls' && isolation !== 'shared'

interface ProcessLimits {
  readonly maxProcesses: number
  readonly maxPerTenant: number
  /** The `resources` of the tenant, which may set a lower limit. */
  readonly resourcesOf: (tenant: TenantId) => Pick<Resources, 'processes'>
  /** How many tenants have stdio upstreams now. */
  readonly tenantCount: () => number
}

const listsAmong = (among: readonly Running[]): number => among.filter(({ own }) => own === undefined).length

/** @returns a function that gives the error of a start that would exceed a limit; undefined if the process may start */
export function createProcessLimits({ maxProcesses, maxPerTenant, resourcesOf, tenantCount }: ProcessLimits) {
  /**
   * How many free processes a start of this tenant must leave unused. A start for calls leaves those reserved for
   * lists. A tenant that already runs its share also leaves what the other tenants lack to theirs.
   */
  function kept(tenant: TenantId, forCalls: boolean, among: readonly Running[]): number {
    const forLists = forCalls ? Math.max(0, Math.floor(maxProcesses / perListing) - listsAmong(among)) : 0
    const forTenants = Math.floor(maxProcesses / perKept)
    const part = Math.max(1, Math.floor(forTenants / Math.max(1, tenantCount())))
    const ofEach = Map.groupBy(among, (one) => one.tenant)
    if ((ofEach.get(tenant)?.length ?? 0) < part) return forLists
    ofEach.delete(tenant)
    const have = ofEach.values().reduce((sum, { length }) => sum + Math.min(part, length), 0)
    const lacking = Math.max(0, (tenantCount() - 1) * part - have)
    return Math.min(forTenants, lacking) + forLists
  }

  function refusal(
    { name, tenant, isolation }: StdioDefinition,
    { use, quotaKey }: Starter,
    among: readonly Running[]
  ): GatewayError | undefined {
    const limitError = (limit: string, why: string): GatewayError => {
      const text = `Upstream ${name} cannot start: ${why}. Close sessions or raise the limit.`
      return new GatewayError('too_many', text, { data: { upstream: name, limit } })
    }
    if (among.length >= maxProcesses) return limitError('processes', `limits.processes (${maxProcesses}) is reached`)
    // A shared server does not count: one caller cannot start many of it, and without it no caller has any tool.
    const counts = isOwn(isolation, use)
    const whole = among.filter((each) => each.tenant === tenant)
    const { processes: ofResources = maxProcesses } = resourcesOf(tenant)
    const left = counts ? Math.max(0, Math.floor(ofResources / perListing) - listsAmong(whole)) : 0
    if (ofResources < maxProcesses && whole.length + left >= ofResources) {
      const limit = 'resources.processes'
      return limitError(
        limit,
        `${limit} of its tenant (${ofResources}${left > 0 ? ', some for lists' : ''}) is reached`
      )
    }
    if (counts) {
      const limit = 'processesPerTenant'
      const ofTenant = whole.filter((each) => each.own !== undefined)
      if (ofTenant.length >= maxPerTenant) return limitError(limit, `limits.${limit} (${maxPerTenant}) is reached`)
      // One caller may use most of the processes, but the next caller still gets one.
      const most = Math.min(maxPerTenant, ofResources)
      const maxPerCaller = Math.max(1, Math.floor((most * 3) / 4))
      const own = ofTenant.filter((each) => each.own?.quotaKey === quotaKey).length
      if (quotaKey !== undefined && own >= maxPerCaller) {
        return limitError(
          limit,
          `this caller has ${maxPerCaller} processes, and one caller may have no more than three quarters of ` +
            `${most < maxPerTenant ? 'resources.processes' : `limits.${limit}`} (${most})`
        )
      }
    }
    if (maxProcesses - among.length > kept(tenant, counts, among)) return undefined
    const rest = `the rest of limits.processes (${maxProcesses}) is kept for other tenants and for lists`
    return limitError('processes', rest)
  }

  return refusal
}
