// Answers of clients on their way to the process that asked, over messages of a store that may lose them.

import t from 'tap'
import { type AnswerOfSession, createClientAnswers } from '../../src/session/bus/client-answers.ts'
import { nodeChannel } from '../../src/store/keys.ts'
import { wallClock } from '../../src/time/clock.ts'
import { ada, wire } from './bus-kit.ts'

const answer: AnswerOfSession = { key: 'a', said: { kind: 'response', id: 'two-1', result: { action: 'accept' } } }

async function asking(t: { teardown(run: () => unknown): void }) {
  const setup = await wire(t)
  const came: unknown[] = []
  setup.two.serve('response', async (said) => came.push(said) > 0)
  const refused: unknown[] = []
  setup.two.hear('response', (said) => refused.push(said))
  const answerTo = createClientAnswers(setup.one, wallClock, () => false)
  return { setup, came, refused, answerTo }
}

t.test('an answer gets there although the store was away in the middle', async (t) => {
  // The first is the question to take it, the second the word to begin.
  for (const [what, lost] of [
    ['before it was sent', 1],
    ['when the other process was to take it', 2]
  ] as const)
    for (const how of ['lost', 'taken'] as const) {
      const { setup, came, refused, answerTo } = await asking(t)
      let toTwo = 0
      setup.fail = (channel) => (channel === nodeChannel('two') && ++toTwo === lost ? how : undefined)
      t.equal(await answerTo('two', ada, 'two-1', answer), true, `${what}, ${how}`)
      t.same(came[0], answer)
      // The second one finds that the server request is over, as one that is late does.
      t.ok(came.length <= 2)
      t.same(refused, [])
    }
})

t.test('where nothing gets through it is refused, and the process that asked is told', async (t) => {
  const { setup, came, refused, answerTo } = await asking(t)
  setup.hurry = true
  const told = Promise.withResolvers<unknown>()
  setup.two.hear('response', told.resolve)
  setup.lose = (channel) => channel === nodeChannel('one')
  t.equal(await answerTo('two', ada, 'two-1', answer), false)
  t.match(await told.promise, { key: 'a', said: { kind: 'error', id: 'two-1', error: { code: -32603 } } })
  t.same([came, refused], [[], []])
})
