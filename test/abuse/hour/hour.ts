// Attacks on availability, one slice after the other, on one gateway with its default limits: in each slice callers and
// upstreams of one tenant do several things that are too much, while another tenant calls a tool. A second gateway,
// which nobody attacks, is called in the same way at the same time: what its calls take is the machine's doing.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Teardown } from '../../kit/until.ts'
import { attacked, type Measured } from '../kit.ts'
import type { Turns } from '../turn-watcher.ts'
import type { HostileServers } from './attack-http-server.ts'
import type { Ended, Orders } from './attackers.ts'
import { hostileUpstreams, type Slice, sliceOf } from './slices.ts'

export interface HourOptions {
  readonly seed: number
  /** Of the whole run, and of one slice. */
  readonly ms: number
  readonly sliceMs: number
  /** Number of the first slice. */
  readonly from?: number
  /** `limits.memoryBytes`. */
  readonly memoryBytes: number
  readonly onSlice?: (judged: JudgedSlice) => void
}

export type Verdict = 'held' | 'failed' | 'not judged'

export interface JudgedSlice {
  readonly slice: Slice
  readonly verdict: Verdict
  /** Why it did not hold, or could not be judged. */
  readonly reasons: readonly string[]
  readonly neighbour: Measured
  /** The same calls at a gateway that nobody attacks. */
  readonly control: Measured
  /** How many times as long as on a machine of its own the main thread took, as it waited for a processor. */
  readonly slowdown: number
  readonly peakBytes: number
  readonly turns: Turns
  readonly ended: Ended
}

/** What a neighbour may wait, at most, for 99 of 100 calls. */
const mostP99Ms = 250
/** Above that, what may be the machine's doing: so many times what it does to the control. */
const controlFactor = 3

const people = Array.from({ length: 6 }, (_, at) => ({
  name: `attacker${at}`,
  key: `gh_abuse_key_of_attacker_${at}_0123456789`
}))

/** @param memoryBytes what the process may use */
export function judge(
  { neighbour, control, slowdown, peakBytes }: Pick<JudgedSlice, 'neighbour' | 'control' | 'slowdown' | 'peakBytes'>,
  memoryBytes: number
): { verdict: Verdict; reasons: string[] } {
  const { p99Ms } = neighbour
  const ofMachine = Math.max(mostP99Ms * slowdown, controlFactor * control.p99Ms)
  const failures = [
    ...neighbour.failures.map((failure) => `a call of the neighbour failed: ${failure}`),
    ...(peakBytes > memoryBytes ? [`the resident set grew to ${peakBytes} bytes`] : []),
    ...(p99Ms > Math.max(mostP99Ms, ofMachine) ? [`p99 of ${p99Ms} ms`] : [])
  ]
  if (failures.length > 0) return { verdict: 'failed', reasons: failures }
  if (control.failures.length > 0) return { verdict: 'not judged', reasons: control.failures.slice(0, 1) }
  if (p99Ms <= mostP99Ms) return { verdict: 'held', reasons: [] }
  return { verdict: 'not judged', reasons: [`p99 of ${p99Ms} ms may be the machine's doing`] }
}

interface ProcessorTime {
  readonly ranMs: number
  readonly waitedMs: number
}

/** Of the main thread; undefined where the system does not tell. */
function processorTime(pid: number): ProcessorTime | undefined {
  const file = `/proc/${pid}/task/${pid}/schedstat`
  if (!existsSync(file)) return undefined
  const [ran = 0, waited = 0] = readFileSync(file, 'utf8').split(' ').map(Number)
  return { ranMs: ran / 1e6, waitedMs: waited / 1e6 }
}

function slowdownOf(before: ProcessorTime | undefined, after: ProcessorTime | undefined): number {
  if (before === undefined || after === undefined) return 1
  return 1 + (after.waitedMs - before.waitedMs) / Math.max(1, after.ranMs - before.ranMs)
}

/** The largest resident set is counted anew, where the system lets us. */
function forgetPeak(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5')
  } catch {
    // It stays the largest since the start.
  }
}

const nothing: Measured = { calls: 0, meanwhile: 0, failures: [], medianMs: 0, p99Ms: 0, longestMs: 0 }

const goneIn = (slice: Slice, end: object, log: readonly string[]): JudgedSlice => ({
  slice,
  verdict: 'failed',
  reasons: [`the gateway ended with ${JSON.stringify(end)}`, ...log.slice(-5)],
  neighbour: nothing,
  control: nothing,
  slowdown: 1,
  peakBytes: 0,
  turns: { asked: 0, longestMs: 0, longestOwnMs: 0, long: 0, longByCollector: 0 },
  ended: {}
})

async function startAttacked(t: Teardown, { seed, memoryBytes }: HourOptions) {
  const servers = fork(fileURLToPath(new URL('attack-http-server.ts', import.meta.url)), [String(seed)], {
    execArgv: []
  })
  t.teardown(() => servers.kill())
  const [{ origin, memory }] = (await once(servers, 'message')) as [HostileServers]
  const hostile = hostileUpstreams(origin, seed)
  const login = { provider: { issuer: 'http://127.0.0.1:9', clientId: 'gatehouse', clientSecret: 'secret' } }
  const gateway = await attacked(t, {
    upstreams: { ...memory, ...hostile },
    limits: { memoryBytes },
    asShipped: true,
    top: { publicUrl: 'http://localhost:9' },
    watchTurns: true,
    tenant: {
      auth: { keys: people, login },
      endpoints: {
        default: { upstreams: ['calm', ...Object.keys(memory)] },
        ...Object.fromEntries(Object.keys(hostile).map((name) => [name, { upstreams: [name], prefix: '' }]))
      }
    }
  })
  return { gateway, servers }
}

async function attackersOf(t: Teardown, orders: Orders): Promise<Ended> {
  const child = fork(fileURLToPath(new URL('attackers.ts', import.meta.url)), [], { execArgv: ['--no-warnings'] })
  t.teardown(() => child.kill('SIGKILL'))
  child.send(orders)
  const told = once(child, 'message').then(([ended]) => ended as Ended)
  const ended = await Promise.race([
    told,
    wait(orders.ms + 60_000, undefined, { ref: false }).then((): Ended => ({ 'the attackers': { hung: 1 } }))
  ])
  child.kill('SIGKILL')
  return ended
}

/** Runs slices until the time is over, or the gateway has ended. */
export async function attackForHours(t: Teardown, options: HourOptions): Promise<JudgedSlice[]> {
  const { seed, ms, sliceMs, from = 0, memoryBytes, onSlice } = options
  const { gateway, servers } = await startAttacked(t, options)
  const calm = await attacked(t)
  const judged: JudgedSlice[] = []
  const gone = new AbortController()
  void gateway.ended.then(() => gone.abort())
  const deadline = performance.now() + ms

  async function run(slice: Slice): Promise<JudgedSlice> {
    servers.send({ onMemory: slice.memory.length > 0 })
    forgetPeak(gateway.pid)
    await gateway.turns()
    const before = processorTime(gateway.pid)
    const [own, control] = await Promise.all([gateway.neighbour(), calm.neighbour()])
    const orders = { slice, seed, ms: sliceMs, origin: gateway.origin, keys: people.map(({ key }) => key) }
    const ended = await attackersOf(t, orders)
    const [neighbour, ofCalm] = await Promise.all([own.stop(), control.stop()])
    const slowdown = slowdownOf(before, processorTime(gateway.pid))
    const measured = { neighbour, control: ofCalm, slowdown, peakBytes: gateway.peakMemory() }
    return { slice, ...judge(measured, memoryBytes), ...measured, turns: await gateway.turns(), ended }
  }
  for (let number = from; !gone.signal.aborted && (performance.now() < deadline || judged.length === 0); number++) {
    const slice = sliceOf(seed, number)
    const one = await Promise.race([run(slice), gateway.ended.then((end) => goneIn(slice, end, gateway.stderr))])
    judged.push(one)
    onSlice?.(one)
  }
  return judged
}
