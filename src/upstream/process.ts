// Child processes: each leads a process group of its own and the whole group ends with it, because a wrapper such as npx leaves
// the real server behind when only the wrapper is killed. Never a shell.

import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { GatewayError } from '../protocol/errors.ts'
import { within } from './clock.ts'
import { Down } from './endings.ts'
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import type { StdioDefinition } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import type { TenantId } from '../protocol/ids.ts'
import type { Clock } from './clock.ts'

export interface ChildEvents {
  stdout (chunk: Buffer): void
  stderr (chunk: Buffer): void
  /** It has ended, or never started; all it wrote was handed over before. Exactly once. */
  ended (how: Ending): void
}

export type Ending =
  | { readonly kind: 'failed', readonly error: GatewayError }
  | { readonly kind: 'exited', readonly code: number | null, readonly signal: string | null }

export interface Child {
  readonly pid: number | undefined
  /** @returns false when the child has left more than `maxQueued` bytes unread: nothing was written */
  write (text: string): boolean
  /** Standard input ends; after a grace TERM, after another KILL, to the group. Resolves when it is gone. Idempotent. */
  close (): Promise<void>
  /** KILL to the group. */
  kill (): void
}

/** What a connection is for: the lists of an upstream are read, or callers are served. */
export type Use = 'listing' | 'view' | 'calls'

export interface Supervisor {
  /**
   * @param share whose it is, where it serves one caller; see `Handshake`
   * @throws GatewayError too_many when `maxProcesses` are running, or for the calls of one tenant `maxPerTenant`, or of those most are this share's
   */
  spawn (definition: StdioDefinition, events: ChildEvents, use?: Use, share?: string): Child
  /** Synchronous, for `process.on('exit')`: KILL to every group. */
  killAllNow (): void
  /** Processes that have not ended. */
  count (): number
}

export interface SupervisorOptions {
  /** Where the inherited variables come from; the rest of it stays unseen by children. */
  readonly baseEnv: Readonly<Record<string, string | undefined>>
  readonly maxProcesses: number
  readonly maxPerTenant: number
  readonly clock: Clock
  readonly log: Log
}

// 2025-11-25 basic/lifecycle "Shutdown": close stdin, wait, SIGTERM, wait, SIGKILL.
const graceMs = 2_000
/** How long the pipes of a dead child may stay open: somebody who left the group may hold them. */
const pipesMs = 1_000
const maxQueued = 1_048_576

/** What a program needs to find itself at home, and nothing that could be a secret. */
const inherited = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'USER', 'LOGNAME', 'SHELL']

export function createSupervisor ({ baseEnv, maxProcesses, maxPerTenant, clock, log }: SupervisorOptions): Supervisor {
  const groups = new Set<Child>()
  /** Of those, the ones that count against their tenant. */
  const counted = new Map<Child, { readonly tenant: TenantId, readonly share: string | undefined }>()
  // A caller who is alone is hardly limited, and whoever comes next gets in.
  const maxPerShare = Math.max(1, Math.floor(maxPerTenant * 3 / 4))

  function start (definition: StdioDefinition, events: ChildEvents, use: Use = 'calls', share?: string): Child {
    if (groups.size >= maxProcesses) throw limitError(definition, 'processes', maxProcesses)
    // What many callers share cannot be multiplied by one of them, and without it the tenant would have nothing to call.
    const counts = use === 'calls' && definition.isolation !== 'shared'
    const theirs = counts ? [...counted.values()].filter(({ tenant }) => tenant === definition.tenant) : []
    if (theirs.length >= maxPerTenant) throw limitError(definition, 'processesPerTenant', maxPerTenant)
    if (share !== undefined && theirs.filter((each) => each.share === share).length >= maxPerShare) throw shareError(definition, maxPerShare, maxPerTenant)
    let child: ChildProcessWithoutNullStreams
    try {
      child = spawn(definition.command, definition.args, {
        cwd: definition.cwd,
        env: environment(baseEnv, definition.env),
        detached: true,
        shell: false,
        stdio: ['pipe', 'pipe', 'pipe']
      })
    } catch (cause) {
      // A NUL byte in an argument, or a resource of this process that has run out.
      throw new Down('upstream_unavailable', `Upstream ${definition.name} cannot be started: check its command, args, env and cwd.`, { cause, data: { upstream: definition.name } })
    }

    let over = false
    let closing: Promise<void> | undefined
    const gone = Promise.withResolvers<void>()

    function finish (how: Ending): void {
      if (over) return
      over = true
      groups.delete(handle)
      counted.delete(handle)
      // The grandchildren may have outlived their parent.
      signalGroup('SIGKILL')
      child.stdin.destroy()
      child.stdout.destroy()
      child.stderr.destroy()
      gone.resolve()
      events.ended(how)
    }

    function signalGroup (signal: NodeJS.Signals): void {
      if (child.pid === undefined) return
      try {
        process.kill(-child.pid, signal)
      } catch (error) {
        // ESRCH: the whole group has gone, which is what we want. Anything else leaves at least the leader to us.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') child.kill(signal)
      }
    }

    async function stop (): Promise<void> {
      if (over) return
      child.stdin.end()
      if (await within(clock, graceMs, gone.promise)) return
      signalGroup('SIGTERM')
      if (await within(clock, graceMs, gone.promise)) return
      signalGroup('SIGKILL')
      // Not even KILL ends a process that hangs in the kernel: then we stop waiting for it.
      await within(clock, graceMs, gone.promise)
    }

    const handle: Child = {
      pid: child.pid,
      write (text) {
        if (over || child.stdin.writableLength > maxQueued) return false
        child.stdin.write(text)
        return true
      },
      close: () => closing ??= stop(),
      kill: () => { if (!over) signalGroup('SIGKILL') }
    }
    groups.add(handle)
    if (counts) counted.set(handle, { tenant: definition.tenant, share })

    child.stdout.on('data', events.stdout)
    child.stderr.on('data', events.stderr)
    // For good, not once: a child that has changed its user makes an error of every signal that we try.
    child.on('error', (cause: NodeJS.ErrnoException) => {
      if (child.pid === undefined) finish({ kind: 'failed', error: startError(definition, cause) })
      else log.warn({ upstream: definition.name, pid: child.pid, reason: cause.code }, 'the process of the upstream cannot be signalled')
    })
    child.once('exit', (code, signal) => {
      signalGroup('SIGKILL')
      // What it wrote last is still in the pipes: 'close' comes when they are read to their end.
      const timer = clock.timer(pipesMs, () => finish({ kind: 'exited', code, signal }))
      child.once('close', () => {
        timer.close()
        finish({ kind: 'exited', code, signal })
      })
    })
    // A child that closes its side of a pipe but lives on can no longer be talked to. It may be on its way out, so it gets its grace.
    const hangUp = (): void => { void handle.close() }
    child.stdin.on('error', hangUp)
    child.stdout.once('end', hangUp)
    child.stdout.on('error', hangUp)
    child.stderr.on('error', () => { child.stderr.destroy() })
    return handle
  }

  return {
    spawn: start,
    count: () => groups.size,
    killAllNow () {
      for (const child of groups) child.kill()
    }
  }
}

/** The child's environment: a handful of inherited variables and what the definition says. */
export function environment (base: SupervisorOptions['baseEnv'], own: Readonly<Record<string, string>>): Record<string, string> {
  const result: Record<string, string> = {}
  for (const name of inherited) {
    const value = base[name]
    // A value like "() { ..." is a shell function, which some shells would run.
    if (value !== undefined && !value.startsWith('()')) result[name] = value
  }
  return Object.assign(result, own)
}

function limitError ({ name }: StdioDefinition, limit: string, value: number): GatewayError {
  return new GatewayError('too_many', `Upstream ${name} cannot start: limits.${limit} (${value}) is reached. Close sessions or raise the limit.`, { data: { upstream: name, limit } })
}

function shareError ({ name }: StdioDefinition, value: number, all: number): GatewayError {
  const limit = 'processesPerTenant'
  return new GatewayError('too_many', `Upstream ${name} cannot start: this caller has ${value} processes, and one caller may have no more than three quarters of limits.${limit} (${all}). Close sessions or raise the limit.`, { data: { upstream: name, limit } })
}

// Names the command, never its arguments: those may carry secrets.
function startError (definition: StdioDefinition, cause: NodeJS.ErrnoException): GatewayError {
  const { name, command, cwd } = definition
  const why = cwd !== undefined && !existsSync(cwd)
    ? `its working directory ${cwd} does not exist: correct cwd`
    : cause.code === 'ENOENT'
      ? `the command ${command} was not found: install it, or correct the command or its PATH`
      : cause.code === 'EACCES'
        ? `the command ${command} may not be executed: make it executable, or correct the command`
        : `the command ${command} failed with ${cause.code ?? 'an unknown error'}`
  return new Down('upstream_unavailable', `Upstream ${name} cannot be started: ${why}.`, { cause, data: { upstream: name } })
}
