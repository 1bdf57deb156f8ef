// Kills processes that outlive the child that started them. Every child has two marks that its descendants inherit,
// even if they leave its process group (setsid): a variable in the environment, and a resource limit that stays when a
// process clears its environment (limit-mark.ts). When a child ends, its descendants are searched in /proc and killed.
// When the gateway itself is killed, the guard, a small shell script that waits for this, kills all of them. Without
// the resource limit, only a sandbox (sandbox.ts), a container or a cgroup ends a process that clears its environment.

import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, readdir } from 'node:fs/promises'
import { isOutOfDescriptors } from '../../limits/descriptors.ts'
import { type Clock, pause } from '../../time/clock.ts'
import type { Log } from '../../observe/log.ts'
import { createLimitMark, type Named, orNone } from './limit-mark.ts'

export const markVariable = 'GATEHOUSE_CHILD'

/** The most searches for one child: its descendants may start processes as fast as they are killed. */
const maxSearches = 100
/** The time between two searches, since a killed process is still visible for a moment. */
const searchPauseMs = 10
/** The time until the next search if no file descriptor was left for this one. */
const crowdedPauseMs = 1_000

const markBytes = 16
const shell = '/bin/sh'
/**
 * The guard. It reads the list of process groups, one line per change, until the gateway has ended and the input with
 * it. Then it kills the groups and every process with a mark: until none is found, and again a second later, because a
 * process may have been about to start.
 */
const guardScript = `
living() {
  for path in $(grep -lsE -- "$1" /proc/[0-9]*/limits); do
    grep -qs '^State:.[^ZX]' "\${path%/limits}/status" && printf '%s\\n' "$path"
  done
}
trap '' HUP INT TERM
while read -r line; do groups=$line; done
for group in $groups; do kill -s KILL -- "-$group"; done
for again in 1 2; do
  searches=0
  while
    found=$(grep -lsF -- "$1" /proc/[0-9]*/environ; living "$2")
    [ -n "$found" ] && [ "$searches" -lt ${maxSearches} ]
  do
    for path in $found; do pid=\${path#/proc/}; kill -s KILL "\${pid%%/*}"; done
    searches=$((searches + 1))
  done
  [ "$again" = 2 ] || sleep 1
done`

export type Orphans = ReturnType<typeof createOrphans>

interface OrphansOptions {
  /** The PATH of the guard, and the one in which `prlimit` is searched. */
  readonly path: string | undefined
  readonly clock: Clock
  readonly log: Log
  /** Replaced in tests. */
  readonly proc?: string
}

export function createOrphans({ path, clock, log, proc = '/proc' }: OrphansOptions) {
  const own = randomBytes(markBytes).toString('hex')
  const limit = createLimitMark({ own, path, proc, log })
  const hasProc = existsSync(`${proc}/self/environ`)
  const hasShell = existsSync(shell)
  const groups = new Set<number>()
  /** The marks of ended children whose descendants are being killed. */
  const wanted = new Map<string, { readonly resolve: (isClean: boolean) => void; searches: number }>()
  let searching = false
  let guard: ChildProcess | undefined
  let closed = false

  if (!hasProc)
    log.warn(
      { missing: proc },
      'what a stdio upstream starts outside of its process group outlives its session and the gateway: this system ' +
        'has no /proc, where it could be found. Run the gateway in a container to be sure of its end'
    )
  if (!hasShell)
    log.warn(
      { missing: shell },
      'processes of stdio upstreams that ignore the end of their input outlive a gateway that is killed (SIGKILL): ' +
        'this system has no shell that could end them. Run the gateway in a container to be sure of their end'
    )

  /** @returns the mark in the environment of a process */
  function markIn(environment: string): string | undefined {
    const at = environment.indexOf(own)
    return at === -1 ? undefined : environment.slice(at, at + own.length + 1 + markBytes * 2)
  }

  /** @returns the mark in the environment of a process, or else that of its limit. @throws see `orNone` */
  async function markOf(pid: string, marks: Iterable<string>): Promise<string | undefined> {
    const environment = await readFile(`${proc}/${pid}/environ`, 'latin1').catch(orNone)
    return markIn(environment) ?? (await limit.markOf(pid, marks))
  }

  async function wantedMarkOf(pid: string): Promise<string | undefined> {
    const mark = await markOf(pid, wanted.keys())
    return mark !== undefined && wanted.has(mark) ? mark : undefined
  }

  /** Kills processes with a wanted mark. @returns the marks found. @throws the error if no file descriptor is left */
  async function killMarked(): Promise<ReadonlySet<string>> {
    const found = new Set<string>()
    for (const name of await readdir(proc)) {
      if (!/^\d+$/.test(name)) continue
      try {
        const mark = await wantedMarkOf(name)
        if (mark === undefined) continue
        found.add(mark)
        process.kill(Number(name), 'SIGKILL')
      } catch (error) {
        if (isOutOfDescriptors(error)) throw error
        // The process has ended meanwhile, or belongs to another user. If it could not be killed, it is found again.
      }
    }
    return found
  }

  async function endWanted(): Promise<void> {
    searching = true
    while (wanted.size > 0) {
      // Marks that are added during a search need another one.
      const known = [...wanted]
      const found = await killMarked().catch((err: unknown) => {
        log.debug({ err }, 'processes that ended upstreams left could not be searched')
        return undefined
      })
      for (const [mark, of] of found === undefined ? [] : known) {
        const isClean = found?.has(mark) === false
        if (!isClean && ++of.searches < maxSearches) continue
        wanted.delete(mark)
        of.resolve(isClean)
      }
      if (wanted.size > 0) await pause(clock, found === undefined ? crowdedPauseMs : searchPauseMs)
    }
    searching = false
  }

  function startGuard(): void {
    if (guard !== undefined || !hasShell || closed) return
    const lost = (err: unknown): void =>
      log.warn(
        { err },
        'the guard, which ends what upstreams leave when the gateway is killed, does not run; the next start of an ' +
          'upstream starts it again'
      )
    let child: ChildProcess
    try {
      // `detached` gives the guard its own session: neither Ctrl-C nor the end of our process group ends it.
      child = spawn(shell, ['-c', guardScript, 'gatehouse-guard', own, limit.pattern], {
        env: path === undefined ? {} : { PATH: path },
        detached: true,
        cwd: '/',
        stdio: ['pipe', 'ignore', 'ignore']
      })
    } catch (error) {
      return lost(error)
    }
    const gone = (reason: unknown): void => {
      if (guard !== child) return
      guard = undefined
      if (!closed) lost(reason)
    }
    guard = child
    child.on('error', gone).on('exit', (code, signal) => gone(signal ?? code))
    child.unref()
    // There is no pipe if no file descriptor was left; 'error' is emitted later.
    const input = child.stdin as (typeof child.stdin & { unref(): void }) | null | undefined
    input?.on('error', gone)
    input?.unref()
  }

  function tellGuard(): void {
    guard?.stdin?.write(`${[...groups].join(' ')}\n`)
  }

  return {
    /** @returns the mark of a new child: the value of `markVariable` in its environment */
    newMark: (): string => `${own}.${randomBytes(markBytes).toString('hex')}`,
    markOf,
    /** Must be awaited before a start. For its parameter and errors see `createLimitMark`. */
    ready: async (bare: readonly Named[]): Promise<void> => {
      if (hasProc) await limit.ready(bare)
    },
    wrap: limit.wrap,
    /** Tells the guard about a new child. @param group the process group that the child leads */
    started(group: number): void {
      groups.add(group)
      startGuard()
      tellGuard()
    },
    /** Kills the descendants of a child that has ended. Never rejects. @returns false if some could not be killed */
    async ended(group: number, mark: string): Promise<boolean> {
      groups.delete(group)
      tellGuard()
      if (!hasProc) return true
      return await new Promise((resolve) => {
        wanted.set(mark, { resolve, searches: 0 })
        if (!searching) void endWanted()
      })
    },
    /** Lets the guard kill what is left, and end. */
    close(): void {
      closed = true
      guard?.stdin?.end()
    }
  }
}
