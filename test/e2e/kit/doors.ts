// Every way in: each kind of store under one gateway, and through each the two SDKs, by an API key and by a JWT of a real issuer.

import { join } from 'node:path'
import type { Test } from 'tap'
import { gateway, key } from '../../kit/gateway.ts'
import type { TestGateway } from '../../kit/gateway.ts'
import { issuer } from '../../kit/issuer.ts'
import { redis, sharedRedisUrl } from '../../kit/redis.ts'
import { sdk13, sdk32, visit } from './sdk.ts'
import type { Sdk, Visitor } from './sdk.ts'

export type StoreKind = 'memory:' | 'file:' | 'redis:'

interface Door { readonly sdk: Sdk, readonly by: 'key' | 'jwt' }

/** Each store, each SDK and each credential with each other, though not all three at once: that would show nothing more. */
const doors: ReadonlyArray<readonly [StoreKind, readonly Door[]]> = [
  ['memory:', [{ sdk: sdk32, by: 'key' }, { sdk: sdk13, by: 'jwt' }]],
  ['file:', [{ sdk: sdk32, by: 'jwt' }, { sdk: sdk13, by: 'key' }]],
  ['redis:', [{ sdk: sdk13, by: 'jwt' }, { sdk: sdk32, by: 'key' }]]
]

/** @returns the `store` of a configuration */
export async function storeOf (t: Test, kind: StoreKind): Promise<string> {
  if (kind === 'memory:') return kind
  if (kind === 'file:') return `file:${join(t.testdir(), 'gatehouse.db')}`
  return sharedRedisUrl() ?? (await redis(t)).url
}

export interface House {
  readonly gateway: TestGateway
  readonly url: string
}

/** What stands behind every gateway: parts of its configuration. */
export interface Stage {
  readonly upstreams: Record<string, unknown>
  readonly limits?: Record<string, number>
}

export interface Entered extends Visitor, House {
  readonly sdk: Sdk
  /** Another session of the same caller. */
  again (): Promise<Visitor>
}

/** Runs the same tests through every door: one gateway per store, one session per door. */
export async function throughEveryDoor (t: Test, { upstreams, limits = {} }: Stage, run: (t: Test, entered: Entered) => Promise<void>): Promise<void> {
  const provider = await issuer(t)
  for (const [store, visitors] of doors) {
    await t.test(`store ${store}`, async (t) => {
      const made = await gateway(t, {
        store: await storeOf(t, store),
        upstreams,
        // These tests compare whole lists, so they wait for all upstreams however slow the machine.
        limits: { coldStartMs: 30_000, ...limits },
        auth: { keys: [{ name: 'host', key }], issuers: [{ issuer: provider.url }] }
      })
      const url = made.url()
      for (const { sdk, by } of visitors) {
        await t.test(`${sdk.name} with ${by === 'key' ? 'an API key' : 'a JWT'}`, async (t) => {
          const token = by === 'key' ? key : await provider.token({ resource: url })
          const again = (): Promise<Visitor> => visit(t, sdk, url, token)
          await run(t, { ...await again(), sdk, gateway: made, url, again })
        })
      }
    })
  }
}
