// Starts and ends all child processes of the gateway within the limits for one caller, one tenant and in all.

import type { GatewayError, TenantId } from '../../protocol/messages.ts'
import { abortable, deadline, steadyClock } from '../../time/clock.ts'
import { type Child, type ChildEvents, type ChildSurroundings, startChild } from './child-process.ts'
import { maskedEnvironment } from './child-environment.ts'
import { createKnownPrograms } from './known-programs.ts'
import { createOrphans } from './orphans.ts'
import { createProcessLimits, isOwn, type Running, type Starter } from './process-limits.ts'
import { createUsageReader } from './process-usage.ts'
import { createSandbox } from './sandbox.ts'
import { isFaultOfGateway, startError } from './start-error.ts'
import { createStarts } from './starts.ts'
import { createStrayLines } from '../rpc/stray-lines.ts'
import { createUsageWatch } from './usage-watch.ts'
import { createWarmChildren } from './warm-children.ts'
import type { Resources, Snapshot, StdioDefinition, Tenant } from '../../config/snapshot.ts'
import { processesWithin } from '../../limits/descriptors.ts'
import { availableMemory } from '../../limits/process-memory.ts'
import type { Log } from '../../observe/log.ts'
import type { LinkContext } from '../rpc/transport.ts'

export type Supervisor = ReturnType<typeof createSupervisor>

interface SupervisorOptions extends Omit<ChildSurroundings, 'orphans' | 'sandbox'> {
  readonly maxProcesses: number
  readonly maxPerTenant: number
  /** The most memory that the servers of one tenant may use together. */
  readonly maxBytesPerTenant: number
  /** The `resources` of the tenant, which may set a lower limit. */
  readonly resourcesOf: (tenant: TenantId) => Pick<Resources, 'processes' | 'processBytes'>
  /** How many tenants have stdio upstreams now. */
  readonly tenantCount: () => number
}

/** No warm process is started while more than one in this many of all processes run. */
const perWarm = 2
/** How long a start waits for processes that are ending; those are killed after 4 s (child-process.ts). */
const maxEndMs = 6_000

export function createSupervisor(options: SupervisorOptions, starts = createStarts(options.clock)) {
  const { baseEnv, maxProcesses, maxBytesPerTenant, resourcesOf, clock, log } = options
  const refusal = createProcessLimits(options)
  /** The processes that have not ended, with the tenant and the caller that they count for. */
  const running = new Map<Child, Running>()
  const orphans = createOrphans({ path: baseEnv['PATH'], clock, log })
  const sandbox = createSandbox(baseEnv['PATH'], log)
  const checkProgram = createKnownPrograms()
  const watch = createUsageWatch({
    usage: createUsageReader(orphans.markOf),
    *running() {
      for (const [child, { definition }] of running) yield { definition, mark: child.mark, kill: child.kill }
    },
    maxBytesPerTenant,
    resourcesOf,
    clock,
    log
  })
  const warm = createWarmChildren({
    start(definition, events) {
      const child = begin(definition, events)
      running.set(child, { tenant: definition.tenant, definition, own: undefined })
      return child
    },
    async mayStart(definition) {
      const starter = { use: 'calls', quotaKey: '' } as const
      const hasRoom = (): boolean =>
        running.size < maxProcesses / perWarm && refusal(definition, starter, all()) === undefined
      if (!hasRoom()) return false
      await ready(definition)
      await starts.waitToStart(definition, '')
      await checkProgram(definition)
      return hasRoom()
    },
    clock,
    log
  })
  let ending: PromiseWithResolvers<void> | undefined

  /** @throws GatewayError see `startError` */
  async function ready(definition: StdioDefinition): Promise<void> {
    try {
      await sandbox.ready(definition)
      await orphans.ready(isBare(definition) ? [definition] : [])
    } catch (cause) {
      throw startError(definition, cause)
    }
  }

  function begin(definition: StdioDefinition, events: ChildEvents): Child {
    const ended = (reason: GatewayError): void => {
      running.delete(child)
      ending?.resolve()
      ending = undefined
      events.ended(reason)
    }
    const child = startChild(definition, { ...events, ended }, { baseEnv, orphans, sandbox, clock, log })
    return child
  }

  const all = (): Running[] => [...running.values()]
  const notEnding = (): Running[] =>
    running
      .entries()
      .flatMap(([child, each]) => (child.isEnding() ? [] : [each]))
      .toArray()

  /**
   * Waits while a start would be refused only because of processes that are ending. A caller whose oldest process was
   * ended to make room for the new one would otherwise get an error.
   */
  async function room(definition: StdioDefinition, starter: Starter, signal?: AbortSignal): Promise<void> {
    const isBlocked = (): boolean =>
      refusal(definition, starter, all()) !== undefined && refusal(definition, starter, notEnding()) === undefined
    if (!isBlocked()) return
    const limit = deadline(clock, maxEndMs, signal)
    try {
      while (isBlocked() && !limit.signal.aborted) await abortable(nextEnd(), limit.signal).catch(() => {})
    } finally {
      limit.close()
    }
  }

  /** Resolves when the next process has ended. */
  const nextEnd = (): Promise<void> => (ending ??= Promise.withResolvers()).promise

  return {
    /** Logs at the start of the gateway if processes of these upstreams, which have no sandbox, could escape. */
    lookAround: (bare: readonly StdioDefinition[]): void =>
      void orphans.ready(bare).catch((err: unknown) => log.debug({ err }, 'prlimit will be tested at the next start')),
    strayLines: createStrayLines(clock),
    /** The variables of its processes that may hold secrets. */
    maskedEnvironment: (definition: StdioDefinition) => maskedEnvironment(baseEnv, definition),
    /**
     * Takes a warm process, or starts one.
     * @throws GatewayError upstream_unavailable; too_many if a limit of process-limits.ts is reached
     */
    spawn(definition: StdioDefinition, { use, handshake }: LinkContext, events: ChildEvents): Child {
      const { quotaKey } = handshake
      const { tenant, isolation } = definition
      const ready = isOwn(isolation, use) ? warm.next(definition) : undefined
      const others = running.entries().flatMap(([child, each]) => (child === ready ? [] : [each]))
      const refused = refusal(definition, { use, quotaKey }, others.toArray())
      if (refused !== undefined) throw refused
      const child = (ready && warm.take(definition, events)) ?? begin(definition, events)
      running.set(child, { tenant, definition, own: isOwn(isolation, use) ? { quotaKey } : undefined })
      watch.start()
      warm.fillSoon(definition)
      return child
    },
    /** Must be awaited before `spawn`: waits for processes that are ending, then for its turn; see `createStarts`. */
    async waitToStart(definition: StdioDefinition, starter: Starter, signal?: AbortSignal): Promise<() => void> {
      await ready(definition)
      if (warm.next(definition) === undefined && refusal(definition, starter, notEnding()) !== undefined) warm.giveUp()
      await room(definition, starter, signal)
      const end = await starts.waitToStart(definition, starter.quotaKey ?? '', signal)
      try {
        // Checked last, because the file may change while the start waits.
        await checkProgram(definition)
      } catch (error) {
        end()
        throw isFaultOfGateway(error) ? startError(definition, error) : error
      }
      return end
    },
    count: () => running.size,
    memoryByTenant: watch.taken,
    usageOf: watch.takenBy,
    /** The processes of one tenant, and their memory at the last check. */
    countsOf: (tenant: TenantId): { readonly processes: number; readonly bytes: number } => ({
      processes: all().filter((each) => each.tenant === tenant).length,
      bytes: watch.taken().get(tenant) ?? 0
    }),
    /** Sends SIGKILL to every process group; synchronous, for `process.on('exit')`. */
    killAllNow(): void {
      for (const child of running.keys()) child.kill()
    },
    retain: warm.retain,
    /** Must be called only after the last child has ended. */
    close(): void {
      warm.close()
      watch.close()
      orphans.close()
    }
  }
}

/** The default of `limits.processBytesPerTenant`, as a part of the memory of the container or machine. */
const defaultMemoryPart = 0.5

interface Machine {
  readonly descriptors: number
  /** The processes that share its memory and its processors. */
  readonly workers: number
}

export function openSupervisor(
  snapshot: () => Snapshot,
  { descriptors, workers }: Machine,
  baseEnv: Readonly<Record<string, string | undefined>>,
  log: Log
): Supervisor {
  // These limits are read once: a reload of the configuration does not change them.
  const { processes, processesPerTenant, processBytesPerTenant } = snapshot().limits
  const maxProcesses = Math.min(processes, processesWithin(descriptors))
  if (maxProcesses < processes)
    log.warn(
      { processes: maxProcesses, descriptors },
      'limits.processes is lowered: this process may not have enough open files (ulimit -n) for more'
    )
  const options: SupervisorOptions = {
    baseEnv,
    maxProcesses,
    maxPerTenant: processesPerTenant,
    maxBytesPerTenant: processBytesPerTenant ?? Math.floor((availableMemory() * defaultMemoryPart) / workers),
    resourcesOf: (tenant) => snapshot().tenants.get(tenant)?.resources ?? {},
    tenantCount: () => tenantsWithStdio(snapshot()),
    clock: steadyClock,
    log
  }
  const supervisor = createSupervisor(options, createStarts(steadyClock, workers))
  const bare = [...snapshot().tenants.values()].flatMap(({ upstreams }) => stdioOf(upstreams).filter(isBare))
  if (bare.length > 0) supervisor.lookAround(bare)
  return supervisor
}

const stdioOf = (upstreams: Tenant['upstreams']): StdioDefinition[] =>
  [...upstreams.values()].filter((each) => each.type === 'stdio')
const isBare = ({ sandbox }: StdioDefinition): boolean => sandbox === 'off'
const tenantsWithStdio = ({ tenants }: Snapshot): number =>
  [...tenants.values()].filter(({ upstreams }) => stdioOf(upstreams).length > 0).length
