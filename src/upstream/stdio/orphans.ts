// Processes that outlive the child that started them. Every child has two marks, which all that come of it inherit,
// also where they leave its process group (setsid): one in its environment, and one that stays where a process wipes
// that (limit-mark.ts). By these they are found in /proc and ended: those of one child when it has ended, and all of
// them when the gateway itself was killed, by a small shell that waits for that. Where the system knows no such limit,
// what wipes its environment escapes: only a sandbox (sandbox.ts), a container or a cgroup holds it.

import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, readdir } from 'node:fs/promises'
import { isOutOfDescriptors } from '../../limits/descriptors.ts'
import { type Clock, pause } from '../../time/clock.ts'
import type { Log } from '../../observe/log.ts'
import { createLimitMark, type Named, orNone } from './limit-mark.ts'

export const markVariable = 'GATEHOUSE_CHILD'

/** What starts processes as fast as they are ended is given up after so many searches. */
const maxSearches = 100
/** Between two of them: a killed process is gone after a moment only. */
const searchPauseMs = 10
/** Until the next search where no descriptor was left for this one. */
const crowdedPauseMs = 1_000

const markBytes = 16
const shell = '/bin/sh'
/**
 * Reads the process groups, a line each time they change, until the gateway is gone. Then it ends them, and whatever
 * has the mark: searched for until there is none, and once more after a second for one that was just being started.
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
  /** Where the guard finds its programs. */
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
  /** Marks of children that have ended, and who waits until nothing is left of them. */
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

  /** @returns the mark of a process that is one of these, or is in its environment. @throws as `orNone` */
  async function markOf(pid: string, marks: Iterable<string>): Promise<string | undefined> {
    const environment = await readFile(`${proc}/${pid}/environ`, 'latin1').catch(orNone)
    return markIn(environment) ?? (await limit.markOf(pid, marks))
  }

  async function wantedMarkOf(pid: string): Promise<string | undefined> {
    const mark = await markOf(pid, wanted.keys())
    return mark !== undefined && wanted.has(mark) ? mark : undefined
  }

  /** Kills what has a wanted mark. @returns the marks that were found. @throws what says that no descriptor is left */
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
        // Gone meanwhile, or somebody else's; what cannot be killed is found again.
      }
    }
    return found
  }

  async function endWanted(): Promise<void> {
    searching = true
    while (wanted.size > 0) {
      // Those that come while it searches need another search.
      const known = [...wanted]
      const found = await killMarked().catch((err: unknown) => {
        log.debug({ err }, 'processes that upstreams have left could not be searched for')
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
      // A session of its own: neither Ctrl-C nor the end of our process group ends it.
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
    // No pipe where no descriptor was left; the error follows.
    const input = child.stdin as (typeof child.stdin & { unref(): void }) | null | undefined
    input?.on('error', gone)
    input?.unref()
  }

  function tellGuard(): void {
    guard?.stdin?.write(`${[...groups].join(' ')}\n`)
  }

  return {
    /** For the environment of one child. */
    newMark: (): string => `${own}.${randomBytes(markBytes).toString('hex')}`,
    markOf,
    /** Before a start. @param bare without a sandbox, for the log. @throws what the gateway itself has no more of */
    ready: async (bare: readonly Named[]): Promise<void> => {
      if (hasProc) await limit.ready(bare)
    },
    wrap: limit.wrap,
    /** The child leads this process group. */
    started(group: number): void {
      groups.add(group)
      startGuard()
      tellGuard()
    },
    /** The child has ended: what has its mark is killed. Never rejects. @returns false where something is left */
    async ended(group: number, mark: string): Promise<boolean> {
      groups.delete(group)
      tellGuard()
      if (!hasProc) return true
      return await new Promise((resolve) => {
        wanted.set(mark, { resolve, searches: 0 })
        if (!searching) void endWanted()
      })
    },
    /** The guard ends what is left, and itself. */
    close(): void {
      closed = true
      guard?.stdin?.end()
    }
  }
}
