// Starts and ends one child process. It leads a process group of its own and the whole group ends with it, because a
// wrapper such as npx leaves the real server behind when only the wrapper is killed. Never a shell.

import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { existsSync } from 'node:fs'
import { settledWithin } from '../../time/wait.ts'
import { UnreachableError } from '../rpc/errors.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { GatewayError } from '../../protocol/errors.ts'
import type { Clock } from '../../time/clock.ts'

export interface ChildEvents {
  stdout(chunk: Buffer): void
  stderr(chunk: Buffer): void
  /** It has ended, or never started; all it wrote was handed over before. Exactly once. */
  ended(how: ProcessEnd): void
}

export type ProcessEnd =
  | { readonly kind: 'failed'; readonly error: GatewayError }
  | { readonly kind: 'exited'; readonly code: number | null; readonly signal: string | null }

export interface Child {
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

/**
 * @param baseEnv where the inherited variables come from
 * @throws GatewayError upstream_unavailable
 */
export function startChild(
  definition: StdioDefinition,
  events: ChildEvents,
  baseEnv: Environment,
  clock: Clock,
  log: Log
): Child {
  const child = spawned(definition, baseEnv)
  let over = false
  let closing: Promise<void> | undefined
  const gone = Promise.withResolvers<void>()

  function finish(how: ProcessEnd): void {
    if (over) return
    over = true
    // The grandchildren may have outlived their parent.
    signalGroup('SIGKILL')
    child.stdin.destroy()
    child.stdout.destroy()
    child.stderr.destroy()
    gone.resolve()
    events.ended(how)
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
    if (await settledWithin(clock, graceMs, gone.promise)) return
    signalGroup('SIGTERM')
    if (await settledWithin(clock, graceMs, gone.promise)) return
    signalGroup('SIGKILL')
    // Not even KILL ends a process that hangs in the kernel: then we stop waiting for it.
    await settledWithin(clock, graceMs, gone.promise)
  }
  const close = (): Promise<void> => (closing ??= stop())

  child.stdout.on('data', events.stdout)
  child.stderr.on('data', events.stderr)
  // For good, not once: a child that has changed its user makes an error of every signal that we try.
  child.on('error', (cause: NodeJS.ErrnoException) => {
    if (child.pid === undefined) finish({ kind: 'failed', error: startError(definition, cause) })
    else
      log.warn(
        { upstream: definition.name, pid: child.pid, reason: cause.code },
        'the process of the upstream cannot be signalled'
      )
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
  const { name, command, args, cwd, env } = definition
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
    const text = `Upstream ${name} cannot be started: check its command, args, env and cwd.`
    throw new UnreachableError('upstream_unavailable', text, { cause, data: { upstream: name } })
  }
}

/** The child's environment: a handful of inherited variables and what the definition says. */
export function environment(base: Environment, own: Readonly<Record<string, string>>): Record<string, string> {
  const result: Record<string, string> = {}
  for (const name of inherited) {
    const value = base[name]
    // A value like "() { ..." is a shell function, which some shells would run.
    if (value !== undefined && !value.startsWith('()')) result[name] = value
  }
  return Object.assign(result, own)
}

// Names the command, never its arguments: those may carry secrets.
function startError(definition: StdioDefinition, cause: NodeJS.ErrnoException): GatewayError {
  const { name, command, cwd } = definition
  const why =
    cwd !== undefined && !existsSync(cwd)
      ? `its working directory ${cwd} does not exist: correct cwd`
      : cause.code === 'ENOENT'
        ? `the command ${command} was not found: install it, or correct the command or its PATH`
        : cause.code === 'EACCES'
          ? `the command ${command} may not be executed: make it executable, or correct the command`
          : `the command ${command} failed with ${cause.code ?? 'an unknown error'}`
  return new UnreachableError('upstream_unavailable', `Upstream ${name} cannot be started: ${why}.`, {
    cause,
    data: { upstream: name }
  })
}
