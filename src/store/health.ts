// Whether the store can be used: it may still answer reads while its disk or its memory is full, or while it is a
// replica. Then no session can be opened, and a load balancer has to hear of it.

import type { Log } from '../observe/log.ts'
import type { Clock } from '../time/clock.ts'
import { healthKey, healthTtlMs } from './keys.ts'
import type { Store } from './port.ts'

/** The shortest time between two checks, in milliseconds: anybody may ask for readiness, and each check writes. */
const writeCheckMs = 1_000
/**
 * The bytes of the test value: more than a session, because SQLite can write a little into pages that it already has.
 */
const writeCheckBytes = 16 * 1024

export type StoreHealth = ReturnType<typeof createStoreHealth>

export function createStoreHealth(store: Pick<Store, 'ping' | 'set'>, clock: Pick<Clock, 'now'>, log: Log) {
  let checkedAt = -Infinity
  let writes = Promise.resolve(true)
  let logged = true

  async function writable(): Promise<boolean> {
    let fault: unknown
    const written = await store.set(healthKey, 'x'.repeat(writeCheckBytes), { ttlMs: healthTtlMs }).catch((err) => {
      fault = err
      return false
    })
    if (written !== logged && written) log.info('the store can be written again')
    if (written !== logged && !written)
      log.error(
        { err: fault },
        'the store cannot be written, so no session can be opened: is its disk or its memory full, or is it read-only?'
      )
    logged = written
    return written
  }

  return {
    /** @returns what is wrong, for the operator; undefined where the store works. Never rejects */
    async fault(): Promise<string | undefined> {
      try {
        await store.ping()
      } catch {
        return 'the store cannot be reached'
      }
      if (clock.now() - checkedAt >= writeCheckMs) {
        checkedAt = clock.now()
        writes = writable()
      }
      if (await writes) return undefined
      return 'the store cannot be written: look whether its disk or memory is full, or whether it is read-only'
    }
  }
}
