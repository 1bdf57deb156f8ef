// The short form of `npm run abuse`: one slice of some seconds. One that failed is repeated by
// `npm run abuse -- --seed N --from N`.

import t from 'tap'
import { attackForHours, judge, type JudgedSlice } from './hour.ts'
import { sliceOf } from './slices.ts'

const memoryBytes = 600 * 1024 * 1024

/** A machine that stops one of the processes for a moment lets calls wait that nothing else has kept waiting. */
const maxRuns = 3
const wasOnlySlow = ({ verdict, reasons }: JudgedSlice): boolean =>
  verdict === 'failed' && reasons.every((reason) => reason.startsWith('p99 of '))

t.test('attacks of several kinds at once leave a neighbour and the memory alone', async (t) => {
  // The same each time: what a new seed finds belongs to `npm run abuse`.
  const attacked = async (): Promise<JudgedSlice[]> => {
    // Each run ends what it started: it would slow down the next one.
    const closers: Array<() => unknown> = []
    const close = async (): Promise<void> => {
      for (const each of closers.splice(0).toReversed()) await each()
    }
    t.teardown(close)
    const own = { teardown: (run: () => unknown) => closers.push(run) }
    try {
      return await attackForHours(own, { seed: 1, ms: 1, sliceMs: 3_000, memoryBytes })
    } finally {
      await close()
    }
  }
  let slices = await attacked()
  for (let runs = 1; runs < maxRuns && slices.every(wasOnlySlow); runs++) slices = await attacked()
  const [only, ...others] = slices
  t.same(others, [])
  t.not(only?.verdict, 'failed', String(only?.reasons))
  t.ok((only?.neighbour.meanwhile ?? 0) > 0, 'calls of the neighbour are answered meanwhile')
  const { callers = [], memory = [], upstreams = [] } = only?.slice ?? {}
  for (const name of [...callers, ...memory, ...upstreams])
    t.ok((only?.ended[name]?.['rounds'] ?? 0) > 0, `somebody began ${name}`)
})

const calls = (p99Ms: number, failures: string[] = []) => ({
  calls: 9,
  meanwhile: 9,
  failures,
  medianMs: 1,
  p99Ms,
  longestMs: p99Ms
})
const measured = { neighbour: calls(200), control: calls(10), slowdown: 1, peakBytes: memoryBytes }

t.test(
  'a slice fails by what the neighbour and the memory show, and only where the machine does not explain it',
  (t) => {
    const verdict = (change: Partial<typeof measured>): string => judge({ ...measured, ...change }, memoryBytes).verdict
    t.equal(verdict({}), 'held')
    t.equal(verdict({ neighbour: calls(251) }), 'failed')
    t.equal(verdict({ neighbour: calls(1, ['500']) }), 'failed')
    t.equal(verdict({ peakBytes: memoryBytes + 1 }), 'failed')
    t.equal(verdict({ neighbour: calls(251), slowdown: 1.5 }), 'not judged')
    t.equal(verdict({ neighbour: calls(251), control: calls(100) }), 'not judged')
    t.equal(verdict({ neighbour: calls(500), slowdown: 1.5, control: calls(100) }), 'failed')
    t.equal(verdict({ control: calls(1, ['ECONNRESET']) }), 'not judged')
    t.end()
  }
)

t.test('the same seed makes the same slices', (t) => {
  const slices = (seed: number): unknown[] => Array.from({ length: 20 }, (_, number) => sliceOf(seed, number))
  t.same(slices(1), slices(1))
  t.notSame(slices(1), slices(2))
  t.end()
})
