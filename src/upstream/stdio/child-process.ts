// One child process: its start, its pipes and its end. It leads a process group of its own and the whole group ends
// with it, because a wrapper such as npx leaves the real server behind when only the wrapper is killed. Never a shell.

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
  /** It has ended, or never started; all it wrote was handed over before. Exactly once. */
  ended(reason: GatewayError): void
}

export interface Child {
  /** What it writes waits in its pipe while this is paused. */
  readonly stdout: StepSource
  readonly stderr: StepSource
  /**
   * @param line with the end of the line, where it is no long one
   * @param read runs when the child has read it, or never will
   * @returns false when the child has left more than `maxQueued` bytes unread: nothing was written
   */
  write(line: JsonText, read: () => void): boolean
  /**
   * Standard input ends; after a grace TERM, after another KILL, to the group. Resolves when it is gone. Idempotent.
   */
  close(): Promise<void>
  /**
   * KILL to the group.
   * @param why for those who wait for its answers; a sentence without its end
   */
  kill(why?: string): void
  /** It is on its way out: what it takes will be free within seconds. */
  isEnding(): boolean
  /** In the environment of all its processes. */
  readonly mark: string
}

export interface ChildSurroundings {
  /** Where the inherited variables come from; children do not see the rest of it. */
  readonly baseEnv: Environment
  readonly orphans: Orphans
  readonly sandbox: Sandbox
  readonly clock: Clock
  readonly log: Log
}

// 2025-11-25 basic/lifecycle "Shutdown": close stdin, wait, SIGTERM, wait, SIGKILL.
const graceMs = 2_000
/** How long the pipes of a dead child may stay open: a process that left the group may hold them. */
const pipesMs = 1_000
const maxQueued = 1_048_576
/** Of 1000: half of all memory is added to what a server takes up when the system chooses what to end. */
const outOfMemoryScore = '500'

/** @throws GatewayError as `startError` */
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
    // The grandchildren may have outlived their parent.
    signalGroup('SIGKILL')
    child.stdin.destroy()
    child.stdout.destroy()
    child.stderr.destroy()
    if (pid === undefined) gone.resolve()
    else void orphans.ended(pid, mark).then(noteLeft).then(gone.resolve)
    ended(reason)
  }

  function noteLeft(isClean: boolean): void {
    if (!isClean) log.warn({ upstream: name }, 'processes that the upstream has left cannot be ended')
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
    if (over) return await gone.promise
    child.stdin.end()
    // Not even KILL ends a process that hangs in the kernel: after the last grace we stop waiting for it.
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      if (await settledWithin(clock, graceMs, gone.promise)) return
      if (!over) signalGroup(signal)
    }
    await settledWithin(clock, graceMs, gone.promise)
  }
  const close = (): Promise<void> => (closing ??= stop())

  child.stdout.on('data', stdout)
  child.stderr.on('data', stderr)
  // For good, not once: a child that has changed its user makes an error of every signal that we try.
  child.on('error', (cause: NodeJS.ErrnoException) => {
    if (child.pid === undefined) return finish(startError(definition, cause))
    log.warn({ upstream: name, pid: child.pid, reason: cause.code }, 'the process of the upstream cannot be signalled')
  })
  child.once('exit', (code, signal) => {
    signalGroup('SIGKILL')
    const how = killedFor ?? (signal === null ? `exit code ${code}` : `signal ${signal}`)
    const text = `The process of upstream ${name} ended (${how}) before it answered.${uncertainty}`
    const reason =
      killedFor === undefined ? new ProcessEndedError(name, text, code) : uncertainError(name, 'upstream_lost', text)
    const exited = (): void => finish(reason)
    // What it wrote last is still in the pipes: 'close' comes when they are read to their end.
    const waitForPipes = (): Timer =>
      clock.timer(pipesMs, () => {
        // While it is paused, what it wrote waits for us and not for anybody else.
        if (!over && child.stdout.isPaused()) timer = waitForPipes()
        else exited()
      })
    let timer = waitForPipes()
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

/** Where memory runs out, the system ends the server and not the gateway (proc(5), oom_score_adj; Linux only). */
function endFirst(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, outOfMemoryScore)
  } catch {
    // Another system, or the process has ended.
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
  // Where no descriptor is left, spawn returns a child without pipes, whose error comes later.
  const { stdin } = child as { readonly stdin?: unknown }
  if (stdin !== undefined && stdin !== null) return child
  child.on('error', () => {})
  throw startError(definition, { code: 'EMFILE' })
}
