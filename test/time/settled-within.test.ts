// Waits for work that others wait for as well, such as the first listing of an upstream: it may never end.

import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { settledWithin } from '../../src/time/clock.ts'
import { handClock } from '../kit/connector.ts'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void
/** What watches promises (tap does) lets go of those that were collected a turn later. */
async function usedBytes(): Promise<number> {
  for (let turn = 0; turn < 3; turn++) {
    gc()
    await setImmediate()
  }
  return process.memoryUsage().heapUsed
}

t.test('work that never ends holds nothing of those who have given up', async (t) => {
  const clock = handClock()
  const work = new Promise<void>(() => {})
  const count = 10_000
  const wait = async (): Promise<void> => {
    const all = Promise.all(Array.from({ length: count / 10 }, () => settledWithin(clock, 5, work)))
    clock.advance(5)
    if ((await all).some((isFirst) => isFirst)) throw new Error('their time is over')
  }
  await wait()
  const before = await usedBytes()
  for (let round = 0; round < 10; round++) await wait()
  const each = ((await usedBytes()) - before) / count
  t.ok(each < 50, `${Math.round(each)} bytes for each`)
})

t.test('all who wait hear the end of it, those too who ask afterwards', async (t) => {
  const clock = handClock()
  for (const end of ['resolve', 'reject'] as const) {
    const work = Promise.withResolvers<void>()
    const [late, first, second] = [1, 5, 5].map((ms) => settledWithin(clock, ms, work.promise))
    clock.advance(1)
    t.equal(await late, false)
    work[end]()
    t.same(await Promise.all([first, second, settledWithin(clock, 5, work.promise)]), [true, true, true], end)
    t.equal(await settledWithin(clock, 5, work.promise), true)
  }
})
