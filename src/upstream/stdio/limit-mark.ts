// A mark that a process keeps where it wipes its environment: a resource limit that nothing looks at, and that all
// inherit that come of it. It is set by `prlimit` (util-linux), which then becomes the program itself: the same
// process with the same environment.

import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { isOutOfDescriptors } from '../../limits/descriptors.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { type Command, findCommand } from './sandbox.ts'
import { isFaultOfGateway } from './start-error.ts'

// getrlimit(2): RLIMIT_LOCKS was looked at last by Linux 2.4.24. Of the two limits the soft one, which may be set to
// any number, and again.
const option = '--locks'
/** proc(5), `limits`: everybody may read it. */
const line = '^Max file locks +'
/** The test run ends by itself; a system that hangs must not hold the start of upstreams. */
const probeMs = 10_000

/** Of upstreams that the log names: a line, and no list of all. */
const maxNames = 10

const run = promisify(execFile)

export type Named = Pick<StdioDefinition, 'tenant' | 'name'>

type Environment = Readonly<Record<string, string | undefined>>

interface LimitMarkOptions {
  /** Hexadecimal; the marks of all children begin with it. */
  readonly own: string
  /** Where `prlimit` is looked for. */
  readonly path: string | undefined
  readonly proc: string
  readonly log: Log
}

export function createLimitMark({ own, path, proc, log }: LimitMarkOptions) {
  // Ten digits for the gateway and eight for the child: less than 2^63.
  const ofGateway = String(1_000_000_000 + Number.parseInt(own.slice(0, 8), 16))
  const limitOf = (mark: string): string => ofGateway + String(Number.parseInt(mark.slice(-6), 16)).padStart(8, '0')
  const anyLimit = new RegExp(`${line}(\\d+)`, 'm')
  /** Undefined where there is none, or it does not work. */
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
      // The system forbids it, or it is another program of that name.
    }
  }

  return {
    /** For grep -E: what this gateway has set. */
    pattern: `${line}${ofGateway}[0-9]{8} `,
    /**
     * Finds out, once, whether the system lets us set it; until then, and where it does not, nothing is marked.
     * @param bare upstreams without a sandbox: the log names them, once, where it does not
     * @throws what says that the gateway has no more of what that takes
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
    /** @returns what starts the same with the mark */
    wrap({ command, args }: Command, mark: string, env: Environment, cwd: string | undefined): Command {
      // A command that is not found is started as it is, so that the error says so.
      const found = program === undefined ? undefined : findCommand(command, env['PATH'], cwd)
      if (program === undefined || found === undefined) return { command, args }
      return { command: program, args: [`${option}=${limitOf(mark)}:`, '--', found, ...args] }
    },
    /** @returns which of these marks the process has; none where it has ended and nobody has asked how */
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

/** Where a process has gone meanwhile, or is somebody else's. @throws what says that no descriptor is left */
export function orNone(error: unknown): string {
  if (isOutOfDescriptors(error)) throw error
  return ''
}
