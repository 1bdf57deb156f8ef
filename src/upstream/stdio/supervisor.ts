// The limits of child processes: of all of them, of each tenant, and of each caller of a tenant.

import { GatewayError } from '../../protocol/errors.ts'
import { startChild, type Child, type ChildEvents } from './child-process.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { TenantId } from '../../protocol/ids.ts'
import type { Clock } from '../../time/clock.ts'
import type { ConnectionUse } from '../rpc/transport.ts'

export interface Supervisor {
  /**
   * @param quotaKey of the caller, where the process serves one only; see `HandshakeParams`
   * @throws GatewayError upstream_unavailable; too_many when `maxProcesses` run, or for calls `maxPerTenant` of the
   * tenant, or three quarters of these for one caller
   */
  spawn(definition: StdioDefinition, events: ChildEvents, use?: ConnectionUse, quotaKey?: string): Child
  /** Synchronous, for `process.on('exit')`: KILL to every group. */
  killAllNow(): void
  /** Processes that have not ended. */
  count(): number
}

export interface SupervisorOptions {
  /** Where the inherited variables come from; children do not see the rest of it. */
  readonly baseEnv: Readonly<Record<string, string | undefined>>
  readonly maxProcesses: number
  readonly maxPerTenant: number
  readonly clock: Clock
  readonly log: Log
}

export function createSupervisor({ baseEnv, maxProcesses, maxPerTenant, clock, log }: SupervisorOptions): Supervisor {
  const running = new Set<Child>()
  /** Those of them that count for their tenant. */
  const counted = new Map<Child, { readonly tenant: TenantId; readonly quotaKey: string | undefined }>()
  // One caller alone is hardly limited, and the next one still gets a process.
  const maxPerCaller = Math.max(1, Math.floor((maxPerTenant * 3) / 4))

  function check(definition: StdioDefinition, counts: boolean, quotaKey: string | undefined): void {
    if (running.size >= maxProcesses) throw limitError(definition, 'processes', maxProcesses)
    if (!counts) return
    const ofTenant = [...counted.values()].filter(({ tenant }) => tenant === definition.tenant)
    if (ofTenant.length >= maxPerTenant) throw limitError(definition, 'processesPerTenant', maxPerTenant)
    if (quotaKey === undefined) return
    const own = ofTenant.filter((each) => each.quotaKey === quotaKey).length
    if (own >= maxPerCaller) throw callerLimitError(definition, maxPerCaller, maxPerTenant)
  }

  return {
    spawn(definition, events, use = 'calls', quotaKey) {
      const { tenant, isolation } = definition
      // One caller cannot multiply what many share, and without it the tenant would have nothing to call.
      const counts = use === 'calls' && isolation !== 'shared'
      check(definition, counts, quotaKey)
      const watched: ChildEvents = {
        ...events,
        ended(how) {
          running.delete(child)
          counted.delete(child)
          events.ended(how)
        }
      }
      const child = startChild(definition, watched, baseEnv, clock, log)
      running.add(child)
      if (counts) counted.set(child, { tenant, quotaKey })
      return child
    },
    count: () => running.size,
    killAllNow() {
      for (const child of running) child.kill()
    }
  }
}

function limitError({ name }: StdioDefinition, limit: string, value: number): GatewayError {
  return new GatewayError(
    'too_many',
    `Upstream ${name} cannot start: limits.${limit} (${value}) is reached. Close sessions or raise the limit.`,
    { data: { upstream: name, limit } }
  )
}

function callerLimitError({ name }: StdioDefinition, value: number, all: number): GatewayError {
  const limit = 'processesPerTenant'
  return new GatewayError(
    'too_many',
    `Upstream ${name} cannot start: this caller has ${value} processes, and one caller may have no more than three ` +
      `quarters of limits.${limit} (${all}). Close sessions or raise the limit.`,
    { data: { upstream: name, limit } }
  )
}
