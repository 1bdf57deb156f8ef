// The gateway in a process of its own, on a configuration of the test; and the process table: what it left behind.

import { type Teardown } from './until.ts'
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gatehouse, logLine, type Running } from '../e2e/kit/process.ts'

export interface Started extends Running {
  /** The folder of its configuration file; relative paths of the configuration begin here. Removed with the test. */
  readonly folder: string
  /** Its log so far, line by line. */
  log(): Array<Record<string, unknown>>
}

export interface Served extends Started {
  readonly url: string
}

export interface Process {
  readonly env?: Record<string, string>
  /** Further arguments of `serve`. */
  readonly args?: readonly string[]
  /** `bin/gatehouse.mjs` of another version than that of this checkout. */
  readonly script?: string
}

/**
 * Starts `gatehouse serve` on this configuration and a free port, and does not wait for anything. Killed with the test.
 */
export async function start(
  t: Teardown,
  config: unknown,
  { env = {}, args = [], script }: Process = {}
): Promise<Started> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-'))
  // What its children still write may come between.
  t.teardown(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
  const file = join(folder, 'gatehouse.json')
  await writeFile(file, JSON.stringify(config))
  const running = gatehouse(t, ['serve', '--config', file, '--port', '0', ...args], {
    cwd: folder,
    env,
    ...(script === undefined ? {} : { script })
  })
  return { ...running, folder, log: () => running.stderr.map(logLine).filter((line) => line !== undefined) }
}

/** Starts it and waits until it is ready. */
export async function serve(t: Teardown, config: unknown, process: Process = {}): Promise<Served> {
  const started = await start(t, config, process)
  return { ...started, url: await started.ready }
}

/**
 * The live processes whose environment has this text: what was started with a mark in `env`, and all that came of it.
 */
export async function marked(mark: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const found = await Promise.all(
    pids.map(async (pid) => {
      // Gone meanwhile, or somebody else's: not what we look for. A zombie has no environment any more.
      const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')
      return environment.includes(mark) ? [pid] : []
    })
  )
  return found.flat()
}

/** How many descriptors a process has open. */
export async function descriptors(pid: number): Promise<number> {
  return (await readdir(`/proc/${pid}/fd`)).length
}
