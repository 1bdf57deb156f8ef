// Ends a stdio server that uses too much memory or too many processes, and the largest servers of a tenant if they use
// too much memory together.

import type { Clock, Timer } from '../../time/clock.ts'
import type { TenantId } from '../../protocol/messages.ts'
import type { Log } from '../../observe/log.ts'
import type { Resources, StdioDefinition } from '../../config/snapshot.ts'
import { hashOfEverybody } from '../rpc/personal-hash.ts'
import type { ProcessUsage } from './process-usage.ts'

/** The time between two checks. If a server fills the memory within less, the system kills it (child-process.ts). */
const lookMs = 1_000

/** One running server, with all the processes that it has started. */
export interface Watched {
  readonly definition: Pick<StdioDefinition, 'hash' | 'name' | 'tenant' | 'memoryBytes' | 'maxProcesses'>
  readonly mark: string
  /** @param why the reason in the error of the pending requests: a clause without a full stop */
  kill(why: string): void
}

interface UsageWatchOptions {
  readonly usage: (marks: Iterable<string>) => Promise<ReadonlyMap<string, ProcessUsage>>
  readonly running: () => Iterable<Watched>
  readonly maxBytesPerTenant: number
  readonly resourcesOf: (tenant: TenantId) => Pick<Resources, 'processBytes'>
  readonly clock: Clock
  readonly log: Log
}

/** Checks every `lookMs` while servers run. */
export function createUsageWatch(options: UsageWatchOptions) {
  const { usage, running, maxBytesPerTenant, resourcesOf, clock, log } = options
  /** Bytes by tenant. */
  let taken: ReadonlyMap<TenantId, number> = new Map()
  /** Usage by the hash of the definition. */
  let takenBy: ReadonlyMap<string, ProcessUsage> = new Map()
  let timer: Timer | undefined
  let looking = false
  /** Whether the last check failed. */
  let isBlind = false

  function end(one: Watched, used: ProcessUsage, why: string): void {
    const { name, tenant } = one.definition
    log.warn({ upstream: name, tenant, ...used, reason: why }, 'a stdio server was ended: it took too much')
    one.kill(why)
  }

  function endLargest(tenant: TenantId, all: readonly (readonly [Watched, ProcessUsage])[]): void {
    let sum = taken.get(tenant) ?? 0
    const { processBytes = Infinity } = resourcesOf(tenant)
    const max = Math.min(maxBytesPerTenant, processBytes)
    const limit = max < maxBytesPerTenant ? 'resources.processBytes' : 'limits.processBytesPerTenant'
    for (const [one, used] of all.toSorted(([, a], [, b]) => b.bytes - a.bytes)) {
      if (sum <= max) return
      sum -= used.bytes
      const most = `this one took the most, ${mebibytes(used.bytes)}`
      end(one, used, `the servers of tenant ${tenant} took more than ${limit}, and ${most}`)
    }
  }

  async function look(): Promise<void> {
    const marks = Array.from(running(), ({ mark }) => mark)
    const sums = await usage(marks)
    const left = new Map<TenantId, (readonly [Watched, ProcessUsage])[]>()
    const ofDefinitions = new Map<string, ProcessUsage>()
    for (const one of running()) {
      const used = sums.get(one.mark)
      if (used === undefined) continue
      const hash = hashOfEverybody(one.definition.hash)
      const { bytes = 0, processes = 0 } = ofDefinitions.get(hash) ?? {}
      ofDefinitions.set(hash, { bytes: bytes + used.bytes, processes: processes + used.processes })
      const { tenant, memoryBytes = Infinity, maxProcesses } = one.definition
      if (used.bytes > memoryBytes)
        end(one, used, `it took ${mebibytes(used.bytes)}, more than its memoryBytes (${memoryBytes})`)
      else if (used.processes > maxProcesses)
        end(one, used, `it had ${used.processes} processes, more than its maxProcesses (${maxProcesses})`)
      else {
        const ofTenant = left.get(tenant) ?? []
        ofTenant.push([one, used])
        left.set(tenant, ofTenant)
      }
    }
    takenBy = ofDefinitions
    taken = new Map([...left].map(([tenant, all]) => [tenant, all.reduce((sum, [, { bytes }]) => sum + bytes, 0)]))
    for (const [tenant, all] of left) endLargest(tenant, all)
  }

  async function lookAgain(): Promise<void> {
    timer = undefined
    looking = true
    try {
      await look()
      isBlind = false
    } catch (err) {
      // The numbers of the last check stay in use.
      if (!isBlind) log.warn({ err }, 'the memory of stdio servers could not be read, so its limits do not hold now')
      isBlind = true
    }
    looking = false
    if (running()[Symbol.iterator]().next().done !== true) start()
    else [taken, takenBy] = [new Map(), new Map()]
  }

  function start(): void {
    if (timer !== undefined || looking) return
    timer = clock.timer(lookMs, () => void lookAgain())
    timer.unref()
  }

  return {
    /** A server has started. */
    start,
    /** The memory of each tenant's servers at the last check, in bytes. */
    taken: (): ReadonlyMap<TenantId, number> => taken,
    /** The memory and the processes of all servers of one definition at the last check. */
    takenBy: (hash: string): ProcessUsage => takenBy.get(hash) ?? { bytes: 0, processes: 0 },
    close(): void {
      timer?.close()
    }
  }
}

const mebibytes = (bytes: number): string => `${Math.round(bytes / 1_048_576)} MiB`
