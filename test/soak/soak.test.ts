// The short form of `npm run soak`: a few seconds of the same load, and what must be gone after it. Memory is for the
// long form; here is only what tells growth from noise.

import t from 'tap'
import { slope } from './slope.ts'
import { soak } from './soak.ts'

t.test('a load of both eras is served, and leaves neither processes nor descriptors', async (t) => {
  // A session may be asked for nothing for some seconds where the machine is busy.
  const options = { seed: 1, ms: 4_000, rate: 6, sampleMs: 1_000, nodes: 1, sessionIdleMs: 8_000 }
  const { operations, failures, ofProcesses, before, after, ends } = await soak(t, options)
  t.same(failures, [])
  t.equal(operations, 24)
  t.ok(ofProcesses > 0, 'processes of servers were there')
  t.ok((after.children[0] ?? Infinity) <= 1, 'none but the guard is left')
  t.ok((after.descriptors[0] ?? Infinity) <= (before.descriptors[0] ?? 0) + 20)
  t.same(ends, [{ code: 0, signal: null }])
})

t.test('the slope of what grows is seen through noise and outliers, and what stays has none', async (t) => {
  const noise = (at: number): number => ((at * 7) % 11) - 5 + (at % 17 === 0 ? 500 : 0)
  const series = (growth: number) =>
    Array.from({ length: 60 }, (_, at) => [at, 1_000 + growth * at + noise(at)] as const)
  t.ok(Math.abs(slope(series(3)) - 3) < 0.2)
  t.ok(Math.abs(slope(series(0))) < 0.2)
  t.equal(slope([[0, 1]]), 0)
})
