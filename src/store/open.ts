// Which store the configuration asks for.

import type { StoreConfig } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import type { Store } from './port.ts'
import { createRedisStore } from './redis.ts'
import { createSqliteStore } from './sqlite.ts'

export interface StoreDependencies {
  readonly clock: { now(): number }
  readonly log: Log
}

/**
 * @throws GatewayError unavailable when a file cannot be opened; a Redis that is away is no error here: the store heals
 * by itself
 */
export function openStore(config: StoreConfig, { clock, log }: StoreDependencies): Promise<Store> {
  switch (config.kind) {
    case 'memory':
      return createSqliteStore({ path: ':memory:', clock, log })
    case 'file':
      return createSqliteStore({ path: config.path, clock, log })
    case 'redis':
      return createRedisStore({ url: config.url, clock, log })
  }
}
