// The processes of one bench, and how they end: what stands in the middle on a core of its own, everything else on the
// others.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { childrenOf, findCores, type Cores } from './cpu.ts'
import { startIssuer, type Issuer } from './issuer.ts'
import type { Job, Load } from './load/load.ts'
import type { Turns, TurnsUs } from './load/turns.ts'

export const apiKey = 'gh_bench_key_0123456789abcdef'

const checkout = join(import.meta.dirname, '..')

/** One caller is all the load. */
const wideLimits = {
  sessionsPerPrincipal: 1_000_000,
  requestsPerSecondPerPrincipal: 1_000_000,
  requestsPerSecondPerTenant: 1_000_000,
  sessionsPerSecondPerPrincipal: 1_000_000,
  sessionsPerSecondPerTenant: 1_000_000,
  bodyBytesPerSecondPerPrincipal: 1_000_000_000_000,
  bodyBytesPerSecondPerTenant: 1_000_000_000_000
}

export interface Peer {
  readonly child: ChildProcess
  readonly pid: number
  /** With its worker processes, where it has some. */
  readonly pids: readonly number[]
  /** Without a slash at its end. */
  readonly origin: string
}

type Side = keyof Cores

interface GatewayOptions {
  readonly flags?: readonly string[]
  readonly ipc?: boolean
  readonly root?: string
  /** Processes on its port. */
  readonly workers?: number
  /** With the limits that everybody has. */
  readonly asShipped?: boolean
}
type Json = Readonly<Record<string, unknown>>

export interface Stage {
  readonly folder: string
  readonly issuer: Issuer
  /** Of OpenTelemetry, where the workload has one. */
  collector: string
  /** A script of this folder that sends its origin when it is ready. */
  peer(script: string, side: Side, args?: readonly string[]): Promise<Peer>
  /** A script of this folder that is sent messages. @param flags for Node */
  fork(script: string, side: Side, flags?: readonly string[]): ChildProcess
  /** Over the defaults of the bench: a port of its own, a store in a file. */
  configFor(name: string, config: Json): Json
  /**
   * The real command.
   * @param options `flags` for Node; with a channel to the process where `ipc` is set; `root` of another installation;
   * `workers` on its port
   */
  gateway(name: string, config: Json, options?: GatewayOptions): Promise<Peer>
  measure(job: Job): Promise<Load>
  turns(turns: Turns): Promise<TurnsUs>
  /** Anything else that has to end with the bench. */
  own(child: ChildProcess): void
  stop(child: ChildProcess): Promise<void>
  close(): Promise<void>
}

/** @returns the command line that keeps a program on its side, as far as this machine can */
export function pinned(cores: Cores | undefined, side: Side, command: readonly string[]): [string, ...string[]] {
  return [...(cores === undefined ? [] : ['taskset', '-c', cores[side]]), ...command] as [string, ...string[]]
}

/** @throws Error of the last connection, where nothing takes any for 20 seconds */
export async function untilListening(port: number): Promise<void> {
  for (let tries = 0; ; tries++) {
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return
    } catch (error) {
      if (tries === 400) throw error
      await wait(50)
    } finally {
      socket.destroy()
    }
  }
}

/** Of the upstreams and issuers that the tenants of the benches share. */
export const tenantAuth = (issuer: Issuer): Json => ({
  issuers: [{ issuer: issuer.url, jwksUri: `${issuer.url}/jwks` }],
  keys: [{ name: 'bench', key: apiKey, scopes: ['mcp'] }],
  requiredScopes: ['mcp']
})

export async function createStage(): Promise<Stage> {
  if (process.platform !== 'linux')
    throw new Error('The bench reads CPU time from /proc and needs Linux. Use --only path elsewhere.')
  const cores = findCores()
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
  const issuer = await startIssuer()
  const children: ChildProcess[] = []
  let load: ChildProcess | undefined

  const start = (
    script: string,
    side: Side,
    args: readonly string[] = [],
    flags: readonly string[] = []
  ): ChildProcess => {
    const file = join(import.meta.dirname, script)
    const [command, ...rest] = pinned(cores, side, [process.execPath, ...flags, file, ...args])
    const child = spawn(command, rest, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    children.push(child)
    return child
  }
  const configFor = (name: string, config: Json, wide: Json = wideLimits): Json => {
    const limits = { ...wide, ...(config['limits'] as Json | undefined) }
    return { listen: { host: '127.0.0.1', port: 0 }, store: `file:${join(folder, name)}.db`, ...config, limits }
  }
  const asked = async (job: Job | Turns, what: string): Promise<unknown> => {
    load ??= start('load/load.ts', 'ends')
    load.send(job)
    const { load: measured, error } = (await nextMessage(load, 'the load')) as { load?: unknown; error?: string }
    if (measured === undefined) throw new Error(`${what}: ${error}`)
    return measured
  }
  return {
    folder,
    issuer,
    collector: '',
    async peer(script, side, args) {
      const child = start(script, side, args)
      const { pid = 0 } = child
      return { child, pid, pids: [pid], origin: (await nextMessage(child, script)) as string }
    },
    fork: (script, side, flags) => start(script, side, [], flags),
    configFor,
    async gateway(name, config, { flags = [], ipc = false, root = checkout, workers = 1, asShipped = false } = {}) {
      const base = join(folder, name)
      writeFileSync(`${base}.json`, JSON.stringify(configFor(name, config, asShipped ? {} : wideLimits)))
      const program = join(root, 'bin', 'gatehouse.mjs')
      const several = workers === 1 ? [] : ['--workers', String(workers)]
      const serve = [process.execPath, ...flags, program, 'serve', '--config', `${base}.json`, ...several]
      const [command, ...rest] = pinned(cores, 'middle', serve)
      const log = openSync(`${base}.log`, 'a')
      const child = spawn(command, rest, { stdio: ['ignore', 'pipe', log, ...(ipc ? (['ipc'] as const) : [])] })
      closeSync(log)
      children.push(child)
      if (child.stdout === null) throw new Error('the gateway has no standard output')
      for await (const line of createInterface({ input: child.stdout })) {
        const [, origin] = /^gatehouse listening on (\S+)$/.exec(line) ?? []
        const { pid = 0 } = child
        if (origin !== undefined) return { child, pid, pids: [pid, ...(workers === 1 ? [] : childrenOf(pid))], origin }
      }
      throw new Error(`the gateway ended before it was ready:\n${readFileSync(`${base}.log`, 'utf8')}`)
    },
    measure: async (job) => (await asked(job, job.target.url)) as Load,
    turns: async (turns) => (await asked(turns, 'turns')) as TurnsUs,
    own: (child) => children.push(child),
    stop,
    async close() {
      await Promise.all(children.map(stop))
      issuer.close()
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

async function nextMessage(child: ChildProcess, what: string): Promise<unknown> {
  const ended = new AbortController()
  const exit = (code: number | null): void => ended.abort(new Error(`${what} ended with code ${code}`))
  child.once('exit', exit)
  try {
    const [message] = (await once(child, 'message', { signal: ended.signal })) as [unknown]
    return message
  } catch (error) {
    throw ended.signal.aborted ? ended.signal.reason : error
  } finally {
    child.off('exit', exit)
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}
