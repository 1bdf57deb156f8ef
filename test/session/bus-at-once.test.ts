// A process that said something a moment ago is asked in one message and answers in one: it begins at once. What becomes
// of a request that it does not answer is unknown, and the request is not run elsewhere.

import t from 'tap'
import { nodeChannel } from '../../src/store/keys.ts'
import { until } from '../kit/until.ts'
import { ada, call, never, wire, type Wire } from './bus-kit.ts'

const [toOne, toTwo] = [nodeChannel('one'), nodeChannel('two')]
const ask = (setup: Wire, question: unknown = {}) => setup.one.request('two', 'modern', ada, question, call())

/** Each has just heard the other. */
async function acquainted(t: { teardown(run: () => unknown): void }): Promise<Wire> {
  const setup = await wire(t)
  setup.two.serve('modern', async () => 'known')
  await ask(setup)
  setup.published.length = 0
  return setup
}

t.test('two messages do where the other process was just heard, four where it was not', async (t) => {
  const setup = await acquainted(t)
  const channels = () => setup.published.splice(0).map(([channel]) => channel)
  t.equal(await ask(setup), 'known')
  t.same(channels(), [toTwo, toOne])
  setup.today += 249
  t.equal(await ask(setup), 'known')
  t.same(channels(), [toTwo, toOne])
  setup.today += 250
  t.equal(await ask(setup), 'known')
  t.same(channels(), [toTwo, toOne, toTwo, toOne], 'question, ready, go, answer')
})

t.test('a question that was lost may have been begun; where the process was not heard, it was not', async (t) => {
  const setup = await acquainted(t)
  setup.hurry = true
  setup.lose = (channel) => channel === toTwo
  await t.rejects(ask(setup), { code: 'upstream_lost', data: { outcome: 'unknown' } })
  setup.today += 1_000
  await t.rejects(ask(setup), { code: 'invalid_state', message: /gone/ })
})

t.test('a question that the store did not confirm may have been begun', async (t) => {
  const setup = await acquainted(t)
  let calls = 0
  let isOver = false
  setup.two.serve('modern', async (_question, { signal }) => {
    calls++
    signal.addEventListener('abort', () => (isOver = true))
    return await never()
  })
  let sent = 0
  setup.fail = (channel) => (channel === toTwo && sent++ === 0 ? 'taken' : undefined)
  await t.rejects(ask(setup), { code: 'upstream_lost', data: { outcome: 'unknown' } })
  await until('it is told that nobody waits', () => isOver)
  t.equal(calls, 1)
  sent = 0
  setup.today += 1_000
  await t.rejects(ask(setup), { code: 'unavailable' }, 'the control: it was not')
  await until('it is told', () => sent > 1)
  t.equal(calls, 1)
})

t.test('work that takes longer is confirmed meanwhile, and not asked for again', async (t) => {
  const setup = await acquainted(t)
  setup.hurry = true
  const work = Promise.withResolvers<unknown>()
  let calls = 0
  setup.two.serve('modern', async () => {
    calls++
    return await work.promise
  })
  const asked = ask(setup)
  await until('it is confirmed', () => setup.published.some(([channel]) => channel === toOne))
  setup.tellLost()
  work.resolve('done')
  t.equal(await asked, 'done')
  t.equal(calls, 1)
})

t.test('a process of an earlier version, which waits for the word to begin, gets it', async (t) => {
  const setup = await wire(t)
  let n = 0
  const say = (word: string, id: string, body?: unknown): Promise<number> => {
    const message = { word, id, from: 'earlier', at: setup.today, n: ++n, body }
    return setup.store.publish(toOne, setup.sealer.seal('bus', ['one'], JSON.stringify(message)))
  }
  const words: string[] = []
  const unsubscribe = await setup.store.subscribe(nodeChannel('earlier'), (sealed) => {
    const message = JSON.parse(setup.sealer.open('bus', ['earlier'], sealed) ?? '') as Record<string, string>
    const { word, id, body } = message
    words.push((body as { atOnce?: boolean } | undefined)?.atOnce === true ? `${word} at once` : `${word}`)
    if (word === 'question') void say('ready', id ?? '')
    if (word === 'go') void say('answer', id ?? '', 'done')
  })
  t.teardown(unsubscribe)
  for (const _ of ['not heard before', 'just heard'])
    t.equal(await setup.one.request('earlier', 'modern', ada, {}, call()), 'done')
  t.same(words, ['question', 'go', 'question at once', 'go'])
})

t.test('an answer that was lost is given again, and nothing is run twice', async (t) => {
  const setup = await acquainted(t)
  let calls = 0
  setup.two.serve('modern', async () => {
    calls++
    setup.lose = (channel) => channel === toOne
    return 'done'
  })
  const asked = ask(setup)
  await until('it is answered', () => setup.published.at(-1)?.[0] === toOne)
  setup.lose = () => false
  setup.tellLost()
  t.equal(await asked, 'done')
  t.equal(calls, 1)
})

t.test('whoever gives up is heard while the work goes on', async (t) => {
  const setup = await acquainted(t)
  const aborted = Promise.withResolvers<unknown>()
  setup.two.serve('modern', async (_question, { signal }) => {
    signal.addEventListener('abort', () => aborted.resolve(signal.reason))
    stop.abort()
    return await never()
  })
  const stop = new AbortController()
  await t.rejects(setup.one.request('two', 'modern', ada, {}, call({ signal: stop.signal })), { code: 'cancelled' })
  t.match(await aborted.promise, { code: 'cancelled' })
})
