// What a test of the upstream module starts from: a connector on real time, definitions, a client and events that
// remember, and a way to wait for a condition.

import pino from 'pino'
import { type Notification, RpcError, type ServerRequest, tenantId, upstreamName } from '../../src/protocol/messages.ts'
import { type Connector, createConnector } from '../../src/upstream/connect/connect.ts'
import type { UpstreamCredentials } from '../../src/upstream/rpc/credential.ts'
import { createEgressGuard } from '../../src/egress/guard.ts'
import { createEgress } from '../../src/upstream/http/socket-pool.ts'
import { createPool, type Pool } from '../../src/upstream/pool/pool.ts'
import { createSupervisor, type Supervisor } from '../../src/upstream/stdio/supervisor.ts'
import type { HttpDefinition, Resources, StdioDefinition } from '../../src/config/snapshot.ts'
import type {
  Client,
  HandshakeParams,
  ListKind,
  ServerRequestOptions,
  UpstreamEvents
} from '../../src/protocol/seams.ts'
import type { Clock } from '../../src/time/clock.ts'
import { compiledCode } from './compiled-code.ts'
import { patienceMs, until as untilTrue } from './until.ts'

/** The signal of a call that nobody cancels. */
export const never = new AbortController().signal

export const realClock: Clock = { now: () => Date.now(), timer: (ms, run) => setTimeout(run, ms) }

/** Real time, but for waits of just these lengths: they are over once so much time was passed for them. */
export function heldClock(...lengths: readonly number[]): Clock & { pass(ms: number): void } {
  const held = handClock()
  return {
    now: realClock.now,
    timer: (ms, run) => (lengths.includes(ms) ? held : realClock).timer(ms, run),
    pass: held.advance
  }
}

/** A clock that moves only when told to. */
export function handClock(start = 1_000_000): Clock & { advance(ms: number): void } {
  let now = start
  let timers: Array<{ at: number; ms: number; run: () => void; live: boolean }> = []
  return {
    now: () => now,
    timer(ms, run) {
      const timer = { at: now + ms, ms, run, live: true }
      timers.push(timer)
      return {
        refresh() {
          timer.at = now + ms
          if (!timer.live) timers.push(timer)
          timer.live = true
        },
        close() {
          timer.live = false
        },
        unref() {}
      }
    },
    advance(ms) {
      const until = now + ms
      for (;;) {
        timers = timers.filter(({ live }) => live)
        const next = timers.reduce<(typeof timers)[0] | undefined>(
          (a, b) => (a === undefined || b.at < a.at ? b : a),
          undefined
        )
        if (next === undefined || next.at > until) break
        now = Math.max(now, next.at)
        next.live = false
        next.run()
      }
      now = until
    }
  }
}

export interface LogLine {
  readonly level: number
  readonly msg: string
  readonly [key: string]: unknown
}

export interface TestConnector {
  readonly connector: Connector
  readonly pool: Pool
  readonly supervisor: Supervisor
  readonly logged: LogLine[]
  readonly log: pino.Logger
}

export function testConnector(
  overrides: {
    clock?: Clock
    maxProcesses?: number
    maxPerTenant?: number
    maxBytesPerTenant?: number
    tenantCount?: number
    resources?: Resources
    sockets?: NonNullable<Parameters<typeof createEgress>[1]>['maxSockets']
    env?: Record<string, string | undefined>
    credentials?: UpstreamCredentials
  } = {}
): TestConnector {
  const logged: LogLine[] = []
  const log = pino(
    { level: 'debug' },
    {
      write: (line: string) => {
        logged.push(JSON.parse(line) as LogLine)
      }
    }
  )
  const clock = overrides.clock ?? realClock
  const supervisor = createSupervisor({
    baseEnv: overrides.env ?? process.env,
    maxProcesses: overrides.maxProcesses ?? 50,
    maxPerTenant: overrides.maxPerTenant ?? 50,
    maxBytesPerTenant: overrides.maxBytesPerTenant ?? Infinity,
    resourcesOf: () => overrides.resources ?? {},
    tenantCount: () => overrides.tenantCount ?? 1,
    clock,
    log
  })
  const connector = createConnector({
    supervisor,
    egress: createEgress(createEgressGuard(), { maxSockets: overrides.sockets }),
    clock,
    random: () => 0,
    log,
    ...(overrides.credentials && { credentials: overrides.credentials })
  })
  return {
    connector,
    pool: createPool({ connector, clock, random: () => 0, log }),
    supervisor,
    logged,
    log
  }
}

const common = {
  name: upstreamName('files'),
  tenant: tenantId('acme'),
  isolation: 'session',
  era: 'auto',
  // As long as a busy machine needs: what a test does not set is no part of its behaviour.
  connectMs: 60_000,
  timeoutMs: 60_000,
  maxTimeoutMs: 21_600_000,
  maxCalls: 1_024,
  idleMs: 60_000,
  maxMessageBytes: 4_194_304
} as const

export function stdioDefinition(script: object = {}, overrides: Partial<StdioDefinition> = {}): StdioDefinition {
  const server = new URL('./stdio-server.ts', import.meta.url).pathname
  return {
    ...common,
    type: 'stdio',
    hash: 'stdio-1',
    command: process.execPath,
    args: [server, JSON.stringify(script)],
    env: compiledCode,
    cwd: undefined,
    maxProcesses: 200,
    sandbox: 'off',
    sandboxRead: [],
    sandboxWrite: [],
    sandboxNetwork: true,
    ...overrides
  }
}

export function httpDefinition(url: string, overrides: Partial<HttpDefinition> = {}): HttpDefinition {
  return {
    ...common,
    type: 'http',
    transport: 'auto',
    hash: `http-${url}`,
    url,
    headers: {},
    checkAfterMs: 0,
    lendSessions: true,
    ...overrides
  }
}

export const handshake: HandshakeParams = { clientInfo: { name: 'gatehouse-test', version: '0.0.0' }, capabilities: {} }

export interface RecordingClient extends Client {
  readonly notified: Notification[]
  readonly asked: ServerRequest[]
}

export type Answerer = (request: ServerRequest, options: ServerRequestOptions) => Promise<unknown>

export function recordingClient(answer?: Answerer): RecordingClient {
  const notified: Notification[] = []
  const asked: ServerRequest[] = []
  return {
    era: 'legacy',
    capabilities: {},
    notified,
    asked,
    notify: (notification) => {
      notified.push(notification)
    },
    ask(request, options = {}) {
      asked.push(request)
      return answer?.(request, options) ?? Promise.reject(new Error('nobody answers'))
    }
  }
}

export interface RecordingEvents extends UpstreamEvents {
  readonly changed: ListKind[]
  readonly notifications: Notification[]
  readonly asked: ServerRequest[]
  readonly ended: Error[]
}

/**
 * @param answer how the owner of the connection answers; by default it cannot be asked, as where the session has no
 * stream open
 */
export function recordingEvents(
  answer: Answerer = () => Promise.reject(new RpcError({ code: -32602, message: 'nobody to ask' }))
): RecordingEvents {
  const changed: ListKind[] = []
  const notifications: Notification[] = []
  const asked: ServerRequest[] = []
  const ended: Error[] = []
  return {
    changed,
    notifications,
    asked,
    ended,
    listChanged: (kind) => {
      changed.push(kind)
    },
    notification: (notification) => {
      notifications.push(notification)
    },
    ask(request, options = {}) {
      asked.push(request)
      return answer(request, options)
    },
    closed: (reason) => {
      ended.push(reason)
    }
  }
}

export const callOf = (name: string, args: object = {}, meta?: object) => ({
  method: 'tools/call',
  params: { name, arguments: args, ...(meta === undefined ? {} : { _meta: meta }) }
})

/** Resolves when the condition holds; rejects after `ms`. */
export async function until(condition: () => boolean | Promise<boolean>, what: string, ms = patienceMs): Promise<void> {
  await untilTrue(what, condition, ms)
}

/** Is the process there? A zombie is not. */
export async function alive(pid: number): Promise<boolean> {
  const { readFile } = await import('node:fs/promises')
  try {
    return !/^\d+ \(.*\) [ZX]/.test(await readFile(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
