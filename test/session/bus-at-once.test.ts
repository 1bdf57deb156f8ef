// Calls that come one after the other: a question is begun without being asked first where it is certain that its
// sender still waits, and what leaves in one turn leaves together.

import t from 'tap'
import { until } from '../kit/until.ts'
import { ada, call, never, wire, type Wire } from './bus-kit.ts'

/** What a message for a process says; undefined: it is for another one. */
function wordsOf(setup: Wire, node: string, [channel, text]: readonly [string, string]): string[] | undefined {
  if (channel !== `node:${node}`) return undefined
  const said = JSON.parse(setup.sealer.open('bus', [node], text) ?? '') as {
    word: string
    many?: ReadonlyArray<{ word: string }>
  }
  return said.many === undefined ? [said.word] : said.many.map(({ word }) => word)
}

/** Words of what was published for a process since, in their order: each message as a list of what it says. */
const wordsTo = (setup: Wire, node: string, from = 0): string[][] =>
  setup.published.slice(from).flatMap((each) => {
    const words = wordsOf(setup, node, each)
    return words === undefined ? [] : [words]
  })

/** Both have heard each other. */
async function acquainted(t: Parameters<typeof wire>[0], more: Parameters<typeof wire>[1] = {}): Promise<Wire> {
  const setup = await wire(t, more)
  setup.two.serve('lists', async () => 'known')
  await setup.one.request('two', 'lists', ada, {}, call())
  return setup
}

t.test('a call is a question and an answer where the other process was heard lately, else four messages', async (t) => {
  const setup = await acquainted(t)
  setup.two.serve('modern', async () => 'done')
  t.same(
    [wordsTo(setup, 'two'), wordsTo(setup, 'one')],
    [
      [['question'], ['go']],
      [['ready'], ['answer']]
    ],
    'the first'
  )
  let before = setup.published.length
  t.equal(await setup.one.request('two', 'modern', ada, {}, call()), 'done')
  t.same([wordsTo(setup, 'two', before), wordsTo(setup, 'one', before)], [[['question']], [['answer']]])
  setup.elapsed += 101
  before = setup.published.length
  t.equal(await setup.one.request('two', 'modern', ada, {}, call()), 'done')
  t.same(wordsTo(setup, 'two', before), [['question'], ['go']], 'it may be gone meanwhile')
})

t.test('a question that was held up is not begun before its sender says that it still waits', async (t) => {
  const setup = await acquainted(t)
  let begun = 0
  setup.two.serve('modern', async () => ++begun)
  setup.lose = (channel) => channel === 'node:two'
  const stop = new AbortController()
  const ask = (signal?: AbortSignal): Promise<unknown> =>
    setup.one.request('two', 'modern', ada, {}, call(signal === undefined ? {} : { signal }))
  // On a busy machine it is also asked whether it is there.
  const sent = (word: string) => setup.published.filter((each) => wordsOf(setup, 'two', each)?.includes(word) === true)
  const before = sent('question').length
  const waiting = ask()
  await until('it is on its way', () => sent('question').length === before + 1)
  const given = ask(stop.signal).catch((error: unknown) => error)
  await until('the other one is, too', () => sent('question').length === before + 2)
  const held = sent('question').slice(-2)
  stop.abort()
  t.match(await given, { code: 'cancelled' })
  await until('it is told to leave it', () => sent('abort').length === 1)

  setup.lose = () => false
  setup.elapsed += 501
  for (const [channel, text] of held) await setup.store.publish(channel, text)
  t.equal(await waiting, 1, 'the one that is waited for is run')
  await until('the other one is not wanted', () => sent('abort').length === 2)
  t.equal(begun, 1)
  t.equal(await ask(), 2, 'a young one is begun')
})

t.test(
  'who may have begun and falls silent: the outcome is unknown; who stops says that it has not begun',
  async (t) => {
    const setup = await acquainted(t)
    setup.hurry = true
    setup.two.serve('modern', never)
    setup.lose = (channel) => channel === 'node:two'
    await t.rejects(setup.one.request('two', 'modern', ada, {}, call()), {
      code: 'upstream_lost',
      data: { outcome: 'unknown' }
    })
    setup.lose = () => false
    setup.hurry = false
    const ask = (kind: 'lists' | 'modern'): Promise<unknown> => setup.one.request('two', kind, ada, {}, call())
    await ask('lists')
    const closed = setup.two.close()
    const gone = { code: 'invalid_state', message: /gone/ }
    await t.rejects(ask('modern'), gone, 'it says so')
    await closed
    setup.hurry = true
    await t.rejects(ask('modern'), gone, 'and is asked first from then on')
  }
)

t.test(
  'that the store counts no listener is no proof that nobody began: listeners of its replicas are not counted',
  async (t) => {
    const setup = await acquainted(t)
    let begun = 0
    setup.two.serve('modern', async () => {
      begun++
      return await never()
    })
    setup.uncounted = true
    setup.hurry = true
    const asked = setup.one.request('two', 'modern', ada, {}, call())
    await t.rejects(asked, { code: 'upstream_lost', data: { outcome: 'unknown' } })
    t.equal(begun, 1, 'it was begun')
  }
)

t.test('work that takes long is known to be worked on', async (t) => {
  const setup = await acquainted(t, { ackMs: 2_000, silenceMs: 60_000 })
  const work = Promise.withResolvers<unknown>()
  setup.two.serve('modern', () => work.promise)
  const before = setup.published.length
  const asked = setup.one.request('two', 'modern', ada, {}, call())
  await until('it says so', () => wordsTo(setup, 'one', before).flat().includes('beat'))
  // Longer than a process that says nothing is waited for.
  await new Promise((resolve) => {
    setTimeout(resolve, 2_500)
  })
  work.resolve('late')
  t.equal(await asked, 'late')
})

t.test(
  'questions and answers of one turn leave as one message each; a process of an earlier version reads one by one',
  async (t) => {
    const setup = await wire(t)
    setup.two.serve('modern', async (question) => question)
    const asks = (): Promise<unknown[]> =>
      Promise.all([1, 2, 3].map((n) => setup.one.request('two', 'modern', ada, n, call())))
    t.same(await asks(), [1, 2, 3])
    t.same(wordsTo(setup, 'two')[0], ['question'], 'not heard yet: it may be of an earlier version')
    const before = setup.published.length
    t.same(await asks(), [1, 2, 3])
    const three = (word: string): string[] => [word, word, word]
    t.same([wordsTo(setup, 'two', before), wordsTo(setup, 'one', before)], [[three('question')], [three('answer')]])

    const at = { from: 'old', at: setup.today }
    let n = 0
    const say = (message: object): Promise<number> =>
      setup.store.publish('node:two', setup.sealer.seal('bus', ['two'], JSON.stringify({ ...at, n: ++n, ...message })))
    for (const id of ['old-1', 'old-2'])
      await say({ word: 'question', id, body: { kind: 'modern', whose: ada, question: id } })
    await until('both are asked first', () => wordsTo(setup, 'old').length === 2)
    t.same(wordsTo(setup, 'old'), [['ready'], ['ready']])
  }
)

t.test('one message that cannot be read does not take those that came with it', async (t) => {
  const setup = await acquainted(t)
  const heard: unknown[] = []
  setup.two.hear('seen', (said) => {
    if (said === 'bad') throw new Error('cannot be read')
    heard.push(said)
  })
  await Promise.all(['good', 'bad', 'better'].map((said) => setup.one.tell('two', 'seen', said)))
  await until('the others came', () => heard.length === 2)
  t.same(heard, ['good', 'better'])
})

t.test('an answer that is said again does not come ahead of what has not left yet', async (t) => {
  const setup = await acquainted(t)
  let toOne = 0
  setup.two.serve('modern', async (_question, { notify }) => {
    setup.fail = (channel) => (channel === 'node:one' && toOne++ === 0 ? 'lost' : undefined)
    void notify('first')
    // In a turn of its own: it leaves before it is known that the other one did not.
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
    return 'done'
  })
  const said: unknown[] = []
  const asked = setup.one.request('two', 'modern', ada, {}, call({ notify: (each) => said.push(each) }))
  t.equal(await asked, 'done')
  t.same(said, ['first'])
})
