// Each kind of store under one gateway, and at each the two SDKs, with an API key and with a JWT of a real issuer.

import { join } from 'node:path'
import type { Test } from 'tap'
import { gateway, key, type TestGateway } from '../../kit/gateway.ts'
import { issuer } from '../../kit/issuer.ts'
import { redis, sharedRedisUrl } from '../../kit/redis.ts'
import { sdk13, sdk32, connectSdk, type Sdk, type SdkSession } from './sdk.ts'

export type StoreKind = 'memory:' | 'file:' | 'redis:'

interface SdkWithCredential {
  readonly sdk: Sdk
  readonly by: 'key' | 'jwt'
}

type Clients = ReadonlyArray<readonly [StoreKind, readonly SdkWithCredential[]]>

/** Each SDK with each credential, and each store with one of these at least. */
const everyStore: Clients = [
  ['memory:', [{ sdk: sdk32, by: 'key' }]],
  [
    'file:',
    [
      { sdk: sdk32, by: 'jwt' },
      { sdk: sdk13, by: 'key' }
    ]
  ],
  ['redis:', [{ sdk: sdk13, by: 'jwt' }]]
]
/** Each SDK once: for what no store and no credential has to do with. */
const everySdk: Clients = [
  ['memory:', [{ sdk: sdk32, by: 'key' }]],
  ['redis:', [{ sdk: sdk13, by: 'jwt' }]]
]
/** Each store with each SDK and each credential as well: `npm test -- --full`. */
const others: Clients = [
  ['memory:', [{ sdk: sdk13, by: 'jwt' }]],
  ['redis:', [{ sdk: sdk32, by: 'key' }]]
]
const isFull = process.env['GATEHOUSE_TEST_FULL'] !== undefined

/** @returns the `store` of a configuration */
export async function storeOf(t: Test, kind: StoreKind): Promise<string> {
  if (kind === 'memory:') return kind
  if (kind === 'file:') return `file:${join(t.testdir(), 'gatehouse.db')}`
  return sharedRedisUrl() ?? (await redis(t)).url
}

export interface GatewayUnderTest {
  readonly gateway: TestGateway
  readonly url: string
}

/** What stands behind every gateway: parts of its configuration. */
export interface Setup {
  readonly upstreams: Record<string, unknown>
  readonly limits?: Record<string, number>
}

export interface Connected extends SdkSession, GatewayUnderTest {
  readonly sdk: Sdk
  /** Another session of the same caller. */
  again(): Promise<SdkSession>
}

type Run = (t: Test, connected: Connected) => Promise<void>

/** Runs the same tests with every store, SDK and credential: a session for each client. */
export const forEveryStoreAndSdk = (t: Test, setup: Setup, run: Run): Promise<void> =>
  forEach(t, setup, run, isFull ? [...everyStore, ...others] : everyStore)

/** Runs the same tests with both SDKs; with every store and credential, too, in `npm test -- --full`. */
export const forEverySdk = (t: Test, setup: Setup, run: Run): Promise<void> =>
  forEach(t, setup, run, isFull ? [...everyStore, ...others] : everySdk)

async function forEach(t: Test, { upstreams, limits = {} }: Setup, run: Run, clients: Clients): Promise<void> {
  const provider = await issuer(t)
  for (const [store, sdks] of clients) {
    await t.test(`store ${store}`, async (t) => {
      const made = await gateway(t, {
        store: await storeOf(t, store),
        upstreams,
        // These tests compare whole lists, so they wait for all upstreams however slow the machine.
        limits: { coldStartMs: 30_000, ...limits },
        auth: { keys: [{ name: 'host', key }], issuers: [{ issuer: provider.url }] }
      })
      const url = made.url()
      for (const { sdk, by } of sdks) {
        await t.test(`${sdk.name} with ${by === 'key' ? 'an API key' : 'a JWT'}`, async (t) => {
          const token = by === 'key' ? key : await provider.token({ resource: url })
          const again = (): Promise<SdkSession> => connectSdk(t, sdk, url, token)
          await run(t, { ...(await again()), sdk, gateway: made, url, again })
        })
      }
    })
  }
}
