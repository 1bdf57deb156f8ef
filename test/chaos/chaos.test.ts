// The short form of `npm run chaos`: one fault of each kind that costs little time. And the judge of the history: each
// broken promise is found.

import t from 'tap'
import { chaos } from './chaos.ts'
import { nothingSeen, see, type Message } from './load.ts'
import { streamViolations, type Heard } from './heard.ts'
import { reasonsOf, violations, type Asked, type Call, type Servers } from './history.ts'

// Questions to clients are part of the long form: docs/reliability.md says what it has found.
t.test('replicas, Redis and servers fail under load, and no promise is broken', async (t) => {
  const only = ['kill', 'pause Redis', 'break upstream', 'restart Redis', 'kill children', 'roll'] as const
  const report = await chaos(t, { seed: 1, faults: only.length, only, clients: 6 })
  t.same(report.violations, [], JSON.stringify(report))
  t.equal(report.outcomes['session lost'], 0)
  t.ok(report.outcomes.answered > 30, `${report.outcomes.answered} calls were answered`)
  t.equal(Object.keys(report.faults).length, only.length)
  t.ok(report.heard > 0, 'streams of sessions were heard on')
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

const servers = (executed: number, answered: readonly string[] = []): Servers => ({
  executed: () => executed,
  answered: () => answered
})

t.test('what must not be is found in a history', (t) => {
  t.same(violations([call], servers(1)), [], 'the control')
  t.same(violations([{ ...call, outcome: { kind: 'refused', why: '' } }], servers(0)), [])
  t.same(violations([{ ...call, outcome: { kind: 'unknown', why: '' } }], servers(1)), [])
  const broken: ReadonlyArray<readonly [RegExp, Partial<Call>, number]> = [
    [/executed 2 times/, {}, 2],
    [/answered and never executed/, {}, 0],
    [/answer of another: b/, { outcome: { kind: 'answered', text: 'b' } }, 1],
    [/executed and then refused: 503/, { outcome: { kind: 'refused', why: '503' } }, 1],
    [/lost its session/, { outcome: { kind: 'session lost', why: '404' } }, 0],
    [/took 70000 ms/, { ended: 70_000 }, 1],
    [/messages of others/, { foreign: 1 }, 1],
    [/events twice/, { twice: 1 }, 1],
    [/gap.*1 3/, { progress: [1, 3] }, 1],
    [/gap.*1 1/, { progress: [1, 1] }, 1],
    [/after 1 of its 2 notifications/, { progress: [1] }, 1]
  ]
  for (const [pattern, change, executed] of broken) {
    const found = violations([{ ...call, ...change }], servers(executed))
    t.equal(found.length, 1, pattern.source)
    t.match(found[0], pattern)
  }
  t.same(reasonsOf([call, { ...call, outcome: { kind: 'refused', why: '503 {"reason":"unavailable"}' } }]), {
    'refused: unavailable': 1
  })
  t.end()
})

t.test('a question of a call that its client has left is told from one of another client', (t) => {
  const question = (canary: string): Message => ({
    id: canary,
    method: 'elicitation/create',
    params: { message: canary }
  })
  const left = new Map([['left', 'word']])
  const seen = nothingSeen()
  for (const canary of ['own', 'left', 'left']) see(question(canary), 'own', seen, left)
  t.same([seen.foreign, [...seen.questions], [...seen.ofLeft]], [0, ['own'], ['left']])
  t.ok(see(question('of another'), 'own', seen, left))
  t.equal(seen.foreign, 1)
  t.end()
})

t.test('a question that is lost, doubled, or answered to the wrong one is found in a history', (t) => {
  const asked: Asked = { word: 'w', questions: 1, heard: 'w', refused: undefined }
  const unknown = { kind: 'unknown', why: '' } as const
  t.same(violations([{ ...call, asked }], servers(1, ['w'])), [], 'the control')
  const unheard = { ...asked, heard: undefined, refused: '400' }
  t.same(violations([{ ...call, outcome: unknown, asked: unheard }], servers(1)), [], 'as after a kill')
  t.same(violations([{ ...call, outcome: unknown, asked: unheard }], servers(1, ['-'])), [], 'its server was told')
  const broken: ReadonlyArray<readonly [RegExp, Partial<Asked>, readonly string[], Partial<Call>?]> = [
    [/was asked 2 times/, { questions: 2 }, ['w']],
    [/question answered 2 times: w, w/, {}, ['w', 'w']],
    [/question answered 2 times: w, w/, { heard: undefined }, ['w', 'w'], { outcome: unknown }],
    [/question answered by v in place of w/, { heard: undefined }, ['v'], { outcome: unknown }],
    [/a server that had heard - in place of w/, { heard: '-' }, ['-']],
    [/although nobody had answered/, {}, []],
    [/the answer to its question was refused: 400/, { refused: '400' }, ['w']]
  ]
  for (const [pattern, change, answers, more] of broken) {
    const found = violations([{ ...call, ...more, asked: { ...asked, ...change } }], servers(1, answers))
    t.equal(found.length, 1, pattern.source)
    t.match(found[0], pattern)
  }
  t.end()
})

t.test('a stream with a gap, a repetition or what is of others is found in a history', (t) => {
  const heard: Heard = {
    session: 's',
    caused: [
      { canary: 'a', sure: true, during: [10, 20] },
      { canary: 'b', sure: false, during: [20, 30] },
      { canary: 'c', sure: true, during: [30, 40] }
    ],
    canaries: ['a', 'c'],
    ids: ['one.1.x', 'one.2.x', 'two.1.x'],
    resumed: 1,
    refused: undefined
  }
  t.same(streamViolations([heard]), [], 'the control')
  t.same(streamViolations([{ ...heard, canaries: ['a', 'b', 'c'] }]), [], 'what is not sure may come')
  const lostWhile = (...span: [from: number, to: number]) => streamViolations([{ ...heard, canaries: ['a'] }], [span])
  for (const end of [30, 35, 50]) t.same(lostWhile(0, end), [], 'nor what was told while a replica was killed')
  t.same(lostWhile(40, 50), [], 'also where its call ended then')
  for (const [from, to] of [
    [0, 29],
    [41, 50]
  ] as const)
    t.match(lostWhile(from, to), [/never heard of c/], 'the control')
  const broken: ReadonlyArray<readonly [RegExp, Partial<Heard>]> = [
    [/never heard of c/, { canaries: ['a'] }],
    [/heard twice of a/, { canaries: ['a', 'a', 'c'] }],
    [/out of order: c, a/, { canaries: ['c', 'a'] }],
    [/had not caused: z/, { canaries: ['a', 'z', 'c'] }],
    [/a gap between the events 1 and 3/, { ids: ['one.1.x', 'two.1.x', 'one.3.x'] }],
    [/a repetition between the events 2 and 2/, { ids: ['one.2.x', 'one.2.x'] }],
    [/could not resume: 400/, { refused: '400' }]
  ]
  for (const [pattern, change] of broken) {
    const found = streamViolations([{ ...heard, ...change }])
    t.equal(found.length, 1, pattern.source)
    t.match(found[0], pattern)
  }
  t.end()
})
