// Which child processes may start: how many at once, for one caller, one tenant and all; and the end of them all.

import { GatewayError, type TenantId } from '../../protocol/messages.ts'
import { type Child, type ChildEvents, type ChildSurroundings, startChild } from './child-process.ts'
import { createOrphans } from './orphans.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'
import type { LinkContext } from '../rpc/transport.ts'

export type Supervisor = ReturnType<typeof createSupervisor>

interface SupervisorOptions extends Omit<ChildSurroundings, 'orphans'> {
  readonly maxProcesses: number
  readonly maxPerTenant: number
}

export function createSupervisor({ baseEnv, maxProcesses, maxPerTenant, clock, log }: SupervisorOptions) {
  /** Those that have not ended, with whom they count for; undefined: for no tenant. */
  const running = new Map<Child, { readonly tenant: TenantId; readonly quotaKey: string | undefined } | undefined>()
  const orphans = createOrphans({ path: baseEnv['PATH'], clock, log })
  // One caller alone is hardly limited, and the next one still gets a process.
  const maxPerCaller = Math.max(1, Math.floor((maxPerTenant * 3) / 4))

  return {
    /**
     * @throws GatewayError upstream_unavailable; too_many when `maxProcesses` run, or for calls `maxPerTenant` of the
     * tenant, or three quarters of these for one caller
     */
    spawn(definition: StdioDefinition, { use, handshake }: LinkContext, events: ChildEvents): Child {
      const { name, tenant, isolation } = definition
      const { quotaKey } = handshake
      const limitError = (limit: string, why: string): GatewayError => {
        const text = `Upstream ${name} cannot start: ${why}. Close sessions or raise the limit.`
        return new GatewayError('too_many', text, { data: { upstream: name, limit } })
      }
      if (running.size >= maxProcesses) throw limitError('processes', `limits.processes (${maxProcesses}) is reached`)
      // One caller cannot multiply what many share, and without it the tenant would have nothing to call.
      const counts = use === 'calls' && isolation !== 'shared'
      if (counts) {
        const limit = 'processesPerTenant'
        const ofTenant = [...running.values()].filter((each) => each?.tenant === tenant)
        if (ofTenant.length >= maxPerTenant) throw limitError(limit, `limits.${limit} (${maxPerTenant}) is reached`)
        const own = ofTenant.filter((each) => each?.quotaKey === quotaKey).length
        if (quotaKey !== undefined && own >= maxPerCaller) {
          throw limitError(
            limit,
            `this caller has ${maxPerCaller} processes, and one caller may have no more than three quarters of ` +
              `limits.${limit} (${maxPerTenant})`
          )
        }
      }
      const ended = (reason: GatewayError): void => {
        running.delete(child)
        events.ended(reason)
      }
      const child = startChild(definition, { ...events, ended }, { baseEnv, orphans, clock, log })
      running.set(child, counts ? { tenant, quotaKey } : undefined)
      return child
    },
    count: () => running.size,
    /** Synchronous, for `process.on('exit')`: KILL to every group. */
    killAllNow(): void {
      for (const child of running.keys()) child.kill()
    },
    /** After the last child has ended. */
    close: orphans.close
  }
}
