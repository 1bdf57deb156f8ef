// The gateway as its own process, started as a user starts it, and the process table: what it left behind.

import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from './until.ts'

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface Started {
  readonly pid: number
  readonly child: ChildProcess
  /** The folder of its configuration file; relative paths of the configuration begin here. Removed with the test. */
  readonly folder: string
  readonly ended: Promise<Exit>
  /** Its log so far, line by line. */
  log (): Array<Record<string, unknown>>
  /** All that it wrote on standard error so far. */
  stderr (): string
  /** Resolves with the URL of the ready line; rejects where the process ends without it. */
  ready (): Promise<string>
  /** TERM where it still runs; resolves with how it ended. */
  stop (): Promise<Exit>
}

export interface Served extends Started {
  readonly url: string
}

interface Teardown { teardown (run: () => unknown): void }

const root = new URL('../..', import.meta.url).pathname

/** Starts `gatehouse serve` on this configuration and a free port, and does not wait for anything. Killed with the test. */
export async function start (t: Teardown, config: unknown, env: NodeJS.ProcessEnv = {}): Promise<Started> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-'))
  const file = join(folder, 'gatehouse.json')
  await writeFile(file, JSON.stringify(config))
  const child = spawn(join(root, 'node_modules/.bin/node'), [join(root, 'bin/gatehouse.mjs'), 'serve', '--config', file, '--port', '0'], {
    cwd: folder,
    env: { ...process.env, NODE_OPTIONS: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe']
  })
  const { pid } = child
  if (pid === undefined) throw new Error('the gateway cannot be spawned')
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => { stdout += text })
  child.stderr.setEncoding('utf8').on('data', (text: string) => { stderr += text })
  const ended: Promise<Exit> = once(child, 'close').then(([code, signal]) => ({ code, signal }))
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await ended
    await rm(folder, { recursive: true, force: true })
  })
  return {
    pid,
    child,
    folder,
    ended,
    log: () => stderr.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}')).map((line) => JSON.parse(line) as Record<string, unknown>),
    stderr: () => stderr,
    ready: () => until('the ready line', () => {
      const url = /^gatehouse listening on (http:\S+)$/m.exec(stdout)?.[1]
      if (url === undefined && child.exitCode !== null) throw new Error(`the gateway ended before it was ready: ${stderr}`)
      return url
    }),
    async stop () {
      child.kill('SIGTERM')
      return await ended
    }
  }
}

/** Starts it and waits until it is ready. */
export async function serve (t: Teardown, config: unknown, env: NodeJS.ProcessEnv = {}): Promise<Served> {
  const started = await start(t, config, env)
  return { ...started, url: await started.ready() }
}

/** The live processes whose environment has this text: what was started with a mark in `env`, and all that came of it. */
export async function marked (mark: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const found = await Promise.all(pids.map(async (pid) => {
    // Gone meanwhile, or somebody else's: not what we look for. A zombie has no environment any more.
    const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')
    return environment.includes(mark) ? [pid] : []
  }))
  return found.flat()
}

/** How many descriptors a process has open. */
export async function descriptors (pid: number): Promise<number> {
  return (await readdir(`/proc/${pid}/fd`)).length
}

