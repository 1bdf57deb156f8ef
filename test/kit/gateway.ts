// A gateway of its own for a test: real sockets, real store, real upstreams, on a free port of loopback.

import { type Teardown } from './until.ts'
import { Writable } from 'node:stream'
import pino from 'pino'
import { compileConfig } from '../../src/config/load.ts'
import { withCompiledCode } from './compiled-code.ts'
import { createGateway, type Gateway } from '../../src/gateway.ts'
import type { GatewayOptions } from '../../src/gateway/state.ts'

export const key = 'gh_test_key_of_the_kit_0123456789'

export interface TestGateway {
  readonly gateway: Gateway
  readonly publicUrl: string
  /** Where it really listens. */
  readonly listening: string
  /** Where the admin API listens; empty where there is none. */
  readonly adminUrl: string
  /** The endpoint of a tenant (default `acme`). */
  url(endpoint?: string, tenant?: string): string
  /** What was logged so far, parsed. */
  readonly log: ReadonlyArray<Record<string, unknown>>
  reload(config: unknown): ReturnType<Gateway['reload']>
  close(): Promise<void>
}

export interface TestGatewayOptions {
  readonly upstreams: Record<string, unknown>
  readonly endpoints?: Record<string, unknown>
  readonly policy?: unknown
  /** `limits` of the tenant. */
  readonly callLimits?: unknown
  /** Of the tenant. */
  readonly audit?: unknown
  /** Of the tenant. */
  readonly resources?: unknown
  readonly auth?: unknown
  readonly origins?: string[]
  readonly limits?: Record<string, number>
  readonly store?: string
  /** Of the gateway, besides that of the test. */
  readonly env?: Readonly<Record<string, string>>
  /** Further tenants, and further top-level members. */
  readonly tenants?: Record<string, unknown>
  readonly top?: Record<string, unknown>
  readonly overrides?: GatewayOptions['overrides']
  /** That it says of itself. */
  readonly version?: string
}

export async function gateway(t: Teardown, options: TestGatewayOptions): Promise<TestGateway> {
  const log: Array<Record<string, unknown>> = []
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      log.push(JSON.parse(chunk.toString()) as Record<string, unknown>)
      done()
    }
  })
  const snapshot = compile(options)
  const made = await createGateway(snapshot, {
    log: pino({ level: 'debug', base: null }, sink),
    version: options.version ?? '0.0.0-test',
    // What a test changes of its own environment counts.
    env: options.env === undefined ? process.env : { ...process.env, ...options.env },
    ...(options.overrides === undefined ? {} : { overrides: options.overrides })
  })
  const { url: listening, publicUrl, adminUrl = '' } = await made.listen()
  t.teardown(() => made.close())
  return {
    gateway: made,
    publicUrl,
    listening,
    adminUrl,
    url: (endpoint = 'default', tenant = 'acme') =>
      `${publicUrl}/t/${tenant}/${endpoint === 'default' ? '' : `${endpoint}/`}mcp`,
    log,
    reload: (config) => made.reload(compileText(config)),
    close: () => made.close()
  }
}

/** An earlier version, with which an upgrade begins, refuses limits that it does not know. */
const unthrottled = process.env['GATEHOUSE_OTHER_VERSION'] === undefined && {
  sessionsPerSecondPerPrincipal: 1_000_000,
  sessionsPerSecondPerTenant: 1_000_000,
  bodyBytesPerSecondPerPrincipal: 1_000_000_000_000,
  bodyBytesPerSecondPerTenant: 1_000_000_000_000
}

export function configOf(options: TestGatewayOptions): unknown {
  const {
    upstreams,
    endpoints,
    policy,
    callLimits,
    audit,
    resources,
    auth = { keys: [{ name: 'test', key }] },
    origins,
    limits,
    store = 'memory:',
    tenants,
    top
  } = options
  return {
    listen: { host: '127.0.0.1', port: 0 },
    store,
    // A process takes as long to start as a busy machine needs: what a test does not set is no part of its behaviour.
    limits: {
      coldStartMs: 30_000,
      requestsPerSecondPerPrincipal: 1_000_000,
      requestsPerSecondPerTenant: 1_000_000,
      ...unthrottled,
      ...limits
    },
    ...top,
    tenants: {
      acme: {
        auth,
        upstreams: withCompiledCode(upstreams),
        ...(endpoints === undefined ? {} : { endpoints }),
        ...(policy === undefined ? {} : { policy }),
        ...(callLimits === undefined ? {} : { limits: callLimits }),
        ...(audit === undefined ? {} : { audit }),
        ...(resources === undefined ? {} : { resources }),
        ...(origins === undefined ? {} : { origins })
      },
      ...tenants
    }
  }
}

const compile = (options: TestGatewayOptions) => compileText(configOf(options))
const compileText = (config: unknown) => compileConfig(JSON.stringify(config), { path: 'test.json', env: {} })
