// Long work in steps: short work is done at once, long work leaves room for others, and its order is kept.

import t from 'tap'
import { createTurns, runSteps, StepQueue, type Steps } from '../../src/time/turns.ts'
import { until } from '../kit/until.ts'

const ada = { tenant: 'acme', caller: 'ada' }
const bob = { tenant: 'acme', caller: 'bob' }
const eve = { tenant: 'other', caller: 'eve' }

/** Steps that take one millisecond each of this clock. */
function* work(clock: { ms: number }, steps: number, done: string[] = [], name = ''): Steps<number> {
  for (let step = 0; step < steps; step++) {
    clock.ms++
    done.push(name)
    yield
  }
  return steps
}

t.test('work that fits into a turn is done at once', async (t) => {
  const clock = { ms: 0 }
  t.equal(createTurns(() => clock.ms)(work(clock, 3), ada), 3)
})

t.test('work that does not fit goes on in later turns: in turn what had least, and what waits longest', async (t) => {
  const clock = { ms: 0 }
  const run = createTurns(() => clock.ms)
  const done: string[] = []
  const results = [work(clock, 15, done, 'a'), work(clock, 10, done, 'b'), work(clock, 1, done, 'c')].map((each) =>
    run(each, ada)
  )
  t.equal(done.join(''), 'aaaaa')
  let turns = 0
  const count = (): void => {
    turns++
    setImmediate(count).unref()
  }
  count()
  t.same(await Promise.all(results.map((each) => Promise.resolve(each))), [15, 10, 1])
  t.equal(done.join(''), 'aaaaabbbbbaaaaacbbbbbaaaaa')
  t.ok(turns >= 4, 'the event loop turned in between')
})

t.test('short work does not wait for all of the long work that was there before', async (t) => {
  const clock = { ms: 0 }
  const run = createTurns(() => clock.ms)
  const done: string[] = []
  const long = Array.from({ length: 20 }, () => run(work(clock, 100, done, 'long'), ada))
  await until('each has had its first share', () => done.length >= 150)
  const before = done.length
  await Promise.resolve(run(work(clock, 3, done, 'short'), ada))
  t.ok(done.length - before < 20, `${done.length - before} steps until then`)
  await Promise.all(long.map((each) => Promise.resolve(each)))
})

t.test('a tenant with a hundred long works gets every second turn, and so does each of its callers', async (t) => {
  const clock = { ms: 0 }
  const run = createTurns(() => clock.ms)
  const done: string[] = []
  const many = Array.from({ length: 100 }, () => run(work(clock, 50, done, 'ada'), ada))
  const few = [run(work(clock, 50, done, 'bob'), bob), run(work(clock, 50, done, 'eve'), eve)]
  const stepsOf = (owner: string): number => done.filter((name) => name === owner).length
  await few[1]
  t.ok(done.length <= 120, `the other tenant waited for ${done.length - 50} steps of 5,050`)
  await few[0]
  t.ok(stepsOf('ada') <= 120, `the other caller waited for ${stepsOf('ada')} steps of 5,000`)
  await Promise.all(many.map((each) => Promise.resolve(each)))
})

t.test('what steps throw is thrown at once, or rejects later', async (t) => {
  const clock = { ms: 0 }
  const run = createTurns(() => clock.ms)
  function* failing(steps: number): Steps {
    yield* work(clock, steps)
    throw new Error('no more')
  }
  t.throws(() => run(failing(1), ada), { message: 'no more' })
  await t.rejects(Promise.resolve(run(failing(20), ada)), { message: 'no more' })
})

t.test('a source is paused while its work is behind, and its work is done in order', async (t) => {
  const calls: string[] = []
  const done: number[] = []
  const note = (name: string) => () => calls.push(name)
  const queue = new StepQueue({ pause: note('pause'), resume: note('resume'), destroy: note('destroy') }, ada)
  // A turn has 5 ms. Each step takes one by itself, however long the process is held up in between.
  function* slow(name: number, steps = 3): Steps {
    for (let step = 0; step < steps; step++) {
      for (const from = performance.now(); performance.now() - from < 6;);
      yield
    }
    done.push(name)
  }
  queue.push(slow(1), 1_000_000)
  queue.push(slow(2), 1)
  queue.whenIdle(() => calls.push('idle'))
  t.same(calls, ['pause'])
  await until('it is resumed', () => calls.includes('resume'))
  t.same(
    [done, calls],
    [
      [1, 2],
      ['pause', 'idle', 'resume']
    ]
  )
  queue.push(slow(3, 400), 1_000_000)
  queue.push(slow(4), 1)
  queue.close()
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  t.same(done, [1, 2], 'nothing is done after it is closed')
  t.same(calls, ['pause', 'idle', 'resume', 'pause'], 'nor is the source resumed')
})

t.test('work that comes in the turn in which the work before it ended is done too', async (t) => {
  const done: number[] = []
  let resumed = 0
  const queue = new StepQueue({ pause() {}, resume: () => resumed++, destroy: t.fail }, ada)
  function* slow(): Steps {
    for (const from = performance.now(); performance.now() - from < 6;);
    yield
    done.push(1)
  }
  function* next(): Steps {
    yield
    done.push(2)
  }
  /** Other work, which sees the end of the first before the queue has heard of it. */
  function* adding(): Steps {
    while (done.length === 0) yield
    queue.push(next(), 1)
  }
  queue.push(slow(), 1_000_000)
  await runSteps(adding(), bob)
  await until('it is resumed', () => resumed > 0)
  t.same([done, resumed], [[1, 2], 1])
})

t.test('a step that throws rejects the promise of its own work; the work of others is done', async (t) => {
  const clock = { ms: 0 }
  const run = createTurns(() => clock.ms)
  function* faulty(): Steps<number> {
    yield* work(clock, 8)
    throw new Error('a fault')
  }
  const [failing, other] = [run(faulty(), ada), run(work(clock, 8), bob)]
  await t.rejects(Promise.resolve(failing), { message: 'a fault' })
  t.equal(await other, 8)
})

t.test(
  'a source whose work throws is destroyed with the fault, at once or in a later turn; others go on',
  async (t) => {
    function* faulty(ms: number): Steps {
      for (const from = performance.now(); performance.now() - from < ms;) yield
      throw new Error('a fault')
    }
    for (const [ms, size] of [
      [0, 1],
      [0, 1_000_000],
      [12, 1_000_000]
    ] as const) {
      const [faults, calls, done]: [Error[], string[], string[]] = [[], [], []]
      function* fine(): Steps {
        yield
        done.push('fine')
      }
      const source = { pause() {}, resume: () => calls.push('resume'), destroy: (fault: Error) => faults.push(fault) }
      const [bad, good] = [new StepQueue(source, ada), new StepQueue({ ...source, destroy: t.fail }, bob)]
      bad.push(faulty(ms), size)
      bad.whenIdle(() => calls.push('idle'))
      good.push(fine(), 1_000_000)
      await until('it is over', () => calls.includes('idle'))
      await until('the other is done', () => done.length === 1)
      t.match(faults, [{ message: 'a fault' }])
      t.equal(faults.length, 1)
    }
  }
)
