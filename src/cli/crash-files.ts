// Prevents core dumps, reports and debuggers that would reveal secrets of this process: its memory holds tokens of
// people and keys of the vault, and its environment may hold secrets of the configuration.

import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import type { Log } from '../observe/log.ts'

/** The timeout of `prlimit`, which normally takes a millisecond. */
const timeoutMs = 5_000

/**
 * No core dump, no environment in a report of Node, no debugger for whoever may send a signal. Never rejects: where the
 * system does not let it, the log says what to do.
 */
export async function keepOutOfCrashFiles(log: Log): Promise<void> {
  if (process.report !== undefined) process.report.excludeEnv = true
  // Without a listener Node opens its inspector, which reads all memory.
  process.on('SIGUSR1', () => log.warn('SIGUSR1 opens no debugger here; start with --inspect for one'))
  if (process.platform !== 'linux' || (await coreLimit()) === '0') return
  // Node has no way of its own. Its child processes have the same limit from then on.
  const limited = promisify(execFile)('prlimit', ['--pid', String(process.pid), '--core=0'], { timeout: timeoutMs })
  const reason = await limited.then(
    () => undefined,
    ({ message }: Error) => message
  )
  if ((await coreLimit()) === '0') return
  log.warn(
    { reason },
    'a crash may leave a core dump, which has secrets in it: start the gateway with a core limit of 0 (ulimit -c 0)'
  )
}

/** Linux: "Max core file size", of which the first number is the limit in force. */
const coreLimit = async (): Promise<string | undefined> =>
  await readFile('/proc/self/limits', 'utf8').then(
    (text) => /^Max core file size\s+(\S+)/m.exec(text)?.[1],
    // Without /proc the limit is unknown: it is set, and a failure is logged.
    () => undefined
  )
