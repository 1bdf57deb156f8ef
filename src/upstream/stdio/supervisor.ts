// Child processes: their limits, their start and their end. Each leads a process group of its own and the whole group
// ends with it, because a wrapper such as npx leaves the real server behind when only the wrapper is killed. Never a
// shell.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { GatewayError, type TenantId } from '../../protocol/messages.ts'
import { type Clock, settledWithin } from '../../time/clock.ts'
import { UnreachableError, uncertainError } from '../rpc/errors.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { LinkContext } from '../rpc/transport.ts'

interface ChildEvents {
  stdout(chunk: Buffer): void
  stderr(chunk: Buffer): void
  /** It has ended, or never started; all it wrote was handed over before. Exactly once. */
  ended(reason: GatewayError): void
}

interface Child {
  /** @returns false when the child has left more than `maxQueued` bytes unread: nothing was written */
  write(text: string): boolean
  /**
   * Standard input ends; after a grace TERM, after another KILL, to the group. Resolves when it is gone. Idempotent.
   */
  close(): Promise<void>
  /** KILL to the group. */
  kill(): void
}

type Environment = Readonly<Record<string, string | undefined>>

// 2025-11-25 basic/lifecycle "Shutdown": close stdin, wait, SIGTERM, wait, SIGKILL.
const graceMs = 2_000
/** How long the pipes of a dead child may stay open: a process that left the group may hold them. */
const pipesMs = 1_000
const maxQueued = 1_048_576

/** What a program needs to find itself at home, and nothing that could be a secret. */
const inherited = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'USER', 'LOGNAME', 'SHELL']

export type Supervisor = ReturnType<typeof createSupervisor>

interface SupervisorOptions {
  /** Where the inherited variables come from; children do not see the rest of it. */
  readonly baseEnv: Environment
  readonly maxProcesses: number
  readonly maxPerTenant: number
  readonly clock: Clock
  readonly log: Log
}

export function createSupervisor({ baseEnv, maxProcesses, maxPerTenant, clock, log }: SupervisorOptions) {
  /** Those that have not ended, with whom they count for; undefined: for no tenant. */
  const running = new Map<Child, { readonly tenant: TenantId; readonly quotaKey: string | undefined } | undefined>()
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
      const child = startChild(definition, { ...events, ended }, baseEnv, clock, log)
      running.set(child, counts ? { tenant, quotaKey } : undefined)
      return child
    },
    count: () => running.size,
    /** Synchronous, for `process.on('exit')`: KILL to every group. */
    killAllNow(): void {
      for (const child of running.keys()) child.kill()
    }
  }
}

/** @throws GatewayError upstream_unavailable */
function startChild(
  definition: StdioDefinition,
  { stdout, stderr, ended }: ChildEvents,
  baseEnv: Environment,
  clock: Clock,
  log: Log
): Child {
  const { name } = definition
  const child = spawned(definition, baseEnv)
  let over = false
  let closing: Promise<void> | undefined
  const gone = Promise.withResolvers<void>()

  function finish(reason: GatewayError): void {
    if (over) return
    over = true
    // The grandchildren may have outlived their parent.
    signalGroup('SIGKILL')
    child.stdin.destroy()
    child.stdout.destroy()
    child.stderr.destroy()
    gone.resolve()
    ended(reason)
  }

  function signalGroup(signal: NodeJS.Signals): void {
    if (child.pid === undefined) return
    try {
      process.kill(-child.pid, signal)
    } catch (error) {
      // ESRCH: the whole group has gone, which is what we want. Anything else leaves at least the leader to us.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') child.kill(signal)
    }
  }

  const stop = async (): Promise<void> => {
    if (over) return
    child.stdin.end()
    // Not even KILL ends a process that hangs in the kernel: after the last grace we stop waiting for it.
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      if (await settledWithin(clock, graceMs, gone.promise)) return
      signalGroup(signal)
    }
    await settledWithin(clock, graceMs, gone.promise)
  }
  const close = (): Promise<void> => (closing ??= stop())

  child.stdout.on('data', stdout)
  child.stderr.on('data', stderr)
  // For good, not once: a child that has changed its user makes an error of every signal that we try.
  child.on('error', (cause: NodeJS.ErrnoException) => {
    if (child.pid === undefined) return finish(startError(definition, whyNot(definition, cause), cause))
    log.warn({ upstream: name, pid: child.pid, reason: cause.code }, 'the process of the upstream cannot be signalled')
  })
  child.once('exit', (code, signal) => {
    signalGroup('SIGKILL')
    const text =
      `The process of upstream ${name} ended (${signal === null ? `exit code ${code}` : `signal ${signal}`}) before ` +
      'it answered. The request is not sent again; whether it took effect is unknown.'
    const exited = (): void => finish(uncertainError(name, 'upstream_lost', text))
    // What it wrote last is still in the pipes: 'close' comes when they are read to their end.
    const timer = clock.timer(pipesMs, exited)
    child.once('close', () => {
      timer.close()
      exited()
    })
  })
  // A child that closes its side of a pipe but lives on can no longer be talked to. It may be on its way out, so it
  // gets its grace.
  const hangUp = (): void => {
    void close()
  }
  child.stdin.on('error', hangUp)
  child.stdout.once('end', hangUp)
  child.stdout.on('error', hangUp)
  child.stderr.on('error', () => {
    child.stderr.destroy()
  })

  return {
    write(text) {
      if (over || child.stdin.writableLength > maxQueued) return false
      child.stdin.write(text)
      return true
    },
    close,
    kill() {
      if (!over) signalGroup('SIGKILL')
    }
  }
}

function spawned(definition: StdioDefinition, baseEnv: Environment): ChildProcessWithoutNullStreams {
  const { command, args, cwd, env } = definition
  try {
    return spawn(command, args, {
      cwd,
      env: environment(baseEnv, env),
      detached: true,
      shell: false,
      stdio: ['pipe', 'pipe', 'pipe']
    })
  } catch (cause) {
    // A NUL byte in an argument, or a resource of this process that has run out.
    throw startError(definition, 'check its command, args, env and cwd', cause)
  }
}

/** The child's environment: a handful of inherited variables and what the definition says. */
export function environment(base: Environment, own: Readonly<Record<string, string>>): Record<string, string> {
  // A value like "() { ..." is a shell function, which some shells would run.
  const taken = inherited.flatMap((name) => {
    const value = base[name]
    return value === undefined || value.startsWith('()') ? [] : [[name, value] as const]
  })
  return { ...Object.fromEntries(taken), ...own }
}

function startError({ name }: StdioDefinition, why: string, cause: unknown): GatewayError {
  const text = `Upstream ${name} cannot be started: ${why}.`
  return new UnreachableError('upstream_unavailable', text, { cause, data: { upstream: name } })
}

// Names the command, never its arguments: those may carry secrets.
function whyNot({ command, cwd }: StdioDefinition, { code = 'an unknown error' }: NodeJS.ErrnoException): string {
  if (cwd !== undefined && !existsSync(cwd)) return `its working directory ${cwd} does not exist: correct cwd`
  if (code === 'ENOENT') return `the command ${command} was not found: install it, or correct the command or its PATH`
  if (code === 'EACCES') return `the command ${command} may not be executed: make it executable, or correct the command`
  return `the command ${command} failed with ${code}`
}
