// Marks a child process by a resource limit that Linux does not enforce. All its descendants inherit the mark, and a
// process that clears its environment keeps it. `prlimit` (util-linux) sets the limit and then executes the program in
// the same process.

import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { isOutOfDescriptors } from '../../limits/descriptors.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { type Command, findCommand } from './sandbox.ts'
import { isFaultOfGateway } from './start-error.ts'

// getrlimit(2): RLIMIT_LOCKS was enforced last in Linux 2.4.24. The soft limit is set, because any process may change
// it to any value.
const option = '--locks'
/** The line of /proc/PID/limits that shows the mark (proc(5)); every user may read that file. */
const line = '^Max file locks +'
/** The timeout of the test run of `prlimit`, so that a system that hangs does not block the start of upstreams. */
const probeMs = 10_000

/** The most upstreams that the warning names. */
const maxNames = 10

const run = promisify(execFile)

export type Named = Pick<StdioDefinition, 'tenant' | 'name'>

type Environment = Readonly<Record<string, string | undefined>>

interface LimitMarkOptions {
  /** Identifies this gateway process, in hexadecimal; the marks of all its children begin with it. */
  readonly own: string
  /** The PATH in which `prlimit` is searched. */
  readonly path: string | undefined
  readonly proc: string
  readonly log: Log
}

export function createLimitMark({ own, path, proc, log }: LimitMarkOptions) {
  // A limit is a number below 2^63: ten digits identify the gateway and eight the child.
  const ofGateway = String(1_000_000_000 + Number.parseInt(own.slice(0, 8), 16))
  const limitOf = (mark: string): string => ofGateway + String(Number.parseInt(mark.slice(-6), 16)).padStart(8, '0')
  const anyLimit = new RegExp(`${line}(\\d+)`, 'm')
  /** The path of `prlimit`; undefined if it is not installed or does not work. */
  let program: string | undefined
  let probed: Promise<void> | undefined
  let said = false

  async function probe(): Promise<void> {
    const found = findCommand('prlimit', path, undefined)
    if (found === undefined) return
    const limit = limitOf('0')
    try {
      const args = [`${option}=${limit}:`, '--', 'cat', `${proc}/self/limits`]
      const { stdout } = await run(found, args, { env: path === undefined ? {} : { PATH: path }, timeout: probeMs })
      if (anyLimit.exec(stdout)?.[1] === limit) program = found
    } catch (error) {
      if (isFaultOfGateway(error)) {
        probed = undefined
        throw error
      }
      // The system forbids it, or another program has this name: children are not marked.
    }
  }

  return {
    /** An expression for `grep -E` that matches the limit of every child of this gateway. */
    pattern: `${line}${ofGateway}[0-9]{8} `,
    /**
     * Tests once whether `prlimit` works. Before, and if it does not work, no child is marked.
     * @param bare upstreams without a sandbox; if `prlimit` does not work, one warning names them
     * @throws the error of the test run if `isFaultOfGateway`
     */
    async ready(bare: readonly Named[]): Promise<void> {
      await (probed ??= probe())
      if (program !== undefined || bare.length === 0 || said) return
      said = true
      const upstreams = bare.slice(0, maxNames).map(({ tenant, name }) => `${tenant}/${name}`)
      log.warn(
        { missing: 'prlimit', upstreams, count: bare.length },
        'what a stdio upstream without a sandbox starts outlives its session and the gateway where it clears its ' +
          'environment and leaves its process group: install prlimit (util-linux), or give the upstream ' +
          '`sandbox: required`'
      )
    },
    /** @returns the command that sets the mark and then runs the given command */
    wrap({ command, args }: Command, mark: string, env: Environment, cwd: string | undefined): Command {
      // A command that is not found is started as it is, so that the error says so.
      const found = program === undefined ? undefined : findCommand(command, env['PATH'], cwd)
      if (program === undefined || found === undefined) return { command, args }
      return { command: program, args: [`${option}=${limitOf(mark)}:`, '--', found, ...args] }
    },
    /** @returns which of these marks the process has; undefined if it has none, or is a zombie */
    async markOf(pid: string, marks: Iterable<string>): Promise<string | undefined> {
      if (program === undefined) return undefined
      const limit = anyLimit.exec(await readFile(`${proc}/${pid}/limits`, 'latin1').catch(orNone))?.[1]
      if (limit?.startsWith(ofGateway) !== true) return undefined
      const mark = Iterator.from(marks).find((each) => limitOf(each) === limit)
      const isLiving = mark !== undefined && (await readFile(`${proc}/${pid}/cmdline`).catch(orNone)).length > 0
      return isLiving ? mark : undefined
    }
  }
}

/**
 * Handles a failed read in /proc: the process has ended meanwhile, or belongs to another user.
 * @throws the error if it says that no file descriptor is left
 */
export function orNone(error: unknown): string {
  if (isOutOfDescriptors(error)) throw error
  return ''
}
