// What is sent to another process again, over messages of a store that may lose them.

import t from 'tap'
import { createBusRetries } from '../../src/session/bus/bus-retries.ts'
import { nodeChannel } from '../../src/store/keys.ts'
import { wallClock } from '../../src/time/clock.ts'
import { ada, wire } from './bus-kit.ts'

const toTwo = nodeChannel('two')

async function sending(t: { teardown(run: () => unknown): void }) {
  const setup = await wire(t)
  const came: unknown[] = []
  setup.two.serve('response', async (said) => came.push(said))
  const retries = createBusRetries(setup.one, wallClock, () => false)
  setup.one.peers.wasThere('two')
  return { setup, came, retries }
}

t.test('what counts once gets there although the store was away in the middle', async (t) => {
  // The first message is the question whether it can begin, the second the word to begin.
  for (const lost of [1, 2])
    for (const how of ['lost', 'taken'] as const) {
      const { setup, came, retries } = await sending(t)
      let sent = 0
      setup.fail = (channel) => (channel === toTwo && ++sent === lost ? how : undefined)
      await retries.request('two', 'response', ada, 'the answer', true)
      t.ok(came.length === 1 || came.length === 2, `message ${lost} is ${how}`)
      t.same(new Set(came), new Set(['the answer']))
    }
})

t.test('of what may be done only once, that alone is sent again which was not begun', async (t) => {
  const { setup, came, retries } = await sending(t)
  let sent = 0
  setup.fail = (channel) => (channel === toTwo && ++sent === 2 ? 'lost' : undefined)
  const outcome = { code: 'upstream_lost', data: { outcome: 'unknown' } }
  await t.rejects(retries.request('two', 'response', ada, 'a', false), outcome)
  t.same(came, [])
  setup.fail = () => undefined
  setup.hurry = true
  // It is asked first: it was not heard lately.
  setup.elapsed += 1_000
  let isLost = true
  setup.lose = (channel) => {
    const lost = isLost && channel === toTwo
    if (lost) isLost = false
    return lost
  }
  await retries.request('two', 'response', ada, 'b', false)
  t.same(came, ['b'], 'its process counted as gone, and was there again')
})

t.test('a process that stays away is gone, and hears later what it has to hear', async (t) => {
  const { setup, came, retries } = await sending(t)
  setup.hurry = true
  setup.lose = (channel) => channel === toTwo
  await t.rejects(retries.request('two', 'response', ada, 'a', true), { code: 'invalid_state', message: /gone/ })
  t.same(came, [])
  setup.lose = () => false
  const heard = Promise.withResolvers<unknown>()
  setup.two.hear('response', heard.resolve)
  await retries.tell('two', 'response', ada, 'refused')
  t.equal(await heard.promise, 'refused')
})

t.test('a process that nobody knows is tried once, and told nothing', async (t) => {
  const { setup, came, retries } = await sending(t)
  setup.hurry = true
  let questions = 0
  setup.fail = (channel) => (channel === nodeChannel('none') ? (questions++, undefined) : undefined)
  await t.rejects(retries.request('none', 'response', ada, 'a', true), { code: 'invalid_state' })
  const once = questions
  await retries.tell('none', 'response', ada, 'refused')
  t.equal(questions, once)
  setup.one.peers.wasThere('none')
  await t.rejects(retries.request('none', 'response', ada, 'a', true), { code: 'invalid_state' })
  t.ok(questions >= 3 * once, 'the control: one that is known is tried again')
  await retries.request('two', 'response', ada, 'b', true)
  t.same(came, ['b'])
})
