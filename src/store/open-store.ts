// The store that the configuration names.

import type { Snapshot } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import type { Clock } from '../time/clock.ts'
import type { Store } from './port.ts'
import { createSqliteStore } from './sqlite.ts'

/** @throws GatewayError unavailable where a file cannot be opened; a store on Redis heals by itself */
export async function openStore(config: Snapshot['store'], clock: Clock, log: Log): Promise<Store> {
  if (config.kind !== 'redis') return await createSqliteStore({ path: config.path, clock, log })
  // Its client is loaded where it is used: that is a tenth of what a start costs.
  const { createRedisStore } = await import('./redis.ts')
  return await createRedisStore({ url: config.url, clock, log })
}
