// The gateway as people run it: `bin/gatehouse.mjs` in a process of its own, watched from outside.

import { type Teardown, until } from '../../kit/until.ts'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { compiledCode } from '../../kit/compiled-code.ts'

const bin = fileURLToPath(new URL('../../../bin/gatehouse.mjs', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly signal: string | null
}

export interface Running {
  readonly pid: number
  /** Lines so far. */
  readonly stdout: readonly string[]
  readonly stderr: readonly string[]
  /** Resolves with the URL of the ready line, and rejects where the process ends before it. */
  readonly ready: Promise<string>
  readonly ended: Promise<Ended>
  /** Resolves with the first line of the log, past or future, that fits. */
  logged(what: string, fits: (line: Record<string, unknown>) => boolean): Promise<Record<string, unknown>>
  signal(name: NodeJS.Signals): void
  /** SIGTERM, and how it ended. */
  stop(): Promise<Ended>
}

export interface StartOptions {
  readonly env?: Record<string, string>
  readonly cwd?: string
  /** Another program than this Node, and what to put before the script. */
  readonly node?: string
  readonly nodeArgs?: readonly string[]
  /** Another gateway than that of this checkout. */
  readonly script?: string
}

const readyLine = /^gatehouse listening on (http:\/\/\S+)$/

/** @param args those of the command line, such as `serve --config FILE` */
export function gatehouse(
  t: Teardown,
  args: readonly string[],
  { env = {}, cwd, node = process.execPath, nodeArgs = [], script = bin }: StartOptions = {}
): Running {
  const child = spawn(node, [...nodeArgs, script, ...args], {
    // Nothing more of the test runner's own environment: it would change the Node below.
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...compiledCode, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(cwd === undefined ? {} : { cwd })
  })
  const { pid = 0 } = child
  const stdout: string[] = []
  const stderr: string[] = []
  const ready = Promise.withResolvers<string>()
  createInterface(child.stdout).on('line', (line) => {
    stdout.push(line)
    const url = readyLine.exec(line)?.[1]
    if (url !== undefined) ready.resolve(url)
  })
  createInterface(child.stderr).on('line', (line) => {
    stderr.push(line)
  })
  const ended = once(child, 'close').then(([code, signal]): Ended => ({
    code: code as number | null,
    signal: signal as string | null
  }))
  ended.then(() => ready.reject(new Error(`it ended before it was ready:\n${stderr.join('\n')}`)), ready.reject)
  ready.promise.catch(() => {}) // Those who wait for it are told; a test of a failing start does not wait.
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await ended
  })
  return {
    pid,
    stdout,
    stderr,
    ready: ready.promise,
    ended,
    logged: (what, fits) =>
      until(what, () => stderr.map(logLine).find((line) => line !== undefined && fits(line))).catch(
        (cause: unknown) => {
          throw new Error(`not in the log: ${what}\n${stderr.join('\n')}`, { cause })
        }
      ),
    signal: (name) => {
      child.kill(name)
    },
    async stop() {
      child.kill('SIGTERM')
      return await ended
    }
  }
}

/** A line of standard error as a line of the log; undefined where it is something else, such as the banner. */
export function logLine(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return undefined
  }
}

/** All processes below this one, at whatever depth. */
export function descendants(pid: number): number[] {
  const below = Map.groupBy(living(), ({ parent }) => parent)
  const found: number[] = []
  for (const next = [pid]; next.length > 0;) {
    const children = (below.get(next.pop() ?? 0) ?? []).map((child) => child.pid)
    found.push(...children)
    next.push(...children)
  }
  return found
}

/** Sends the signal to those of these that are still there. */
export function signalAll(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name)
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** Resolves when none of these is alive any more. */
export async function allGone(pids: readonly number[]): Promise<void> {
  await until('all child processes have ended', () => !living().some(({ pid }) => pids.includes(pid)))
}

/** What has ended but was not collected by its parent yet (a zombie) is no longer among them. */
function living(): Array<{ pid: number; parent: number }> {
  return statusLines().flatMap((line) => {
    const [pid, parent, state = ''] = line.trim().split(/\s+/)
    return /^[ZX]/.test(state) ? [] : [{ pid: Number(pid), parent: Number(parent) }]
  })
}

/**
 * `PID PARENT STATE` of every process: from /proc, as there need not be a `ps`; else from `ps`, as there need not be a
 * /proc.
 */
function statusLines(): string[] {
  if (!existsSync('/proc/self/stat'))
    return spawnSync('ps', ['-A', '-o', 'pid=,ppid=,stat='], { encoding: 'utf8' }).stdout.trim().split('\n')
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        // The name of the program stands in brackets and may hold anything, brackets too.
        const [, state, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\)/s, ')').split(' ')
        return [`${pid} ${parent} ${state}`]
      } catch {
        return [] // It ended while we looked.
      }
    })
}
