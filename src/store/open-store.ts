// The store that the configuration names.

import type { Snapshot } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import type { Clock } from '../time/clock.ts'
import type { WorkerProcess } from '../workers/messages.ts'
import type { Store } from './port.ts'
import { createSqliteStore } from './sqlite.ts'

/**
 * @param worker whose primary may have the store
 * @throws GatewayError unavailable where a file cannot be opened; a store on Redis heals by itself
 */
export async function openStore(
  config: Snapshot['store'],
  clock: Clock,
  log: Log,
  worker?: WorkerProcess
): Promise<Store> {
  if (worker?.lasting !== undefined) {
    const { createChannelStore } = await import('./channel/channel-store.ts')
    return createChannelStore(worker.channel, worker.lasting, log)
  }
  if (config.kind !== 'redis') return await createSqliteStore({ path: config.path, clock, log })
  // Its client is loaded where it is used: that is a tenth of what a start costs.
  const { createRedisStore } = await import('./redis.ts')
  return await createRedisStore({ url: config.url, clock, log })
}
