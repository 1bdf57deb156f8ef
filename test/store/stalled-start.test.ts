// A process that had no processor while it connected to Redis at its start has its store all the same: the time in which
// it could not run says nothing of Redis.

import t from 'tap'
import { createRedisStore } from '../../src/store/redis.ts'
import { nextTurn } from '../../src/time/turns.ts'
import { freePort } from '../kit/free-port.ts'
import { redis } from '../kit/redis.ts'
import { quiet } from './kit.ts'

/** Longer than a connection is waited for. */
const stallMs = 1_500

function stall(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, stallMs)
}

for (const turns of [0, 1, 2, 3, 5])
  t.test(`the store is there after a stall in turn ${turns} of its start`, async (t) => {
    const { url } = await redis(t)
    const opening = createRedisStore({ url, clock: Date, log: quiet })
    for (let turn = 0; turn < turns; turn++) await nextTurn()
    stall()
    const store = await opening
    t.teardown(() => store.close())
    await t.resolves(store.ping())
  })

t.test('the control: where there is no Redis, nobody waits for it for long', async (t) => {
  const store = await createRedisStore({ url: `redis://127.0.0.1:${await freePort()}`, clock: Date, log: quiet })
  t.teardown(() => store.close())
  await t.rejects(store.ping(), { code: 'unavailable' })
})
