// What every attack on availability starts from: the gateway in a process of its own with few resources, a tenant that
// attacks, and a neighbour tenant whose calls are measured from a third process, so that the attack itself slows
// nothing that is measured.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { send, type Sent } from '../kit/client.ts'
import { withCompiledCode } from '../kit/compiled-code.ts'
import { type Teardown, until } from '../kit/until.ts'
import { gatehouse, logLine, type Running } from '../e2e/kit/process.ts'
import type { Turns } from './turn-watcher.ts'

/** Key of the caller who attacks, of another caller of the same tenant, and of the neighbour. */
export const keys = {
  attacker: 'gh_abuse_key_of_attacker_0123456789',
  colleague: 'gh_abuse_key_of_colleague_0123456789',
  neighbour: 'gh_abuse_key_of_neighbour_0123456789'
} as const

export interface AttackedOptions {
  /** Upstreams of the attacking tenant. */
  readonly upstreams?: Readonly<Record<string, unknown>>
  readonly limits?: Readonly<Record<string, number>>
  /** With the rates that everybody has for long bodies and sessions. */
  readonly asShipped?: boolean
  /** `ulimit -n` of the gateway. */
  readonly descriptors?: number
  /** `--max-old-space-size`, in MiB. */
  readonly heapMiB?: number
  /** Writes down how long turns of its event loop take: see `longestTurnMs`. */
  readonly watchTurns?: boolean
  /** Members of the attacking tenant beside `auth` and `upstreams`. */
  readonly tenant?: Readonly<Record<string, unknown>>
  /** Members of the configuration beside `limits` and `tenants`. */
  readonly top?: Readonly<Record<string, unknown>>
}

export interface Attacked extends Running {
  readonly origin: string
  /** Endpoint of the attacking tenant. */
  readonly url: string
  readonly neighbourUrl: string
  /** Its configuration, in JSON. */
  readonly configFile: string
  log(): Array<Record<string, unknown>>
  /** Starts to measure the neighbour's calls, of which the first has succeeded when it resolves. */
  neighbour(): Promise<Neighbour>
  /**
   * CPU time of its main thread for the longest turn of its event loop, or for two after one another that no timer
   * parted, while the action runs: the least of up to three runs, the last as soon as it is less than `mostMs`. What the
   * collector takes, and caches that others emptied, come on top now and then. Not the time by the clock, of which other
   * processes take their part.
   */
  longestTurnMs(mostMs: number, during: () => Promise<unknown>): Promise<number>
  /** Stops the process (SIGSTOP), and waits until it stands: what is written then is all there when it goes on. */
  pause(): Promise<void>
  /** What the turns of its event loop took since that was asked for last. */
  turns(): Promise<Turns>
  /** The largest resident set so far, in bytes. */
  peakMemory(): number
}

export interface Measured {
  /** Also some after it was stopped, where there were few. */
  readonly calls: number
  /** Of these, those that ended with a result before it was stopped: while the attack lasted. */
  readonly meanwhile: number
  /** What calls were answered with that was no result, at most the first ten. */
  readonly failures: readonly string[]
  readonly medianMs: number
  readonly p99Ms: number
  readonly longestMs: number
}

export interface Neighbour {
  /** Ends the calls. */
  stop(): Promise<Measured>
}

/** A stdio server that answers `echo` at once. */
export const stdioServer = (script: object = {}): object => ({
  command: process.execPath,
  args: [new URL('../kit/stdio-server.ts', import.meta.url).pathname, JSON.stringify(script)]
})

/** An attack comes with all its force, where the test is not about what slows it down. */
const unthrottled = {
  bodyBytesPerSecondPerPrincipal: 1_000_000_000_000,
  bodyBytesPerSecondPerTenant: 1_000_000_000_000,
  sessionsPerSecondPerPrincipal: 1_000_000,
  sessionsPerSecondPerTenant: 1_000_000
}

/** Starts the gateway; killed with the test. */
export async function attacked(t: Teardown, options: AttackedOptions = {}): Promise<Attacked> {
  const {
    upstreams = {},
    limits = {},
    descriptors,
    heapMiB,
    watchTurns = false,
    tenant = {},
    top = {},
    asShipped = false
  } = options
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-abuse-'))
  t.teardown(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
  const file = join(folder, 'gatehouse.json')
  const keysOf = (...names: Array<keyof typeof keys>): object => ({
    keys: names.map((name) => ({ name, key: keys[name] }))
  })
  await writeFile(
    file,
    JSON.stringify({
      ...top,
      // A process takes as long to start as a busy machine needs.
      limits: { coldStartMs: 30_000, ...(asShipped ? {} : unthrottled), ...limits },
      tenants: {
        acme: {
          auth: keysOf('attacker', 'colleague'),
          upstreams: withCompiledCode({ calm: stdioServer(), ...upstreams }),
          ...tenant
        },
        other: { auth: keysOf('neighbour'), upstreams: withCompiledCode({ calm: stdioServer() }) }
      }
    })
  )
  const running = gatehouse(t, ['serve', '--config', file, '--port', '0'], {
    cwd: folder,
    ...(descriptors === undefined
      ? {}
      : { node: '/bin/sh', nodeArgs: ['-c', `ulimit -n ${descriptors}; exec "$0" "$@"`, process.execPath] }),
    ...(watchTurns ? { nodeArgs: ['--import', new URL('turn-watcher.ts', import.meta.url).href] } : {}),
    env: {
      NODE_OPTIONS: [
        // Such as `--cpu-prof`, for whoever looks for what an attack costs.
        process.env['ABUSE_NODE_OPTIONS'] ?? '',
        ...(heapMiB === undefined ? [] : [`--max-old-space-size=${heapMiB}`])
      ].join(' ')
    }
  })
  const origin = await running.ready
  const turnFile = join(folder, 'longest-turn')
  const readTurns = (): Turns | undefined =>
    existsSync(turnFile) ? (JSON.parse(readFileSync(turnFile, 'utf8')) as Turns) : undefined
  async function turns(): Promise<Turns> {
    const before = readTurns()?.asked ?? 0
    running.signal('SIGUSR2')
    return await until('it counts anew', () => {
      const now = readTurns()
      return now !== undefined && now.asked > before ? now : undefined
    })
  }
  const neighbourUrl = `${origin}/t/other/mcp`
  return {
    ...running,
    origin,
    url: `${origin}/t/acme/mcp`,
    neighbourUrl,
    configFile: file,
    async pause() {
      running.signal('SIGSTOP')
      const state = (): string => / ([A-Za-z]) /.exec(readFileSync(`/proc/${running.pid}/stat`, 'latin1'))?.[1] ?? ''
      await until('it is stopped', () => state() === 'T')
    },
    log: () => running.stderr.map(logLine).filter((line) => line !== undefined),
    neighbour: () => startNeighbour(t, neighbourUrl),
    async longestTurnMs(mostMs, during) {
      let least = Infinity
      for (let runs = 0; runs < 3 && least >= mostMs; runs++) {
        await turns()
        await during()
        least = Math.min(least, (await turns()).longestMs)
      }
      return least
    },
    turns,
    peakMemory: () =>
      Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${running.pid}/status`, 'utf8'))?.[1]) * 1024
  }
}

async function startNeighbour(t: Teardown, url: string): Promise<Neighbour> {
  const child = fork(new URL('neighbour.ts', import.meta.url), [url, keys.neighbour], { execArgv: [] })
  t.teardown(() => child.kill())
  await once(child, 'message')
  return {
    async stop() {
      child.send('stop')
      const [measured] = (await once(child, 'message')) as [Measured]
      return measured
    }
  }
}

/**
 * A client registers at the login front of the attacked tenant.
 * @returns its id, and how it begins a sign-in: the request that leads on to the provider
 */
export async function registeredClient({ origin }: Attacked) {
  const front = `${origin}/login/acme`
  const redirectUri = 'http://127.0.0.1:1/cb'
  const { json } = await send(`${front}/reg`, {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: [redirectUri], token_endpoint_auth_method: 'none' })
  })
  const clientId = String(json.client_id)
  const begin = `${front}/auth?${new URLSearchParams({
    client_id: clientId,
    redirect_uri: redirectUri,
    response_type: 'code',
    code_challenge: 'x'.repeat(43),
    code_challenge_method: 'S256'
  })}`
  return {
    clientId,
    /** The URL at which a sign-in begins. */
    begin,
    async begun(): Promise<[path: string, sent: Sent]> {
      const { headers } = await send(begin, { method: 'GET' })
      const cookie = (headers['set-cookie'] ?? []).map((each) => each.split(';')[0]).join('; ')
      const { pathname, search } = new URL(String(headers.location), origin)
      return [pathname + search, { headers: { cookie } }]
    }
  }
}
