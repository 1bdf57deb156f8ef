// The short form of `npm run fuzz`: a few seconds of conversations between clients of every kind and hostile upstreams of
// every kind. A seed that failed is repeated by `npm run fuzz -- --seed N`.

import { spawnSync } from 'node:child_process'
import t from 'tap'
import { logLine } from '../e2e/kit/process.ts'
import { fuzz, pairsWithoutResult } from './fuzz.ts'
import { anyValue, random } from './random.ts'

t.test('hostile clients and upstreams bring the gateway neither down nor to a stop', async (t) => {
  // The same inputs each time: what a new seed finds belongs to `npm run fuzz`.
  const seed = 1
  const { conversations, results, faults, stallMs, growthBytes, isAlive } = await fuzz(t, {
    seed,
    ms: 4_500,
    forEachPair: 450
  })
  t.same(faults, [], `seed ${seed}`)
  t.ok(isAlive, `seed ${seed}: a caller who does nothing wrong is served, and the gateway stops with code 0`)
  // `npm run fuzz` holds 100 ms; here the other tests run on the same cores.
  t.ok(stallMs <= 250, `seed ${seed}: the longest turn of the event loop took ${stallMs} ms of CPU`)
  t.ok(growthBytes <= 32 * 1024 * 1024, `seed ${seed}: grown by ${growthBytes} bytes`)
  t.same(pairsWithoutResult(results), [], `seed ${seed}: of ${conversations} conversations`)
})

t.test('a pair of client and upstream that never gets a result is told', async (t) => {
  const all = pairsWithoutResult(new Map())
  t.equal(all.length, 15)
  const [first = '', ...others] = all
  t.same(pairsWithoutResult(new Map([[first, 1], ...others.map((pair) => [pair, 0] as const)])), others)
})

t.test('a turn of the event loop that is too long is seen', async (t) => {
  const longest = (busyMs: number): number => {
    const preload = new URL('loop-delay.ts', import.meta.url).href
    const script = new URL('busy.ts', import.meta.url).pathname
    const { stderr } = spawnSync(process.execPath, ['--import', preload, script, String(busyMs)])
    const lines = stderr.toString().split('\n').map(logLine)
    return Number(lines.find((line) => line?.['msg'] === 'measured')?.['stallMs'])
  }
  t.ok(longest(400) >= 390)
  t.ok(longest(0) < 390)
})

t.test('the same seed makes the same input', async (t) => {
  const inputs = (seed: number): unknown[] => Array.from({ length: 50 }, (_, n) => anyValue(random(seed, n)))
  t.same(inputs(1), inputs(1))
  t.notSame(inputs(1), inputs(2))
})
