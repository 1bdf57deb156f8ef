// The short form of `npm run chaos`: one fault of each kind that costs little time. And the judge of the history: each
// broken promise is found.

import t from 'tap'
import { chaos } from './chaos.ts'
import { reasonsOf, violations, type Call } from './history.ts'

t.test('replicas, Redis and servers fail under load, and no promise is broken', async (t) => {
  const only = ['kill', 'pause Redis', 'break upstream', 'restart Redis', 'kill children', 'roll'] as const
  const report = await chaos(t, { seed: 1, faults: only.length, only, clients: 6 })
  t.same(report.violations, [], JSON.stringify(report))
  t.equal(report.outcomes['session lost'], 0)
  t.ok(report.outcomes.answered > 30, `${report.outcomes.answered} calls were answered`)
  t.equal(Object.keys(report.faults).length, only.length)
})

const call: Call = {
  canary: 'a',
  era: 'legacy',
  tool: 'web__mirror',
  begun: 0,
  ended: 100,
  outcome: { kind: 'answered', text: 'a' },
  steps: 2,
  progress: [1, 2],
  foreign: 0,
  twice: 0,
  resumed: 0
}

t.test('what must not be is found in a history', (t) => {
  const once = (): number => 1
  t.same(violations([call], once), [], 'the control')
  t.same(
    violations([{ ...call, outcome: { kind: 'refused', why: '' } }], () => 0),
    []
  )
  t.same(violations([{ ...call, outcome: { kind: 'unknown', why: '' } }], once), [])
  const broken: ReadonlyArray<readonly [RegExp, Partial<Call>, number]> = [
    [/executed 2 times/, {}, 2],
    [/answered and never executed/, {}, 0],
    [/answer of another: b/, { outcome: { kind: 'answered', text: 'b' } }, 1],
    [/executed and then refused: 503/, { outcome: { kind: 'refused', why: '503' } }, 1],
    [/lost its session/, { outcome: { kind: 'session lost', why: '404' } }, 0],
    [/took 70000 ms/, { ended: 70_000 }, 1],
    [/notifications of others/, { foreign: 1 }, 1],
    [/events twice/, { twice: 1 }, 1],
    [/gap.*1 3/, { progress: [1, 3] }, 1],
    [/gap.*1 1/, { progress: [1, 1] }, 1],
    [/after 1 of its 2 notifications/, { progress: [1] }, 1]
  ]
  for (const [pattern, change, executed] of broken) {
    const found = violations([{ ...call, ...change }], () => executed)
    t.equal(found.length, 1, pattern.source)
    t.match(found[0], pattern)
  }
  t.same(reasonsOf([call, { ...call, outcome: { kind: 'refused', why: '503 {"reason":"unavailable"}' } }]), {
    'refused: unavailable': 1
  })
  t.end()
})
