// How many processes may run: of one caller, of one tenant and of all, and what is kept free for others.

import type { Resources, StdioDefinition } from '../../config/snapshot.ts'
import { GatewayError, type TenantId } from '../../protocol/messages.ts'
import type { LinkContext } from '../rpc/transport.ts'

/** Part of all processes that is kept for tenants that have few; each has an equal part of it. */
const perKept = 2
/** Part of all processes that calls leave to lists and to what many share. */
const perListing = 8

export interface Running {
  readonly tenant: TenantId
  readonly definition: StdioDefinition
  /** Undefined: nobody's own, so it counts for no caller and not for `processesPerTenant`. */
  readonly own: { readonly quotaKey: string | undefined } | undefined
}

/** For whom a process starts, and for what. */
export interface Starter {
  readonly use: LinkContext['use']
  readonly quotaKey: string | undefined
}

/** Does it count for a caller, and for `processesPerTenant`? */
export const isOwn = (isolation: StdioDefinition['isolation'], use: LinkContext['use']): boolean =>
  use === 'calls' && isolation !== 'shared'

interface ProcessLimits {
  readonly maxProcesses: number
  readonly maxPerTenant: number
  /** What one tenant may use, where that is less. */
  readonly resourcesOf: (tenant: TenantId) => Pick<Resources, 'processes'>
  /** How many tenants have stdio upstreams now. */
  readonly tenantCount: () => number
}

const listsAmong = (among: readonly Running[]): number => among.filter(({ own }) => own === undefined).length

/** @returns says why a process more may not start beside others, if it may not */
export function createProcessLimits({ maxProcesses, maxPerTenant, resourcesOf, tenantCount }: ProcessLimits) {
  /**
   * How many of the free processes a start of this tenant has to leave: to lists, if it is for calls; and, if the
   * tenant has its part, what the others lack of theirs, so that not even all of them together take the last ones.
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
    // One caller cannot multiply what many share, and without it the tenant would have nothing to call.
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
      // One caller alone is hardly limited, and the next one still gets a process.
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
