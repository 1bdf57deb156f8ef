// Starts one child process, writes to it and ends it. The child leads its own process group, and the whole group is
// killed with it: if only a wrapper such as npx were killed, the real server would go on. No shell is ever used.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import type { JsonText } from '../../protocol/json-text.ts'
import type { GatewayError } from '../../protocol/messages.ts'
import { type Clock, settledWithin, type Timer } from '../../time/clock.ts'
import type { StepSource } from '../../time/turns.ts'
import { uncertainError, uncertainty } from '../rpc/errors.ts'
import { environment } from './child-environment.ts'
import { markVariable, type Orphans } from './orphans.ts'
import type { Command, Sandbox } from './sandbox.ts'
import { ProcessEndedError, startError } from './start-error.ts'
import type { Environment } from '../../config/references.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'

export interface ChildEvents {
  stdout(chunk: Buffer): void
  stderr(chunk: Buffer): void
  /** Called exactly once, when the process has ended or could not start, after all its output was handed over. */
  ended(reason: GatewayError): void
}

export interface Child {
  /** While a stream is paused, further output waits in the pipe. */
  readonly stdout: StepSource
  readonly stderr: StepSource
  /**
   * @param line a string includes its line feed; a long text (`parts`) gets one here
   * @param read called when the child has read the line, or never will
   * @returns false if the child has left more than `maxQueued` bytes unread; then nothing was written
   */
  write(line: JsonText, read: () => void): boolean
  /**
   * Closes standard input; after `graceMs` sends SIGTERM to the group, and after `graceMs` more SIGKILL. Resolves when
   * the processes are gone, at the latest after a third `graceMs`. Idempotent.
   */
  close(): Promise<void>
  /**
   * Sends SIGKILL to the group.
   * @param why the reason in the error of the pending requests: a clause without a full stop
   */
  kill(why?: string): void
  /** Whether the process was told to end; its memory and its place are free within seconds. */
  isEnding(): boolean
  /** The value of `markVariable` in the environment of the child and of every process that it starts. */
  readonly mark: string
}

export interface ChildSurroundings {
  /** The gateway's own environment; a child inherits only a few of its variables (child-environment.ts). */
  readonly baseEnv: Environment
  readonly orphans: Orphans
  readonly sandbox: Sandbox
  readonly clock: Clock
  readonly log: Log
}

// 2025-11-25 basic/lifecycle "Shutdown": close stdin, wait, SIGTERM, wait, SIGKILL.
const graceMs = 2_000
/** How long the output of a dead child is still read: a process that has left its group may keep the pipes open. */
const pipesMs = 1_000
const maxQueued = 1_048_576
/** The oom_score_adj of children, of at most 1000: Linux adds half of all memory to what a child uses. */
const outOfMemoryScore = '500'

/** @throws GatewayError see `startError` */
export function startChild(
  definition: StdioDefinition,
  { stdout, stderr, ended }: ChildEvents,
  { baseEnv, orphans, sandbox, clock, log }: ChildSurroundings
): Child {
  const { name } = definition
  const mark = orphans.newMark()
  const env = { ...environment(baseEnv, definition), [markVariable]: mark }
  const command = orphans.wrap(sandbox.wrap(definition, env), mark, env, definition.cwd)
  const child = spawned(definition, command, env)
  const { pid } = child
  if (pid !== undefined) {
    orphans.started(pid)
    endFirst(pid)
  }
  let over = false
  let killedFor: string | undefined
  let isKilled = false
  let closing: Promise<void> | undefined
  const gone = Promise.withResolvers<void>()

  function finish(reason: GatewayError): void {
    if (over) return
    over = true
    // Processes that the child has started may still run.
    signalGroup('SIGKILL')
    child.stdin.destroy()
    child.stdout.destroy()
    child.stderr.destroy()
    if (pid === undefined) gone.resolve()
    else void orphans.ended(pid, mark).then(noteLeft).then(gone.resolve)
    ended(reason)
  }

  function noteLeft(isClean: boolean): void {
    if (!isClean) log.warn({ upstream: name }, 'processes of an ended upstream could not be killed: end them by hand')
  }

  function signalGroup(signal: NodeJS.Signals): void {
    if (child.pid === undefined) return
    try {
      process.kill(-child.pid, signal)
    } catch (error) {
      // ESRCH: no process of the group is left. After any other error, at least the child itself can be signalled.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') child.kill(signal)
    }
  }

  const stop = async (): Promise<void> => {
    if (over) return await gone.promise
    child.stdin.end()
    // SIGKILL does not end a process that hangs in the kernel, so the last wait is limited too.
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      if (await settledWithin(clock, graceMs, gone.promise)) return
      if (!over) signalGroup(signal)
    }
    await settledWithin(clock, graceMs, gone.promise)
  }
  const close = (): Promise<void> => (closing ??= stop())

  child.stdout.on('data', stdout)
  child.stderr.on('data', stderr)
  // Not `once`: if the child has changed its user, every signal that we send to it emits another error.
  child.on('error', (cause: NodeJS.ErrnoException) => {
    if (child.pid === undefined) return finish(startError(definition, cause))
    log.warn({ upstream: name, pid: child.pid, reason: cause.code }, 'the process cannot be signalled: end it by hand')
  })
  child.once('exit', (code, signal) => {
    signalGroup('SIGKILL')
    const how = killedFor ?? (signal === null ? `exit code ${code}` : `signal ${signal}`)
    const text = `The process of upstream ${name} ended (${how}) before it answered.${uncertainty}`
    const reason =
      killedFor === undefined ? new ProcessEndedError(name, text, code) : uncertainError(name, 'upstream_lost', text)
    const exited = (): void => finish(reason)
    // The last output may still be in the pipes: 'close' is emitted when they have been read to their end.
    const waitForPipes = (): Timer =>
      clock.timer(pipesMs, () => {
        // While the stream is paused, it is the gateway that has not read the output yet.
        if (!over && child.stdout.isPaused()) timer = waitForPipes()
        else exited()
      })
    let timer = waitForPipes()
    child.once('close', () => {
      timer.close()
      exited()
    })
  })
  // A child that closes one of its pipes can no longer exchange messages. It may be about to exit, so it is closed and
  // not killed at once.
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
    stdout: child.stdout,
    stderr: child.stderr,
    write(line, read) {
      const { stdin } = child
      if (over || stdin.writableLength > maxQueued) return false
      if (typeof line === 'string') stdin.write(line, read)
      else {
        for (const part of line.parts) stdin.write(part)
        stdin.write('\n', read)
      }
      return true
    },
    close,
    kill(why) {
      if (over) return
      killedFor ??= why
      isKilled = true
      signalGroup('SIGKILL')
    },
    isEnding: () => closing !== undefined || isKilled,
    mark
  }
}

/** Makes Linux kill the server, not the gateway, when memory runs out (proc(5), oom_score_adj). */
function endFirst(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, outOfMemoryScore)
  } catch {
    // The system is not Linux, or the process has already ended.
  }
}

function spawned(
  definition: StdioDefinition,
  { command, args }: Command,
  env: Environment
): ChildProcessWithoutNullStreams {
  const { cwd } = definition
  let child: ChildProcessWithoutNullStreams
  try {
    child = spawn(command, args, { cwd, env, detached: true, shell: false, stdio: ['pipe', 'pipe', 'pipe'] })
  } catch (cause) {
    throw startError(definition, cause)
  }
  // If no file descriptor is left, spawn returns a child without pipes and emits 'error' later.
  const { stdin } = child as { readonly stdin?: unknown }
  if (stdin !== undefined && stdin !== null) return child
  child.on('error', () => {})
  throw startError(definition, { code: 'EMFILE' })
}
