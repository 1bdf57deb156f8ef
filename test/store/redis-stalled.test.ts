// The process has no processor for a while, and neither has Redis: the machine is busy, or was stopped. The answer is not
// late by that.

import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { createRedisStore } from '../../src/store/redis.ts'
import { redis } from '../kit/redis.ts'
import { recorded } from './kit.ts'

/** Longer than a command may take, and than a connection may be silent. */
const stallMs = 1_500

t.test('a command outlives a stall of this process, and so does the connection', async (t) => {
  const server = await redis(t)
  const { log, lines } = recorded()
  const store = await createRedisStore({ url: server.url, clock: Date, log, heartbeatMs: 100 })
  t.teardown(() => store.close())
  await store.set('k', 'v')

  server.pause()
  const [read, written] = [store.get('k'), store.set('l', 'w')]
  await nextTurn()
  await nextTurn()
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, stallMs)
  // All timers that are due run before Redis goes on.
  for (let turns = 0; turns < 5; turns++) await nextTurn()
  server.resume()
  t.equal(await read, 'v')
  t.equal(await written, true)
  t.equal(store.live, true, 'messages, too')
  t.same(lines, [])

  server.pause()
  await t.rejects(store.get('k'), { code: 'unavailable' }, 'Redis alone that says nothing is given up')
})
