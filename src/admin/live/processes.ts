// The processes on the store, and the configuration that each serves. Every process with an admin listener announces
// itself from time to time, and when asked; a silent one is forgotten.

import { createHash } from 'node:crypto'
import type { Snapshot } from '../../config/snapshot.ts'
import { canonicalJsonOf } from '../../protocol/json-text.ts'
import type { Bus } from '../../session/bus/bus.ts'
import { everyNode } from '../../store/keys.ts'
import { createDelay, every, type Clock } from '../../time/clock.ts'
import { runSteps, type Steps } from '../../time/turns.ts'

const sayMs = 10_000
const firstSayMs = 2_000
const believedMs = 35_000
const maxProcesses = 256
/** The length of a digest, in hexadecimal digits: enough to see that two differ. */
const digestChars = 12
const whose = { tenant: '', caller: 'processes' }

export interface ServingProcess {
  readonly process: string
  readonly version: string
  /** The version of the documents of tenants. */
  readonly configuration: number
  /** The digest of its snapshot: equal at processes that serve alike. */
  readonly snapshot: string
  /** Epoch ms. */
  readonly startedAt: number
}

interface Said extends ServingProcess {
  /** The process has just started, and asks the others to answer. */
  readonly asks: boolean
}

export type Processes = ReturnType<typeof createProcesses>

interface ProcessesOptions {
  readonly bus: Pick<Bus, 'tell' | 'hear' | 'node' | 'shared'>
  readonly snapshot: () => Snapshot
  readonly configuration: () => number
  readonly version: string
  /** Measures durations. */
  readonly clock: Clock
  /** The time of day. */
  readonly wall: Pick<Clock, 'now'>
}

export function createProcesses({ bus, snapshot, configuration, version, clock, wall }: ProcessesOptions) {
  const startedAt = wall.now()
  const heard = new Map<string, { readonly said: ServingProcess; readonly until: number }>()
  let digested: { readonly of: Snapshot; readonly digest: string | Promise<string> } | undefined

  async function own(): Promise<ServingProcess> {
    const of = snapshot()
    const known = digested?.of === of ? digested : { of, digest: runSteps(digestOf(of), whose) }
    digested = known
    return {
      process: bus.node,
      version,
      configuration: configuration(),
      snapshot: await known.digest,
      startedAt
    }
  }

  async function say(to: string, asks: boolean): Promise<void> {
    await bus.tell(to, 'process', { ...(await own()), asks } satisfies Said)
  }

  bus.hear('process', ({ asks, ...said }: Said, from) => {
    if (from === bus.node) return
    heard.delete(from)
    heard.set(from, { said: { ...said, process: from }, until: clock.now() + believedMs })
    const [oldest] = heard.keys()
    if (heard.size > maxProcesses && oldest !== undefined) heard.delete(oldest)
    if (asks) void say(from, false)
  })
  const timer = bus.shared ? every(clock, sayMs, () => void say(everyNode, false)) : undefined
  // Not at once: while a process starts, its event loop stands still for longer than Redis may be silent.
  const first = createDelay(clock)
  if (bus.shared) first.start(firstSayMs, () => void say(everyNode, true))

  return {
    /** This one first. */
    async list(): Promise<ServingProcess[]> {
      const now = clock.now()
      for (const [process, { until }] of heard) if (until < now) heard.delete(process)
      return [await own(), ...[...heard.values()].map(({ said }) => said)]
    },
    close(): void {
      timer?.close()
      first.close()
    }
  }
}

/** A step for each tenant. What is secret is in none of it. */
function* digestOf({ tenants }: Snapshot): Steps<string> {
  const hash = createHash('sha256')
  for (const id of [...tenants.keys()].sort()) {
    yield
    const tenant = tenants.get(id)
    if (tenant === undefined) continue
    const { policy, limits, resources, auth, kills } = tenant
    hash.update(
      canonicalJsonOf([
        id,
        { policy, limits, resources, kills },
        { mode: auth.mode, keys: auth.keys.map(({ name }) => name), issuers: auth.issuers.map(({ issuer }) => issuer) },
        [...tenant.upstreams].map(([name, { hash: own }]) => [name, own]),
        [...tenant.endpoints.values()].map(({ name, members, tools, policy: own }) => [name, members, tools, own])
      ])
    )
  }
  return hash.digest('hex').slice(0, digestChars)
}
