// A real Redis of a test's own, which it may kill, freeze and start again. Gone when the test is.

import { patienceMs, type Teardown } from './until.ts'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureRedis } from '../../scripts/programs.ts'
import { freePort } from './free-port.ts'

export interface PrivateRedis {
  readonly url: string
  /** Kills it, as a crash would. */
  stop(): Promise<void>
  /** Freezes it: connections stay open and nothing is answered. */
  pause(): void
  resume(): void
  /** Kills it where it runs and starts it again, empty, on the same port. */
  restart(): Promise<void>
}

/** A Redis that other programs may use, too: use keys of your own and flush nothing. */
export function sharedRedisUrl(): string | undefined {
  return process.env['REDIS_URL']
}

/**
 * @param args further options of the server, such as `--requirepass x`
 * @param config lines of a configuration file that the server may write to, as a Sentinel does
 */
export async function redis(t: Teardown, args: readonly string[] = [], config?: string): Promise<PrivateRedis> {
  const program = ensureRedis()
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-redis-'))
  const file = config === undefined ? [] : [join(folder, 'redis.conf')]
  for (const path of file) await writeFile(path, config ?? '')
  let child: ChildProcess | undefined
  const launch = async (port: number): Promise<boolean> => {
    const started = spawn(
      program,
      [
        ...file,
        '--port',
        String(port),
        '--bind',
        '127.0.0.1',
        '--save',
        '',
        '--appendonly',
        'no',
        '--dir',
        folder,
        ...args
      ],
      { stdio: 'ignore' }
    )
    child = started
    return answers(port, started)
  }
  const stop = async (): Promise<void> => {
    if (child === undefined || ended(child)) return
    const exit = once(child, 'exit')
    child.kill('SIGKILL') // Works on a frozen process too.
    await exit
  }
  t.teardown(async () => {
    await stop()
    await rm(folder, { recursive: true, force: true })
  })

  let port = await freePort()
  for (let tries = 1; !(await launch(port)); tries += 1) {
    // Somebody took the port between our asking for it and Redis binding it.
    if (tries === 5) throw new Error(`${program} does not start`)
    port = await freePort()
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    stop,
    pause: () => {
      child?.kill('SIGSTOP')
    },
    resume: () => {
      child?.kill('SIGCONT')
    },
    async restart() {
      await stop()
      if (!(await launch(port))) throw new Error(`${program} does not start again on port ${port}`)
    }
  }
}

const ended = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null

/** Waits until this very process answers. @returns false where it has ended first */
async function answers(port: number, child: ChildProcess): Promise<boolean> {
  const deadline = performance.now() + patienceMs
  while (!ended(child) && performance.now() < deadline) {
    if (await isOurs(port, child.pid)) return true
    await new Promise((resolve) => {
      setTimeout(resolve, 20)
    })
  }
  child.kill('SIGKILL')
  return false
}

/**
 * Somebody else's Redis on the same port would answer PING just as well. One with a password will not say: then any
 * answer will do.
 */
function isOurs(port: number, pid: number | undefined): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('INFO server\r\n'))
    let text = ''
    const ours = (): boolean => text.startsWith('-NOAUTH') || text.includes(`process_id:${pid}\r`)
    socket.setTimeout(1_000, () => socket.destroy())
    socket.on('data', (chunk) => {
      text += chunk.toString()
      if (ours()) socket.destroy()
    })
    socket.on('error', () => socket.destroy()) // Not listening yet: the caller asks again.
    socket.on('close', () => resolve(ours()))
  })
}
