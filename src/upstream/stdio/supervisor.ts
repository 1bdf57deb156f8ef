// Which child processes may start: how many at once, for one caller, one tenant and all; and the end of them all.

import { GatewayError, type TenantId } from '../../protocol/messages.ts'
import { abortable, deadline } from '../../time/clock.ts'
import { type Child, type ChildEvents, type ChildSurroundings, startChild } from './child-process.ts'
import { createOrphans } from './orphans.ts'
import { createUsageReader } from './process-usage.ts'
import { createSandbox } from './sandbox.ts'
import { createStarts } from './starts.ts'
import { createUsageWatch } from './usage-watch.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'
import type { LinkContext } from '../rpc/transport.ts'

export type Supervisor = ReturnType<typeof createSupervisor>

interface SupervisorOptions extends Omit<ChildSurroundings, 'orphans' | 'sandbox'> {
  readonly maxProcesses: number
  readonly maxPerTenant: number
  /** Of memory that the servers of one tenant may take together. */
  readonly maxBytesPerTenant: number
  /** How many tenants have stdio upstreams now. */
  readonly tenantCount: () => number
}

/** Part of all processes that is kept for tenants that have few; each has an equal part of it. */
const perKept = 2
/** Part of all processes that calls leave to lists and to what many share. */
const perListing = 8
/** So long a start waits for processes that are ending: they are killed after 4 s (child-process). */
const maxEndMs = 6_000

interface Running {
  readonly tenant: TenantId
  readonly definition: StdioDefinition
  /** Undefined: nobody's own, so it counts for no caller and not for `processesPerTenant`. */
  readonly own: { readonly quotaKey: string | undefined } | undefined
}

/** For whom a process starts, and for what. */
interface Starter {
  readonly use: LinkContext['use']
  readonly quotaKey: string | undefined
}

/** Does it count for a caller, and for `processesPerTenant`? */
const isOwn = (isolation: StdioDefinition['isolation'], use: LinkContext['use']): boolean =>
  use === 'calls' && isolation !== 'shared'

export function createSupervisor(options: SupervisorOptions) {
  const { baseEnv, maxProcesses, maxPerTenant, maxBytesPerTenant, tenantCount, clock, log } = options
  /** Those that have not ended, with whom they count for. */
  const running = new Map<Child, Running>()
  const orphans = createOrphans({ path: baseEnv['PATH'], clock, log })
  const sandbox = createSandbox(baseEnv['PATH'], log)
  const starts = createStarts(clock)
  const watch = createUsageWatch({
    usage: createUsageReader(orphans.markIn),
    *running() {
      for (const [child, { definition }] of running) yield { definition, mark: child.mark, kill: child.kill }
    },
    maxBytesPerTenant,
    clock,
    log
  })
  let ending: PromiseWithResolvers<void> | undefined
  // One caller alone is hardly limited, and the next one still gets a process.
  const maxPerCaller = Math.max(1, Math.floor((maxPerTenant * 3) / 4))

  /**
   * How many of the free processes a start of this tenant has to leave: to lists, if it is for calls; and, if the
   * tenant has its part, what the others lack of theirs, so that not even all of them together take the last ones.
   */
  function kept(tenant: TenantId, forCalls: boolean, among: readonly Running[]): number {
    const lists = among.filter(({ own }) => own === undefined).length
    const forLists = forCalls ? Math.max(0, Math.floor(maxProcesses / perListing) - lists) : 0
    const forTenants = Math.floor(maxProcesses / perKept)
    const part = Math.max(1, Math.floor(forTenants / Math.max(1, tenantCount())))
    const ofEach = Map.groupBy(among, (one) => one.tenant)
    if ((ofEach.get(tenant)?.length ?? 0) < part) return forLists
    ofEach.delete(tenant)
    const have = ofEach.values().reduce((sum, { length }) => sum + Math.min(part, length), 0)
    const lacking = Math.max(0, (tenantCount() - 1) * part - have)
    return Math.min(forTenants, lacking) + forLists
  }

  /** @returns why a process more may not start beside these, if it may not */
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
    if (counts) {
      const limit = 'processesPerTenant'
      const ofTenant = among.filter((each) => each.own !== undefined && each.tenant === tenant)
      if (ofTenant.length >= maxPerTenant) return limitError(limit, `limits.${limit} (${maxPerTenant}) is reached`)
      const own = ofTenant.filter((each) => each.own?.quotaKey === quotaKey).length
      if (quotaKey !== undefined && own >= maxPerCaller) {
        return limitError(
          limit,
          `this caller has ${maxPerCaller} processes, and one caller may have no more than three quarters of ` +
            `limits.${limit} (${maxPerTenant})`
        )
      }
    }
    if (maxProcesses - among.length > kept(tenant, counts, among)) return undefined
    const rest = `the rest of limits.processes (${maxProcesses}) is kept for other tenants and for lists`
    return limitError('processes', rest)
  }

  const all = (): Running[] => [...running.values()]
  const notEnding = (): Running[] =>
    running
      .entries()
      .flatMap(([child, each]) => (child.isEnding() ? [] : [each]))
      .toArray()

  /**
   * Waits while a process more is refused only because of some that are ending: a caller whose oldest process was just
   * given up for a new one is not told that there are too many.
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
    /**
     * @throws GatewayError upstream_unavailable; too_many when `maxProcesses` run, or those that are free are kept for
     * others; for calls when `maxPerTenant` of the tenant run, or three quarters of these for one caller
     */
    spawn(definition: StdioDefinition, { use, handshake }: LinkContext, events: ChildEvents): Child {
      const { quotaKey } = handshake
      const refused = refusal(definition, { use, quotaKey }, all())
      if (refused !== undefined) throw refused
      const { tenant, isolation } = definition
      const ended = (reason: GatewayError): void => {
        running.delete(child)
        ending?.resolve()
        ending = undefined
        events.ended(reason)
      }
      const child = startChild(definition, { ...events, ended }, { baseEnv, orphans, sandbox, clock, log })
      running.set(child, { tenant, definition, own: isOwn(isolation, use) ? { quotaKey } : undefined })
      watch.start()
      return child
    },
    /** Asked before `spawn`: waits for processes that are ending, where they are in the way, and see `createStarts`. */
    async turn(definition: StdioDefinition, starter: Starter, signal?: AbortSignal): Promise<() => void> {
      await sandbox.ready(definition)
      await room(definition, starter, signal)
      return await starts.turn(definition, starter.quotaKey ?? '', signal)
    },
    count: () => running.size,
    memoryByTenant: watch.taken,
    /** Synchronous, for `process.on('exit')`: KILL to every group. */
    killAllNow(): void {
      for (const child of running.keys()) child.kill()
    },
    /** After the last child has ended. */
    close(): void {
      watch.close()
      orphans.close()
    }
  }
}
