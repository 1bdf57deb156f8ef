// The supervisor of the child processes of one gateway, with the limits of its configuration.

import type { Snapshot } from '../../config/snapshot.ts'
import { processesWithin } from '../../limits/descriptors.ts'
import { availableMemory } from '../../limits/memory.ts'
import type { Log } from '../../observe/log.ts'
import { steadyClock } from '../../time/clock.ts'
import { createSupervisor, type Supervisor } from './supervisor.ts'

/** Of the memory of the container or machine, where `limits.processBytesPerTenant` is not given. */
const defaultMemoryPart = 0.5

export function openSupervisor(
  snapshot: () => Snapshot,
  descriptors: number,
  baseEnv: Readonly<Record<string, string | undefined>>,
  log: Log
): Supervisor {
  // These hold until the process ends; tenants come and go.
  const { processes, processesPerTenant, processBytesPerTenant } = snapshot().limits
  const maxProcesses = Math.min(processes, processesWithin(descriptors))
  if (maxProcesses < processes)
    log.warn(
      { processes: maxProcesses, descriptors },
      'limits.processes is lowered: this process may not have enough open files (ulimit -n) for more'
    )
  return createSupervisor({
    baseEnv,
    maxProcesses,
    maxPerTenant: processesPerTenant,
    maxBytesPerTenant: processBytesPerTenant ?? Math.floor(availableMemory() * defaultMemoryPart),
    resourcesOf: (tenant) => snapshot().tenants.get(tenant)?.resources ?? {},
    tenantCount: () => tenantsWithStdio(snapshot()),
    clock: steadyClock,
    log
  })
}

const tenantsWithStdio = ({ tenants }: Snapshot): number =>
  [...tenants.values()].filter(({ upstreams }) => upstreams.values().some(({ type }) => type === 'stdio')).length
