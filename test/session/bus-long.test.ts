// Long requests of another process: they wait for their turn, count for their caller at both ends, and are as long as
// a body may be.

import t from 'tap'
import { createMemoryAccount } from '../../src/limits/memory.ts'
import { handClock } from '../kit/connector.ts'
import { until } from '../kit/until.ts'
import { ada, call, never, wire, type Wire } from './bus-kit.ts'

const mebibyte = 1024 * 1024
/** A busy machine takes seconds for each part of ten MiB. */
const patient = { ackMs: 60_000, silenceMs: 90_000 }
const long = 'x'.repeat(900_000)
const isLong = (text: string): boolean => text.length > long.length
const countLong = ({ published }: Wire): number => published.filter(([, text]) => isLong(text)).length
const longest = ({ published }: Wire): number => Math.max(...published.map(([, text]) => text.length))
/** With characters that every cut in even parts would halve, and text that is longer in JSON. */
const odd = (chars: number): string => `a${'\u{1f600}'.repeat(chars / 4)}${'"\\\n'.repeat(chars / 6)}`

async function turns(): Promise<void> {
  for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve))
}

t.test('few long questions are on their way; one that waits for its turn does not count as unanswered', async (t) => {
  const clock = handClock()
  let ticking: NodeJS.Timeout | undefined
  t.teardown(() => clearInterval(ticking))
  const memory = createMemoryAccount(64_000_000)
  const setup = await wire(t, { clock, ackMs: 2_000 }, { memory })
  let begun = 0
  setup.two.serve('modern', async () => ++begun)
  const { promise, resolve } = Promise.withResolvers<void>()
  setup.hold = (text) => (isLong(text) ? promise : undefined)
  const outcomes: unknown[] = []
  const asked = Array.from({ length: 8 }, (_, n) =>
    setup.one.request('two', 'modern', ada, { n, long }).then(
      (answer) => outcomes.push(answer),
      (error: { code: string }) => outcomes.push(error.code)
    )
  )
  await turns()
  t.equal(countLong(setup), 5)
  for (let passed = 0; passed < 2_500; passed += 500) {
    clock.advance(500)
    await turns()
  }
  t.same(outcomes, Array(5).fill('invalid_state'), 'those that left were not answered in time')
  resolve()
  await Promise.all(asked)
  t.equal(outcomes.slice(5).filter((answer) => typeof answer === 'number').length, 3, JSON.stringify(outcomes))
  // A bus that stops waits for a moment.
  ticking = setInterval(() => clock.advance(500), 5)
})

t.test('a question that its caller gives up while it waits is not sent, and counts until then', async (t) => {
  const memory = createMemoryAccount(64_000_000)
  const setup = await wire(t, { memory }, { memory: createMemoryAccount() })
  setup.two.serve('modern', never)
  const { promise, resolve } = Promise.withResolvers<void>()
  setup.hold = (text) => (isLong(text) ? promise : undefined)
  const stop = new AbortController()
  const asked = Array.from({ length: 8 }, () =>
    setup.one.request('two', 'modern', ada, { long }, call({ signal: stop.signal })).catch((error: unknown) => error)
  )
  await turns()
  stop.abort()
  for (const error of await Promise.all(asked)) t.match(error, { code: 'cancelled' })
  t.ok(memory.ofTenant('acme').used > 7_000_000, 'their texts are still there')
  t.match(
    await setup.one.request('two', 'modern', ada, { text: 'x'.repeat(10_000_000) }).catch((error: unknown) => error),
    { code: 'too_many', message: /^The request would need more memory/ }
  )
  resolve()
  await until('nothing is left', () => memory.ofTenant('acme').used === 0)
  t.equal(countLong(setup), 5)
})

t.test('who answers refuses what it has no memory for, before it is begun', async (t) => {
  for (const text of ['x'.repeat(100_000), long]) {
    const memory = createMemoryAccount(text.length * 8)
    const setup = await wire(t, {}, { memory })
    let begun = 0
    const work = Promise.withResolvers<unknown>()
    setup.two.serve('modern', (question) => {
      begun++
      return question === 'short' ? Promise.resolve('done') : work.promise
    })
    const ask = (whose = ada) => setup.one.request('two', 'modern', whose, { text })
    const first = [ask(), ask({ ...ada, caller: 'bob' })]
    // A caller has a quarter: of a long text all its characters count twice until it is read.
    const [mine, his] = first.map((each) => each.catch((error: { code: string }) => error.code))
    if (text === long) {
      t.same([await mine, await his], ['too_many', 'too_many'], 'a long one')
      t.equal(begun, 0)
    } else {
      await until('both are begun', () => begun === 2)
      t.ok(memory.ofTenant('acme').used > 200_000, 'they count while they are answered')
      await t.rejects(ask(), { code: 'too_many', message: /^The request would need more memory than is left for this/ })
      t.equal(begun, 2)
      work.resolve('done')
      t.same([await mine, await his], ['done', 'done'])
      t.equal(await ask(), 'done', 'there is room again')
    }
    t.equal(await setup.one.request('two', 'modern', ada, 'short'), 'done', 'the control')
    await until('nothing is left', () => memory.ofTenant('acme').used === 0)
  }
})

t.test('a question that is longer than a message arrives whole, in parts', async (t) => {
  const [mine, its] = [createMemoryAccount(600 * mebibyte), createMemoryAccount(600 * mebibyte)]
  const setup = await wire(t, { ...patient, memory: mine }, { memory: its })
  setup.two.serve('modern', async (question) => ((question as { text: string }).text === text ? 'whole' : 'changed'))
  const text = odd(10 * mebibyte)
  t.ok(JSON.stringify(text).length > 8 * mebibyte)
  t.equal(await setup.one.request('two', 'modern', ada, { text }), 'whole')
  t.ok(longest(setup) < 3 * mebibyte, `${longest(setup)} characters at a time`)
  await until('nothing is left', () => mine.ofTenant('acme').used + its.ofTenant('acme').used === 0)
})

t.test('where a part is lost and not kept the question is refused, and not begun', async (t) => {
  const setup = await wire(t, patient)
  let begun = 0
  setup.two.serve('modern', async () => ++begun)
  const text = 'y'.repeat(10 * mebibyte)
  let parts = 0
  setup.lose = (channel, message) => channel === 'node:two' && message.length > mebibyte && ++parts === 2
  await t.rejects(setup.one.request('two', 'modern', ada, { text }), {
    code: 'unavailable',
    message: /was not begun/,
    headers: { 'Retry-After': '1' }
  })
  t.equal(begun, 0)
  t.equal(await setup.one.request('two', 'modern', ada, { text }), 1, 'the control')
})

t.test('nothing is begun of a long question that its caller gives up on its way, or that has no room', async (t) => {
  const memory = createMemoryAccount(64 * mebibyte)
  const setup = await wire(t, patient, { memory })
  let begun = 0
  setup.two.serve('modern', async () => ++begun)
  const text = 'y'.repeat(10 * mebibyte)
  const refused = { code: 'too_many', message: /^The request would need more memory/ }
  await t.rejects(setup.one.request('two', 'modern', ada, { text }), refused)
  t.ok(longest(setup) < mebibyte, 'before any of it is sent')
  const roomy = await wire(t, patient)
  roomy.two.serve('modern', async () => ++begun)
  const stop = new AbortController()
  roomy.hold = (sealed) => {
    if (sealed.length > mebibyte) stop.abort()
    return undefined
  }
  await t.rejects(roomy.one.request('two', 'modern', ada, { text }, call({ signal: stop.signal })), {
    code: 'cancelled'
  })
  roomy.hold = () => undefined
  t.equal(begun, 0)
  t.equal(await roomy.one.request('two', 'modern', ada, 'short'), 1, 'the control')
})

t.test('where the process that answers stops between two parts the caller hears that nothing was begun', async (t) => {
  const setup = await wire(t, patient)
  let begun = 0
  setup.two.serve('modern', async () => ++begun)
  let parts = 0
  setup.hold = (sealed) => {
    if (sealed.length > mebibyte && ++parts === 2) setup.two.endWork()
    return undefined
  }
  await t.rejects(setup.one.request('two', 'modern', ada, { text: 'y'.repeat(10 * mebibyte) }), {
    code: 'unavailable',
    message: /was not begun/,
    headers: { 'Retry-After': '1' }
  })
  t.same([parts > 1, begun], [true, 0])
})

t.test('a third process does not get the text of a long question', async (t) => {
  const setup = await wire(t, patient)
  const { promise, resolve } = Promise.withResolvers<void>()
  setup.two.serve('modern', async () => 'done')
  setup.hold = (sealed) => (sealed.length > mebibyte ? promise : undefined)
  const asked = setup.one.request('two', 'modern', ada, { text: 'y'.repeat(10 * mebibyte) })
  await until('it is on its way', () => longest(setup) > mebibyte)
  const before = setup.published.length
  const body = { kind: 'text', whose: ada, question: 'one-1' }
  const say = (word: string, n: number, more = {}) =>
    setup.store.publish(
      'node:one',
      setup.sealer.seal('bus', ['one'], JSON.stringify({ from: 'six', at: setup.today, n, word, id: 'six-1', ...more }))
    )
  await say('question', 1, { body })
  await say('go', 2)
  await until('it is answered', () => setup.published.slice(before).filter(([to]) => to === 'node:six').length > 1)
  const words = setup.published
    .slice(before)
    .filter(([to]) => to === 'node:six')
    .map(([, sealed]) => JSON.parse(setup.sealer.open('bus', ['six'], sealed) ?? '') as { word: string })
  // It does not listen, so it is told again.
  t.same([...new Set(words.map(({ word }) => word))], ['ready', 'error'])
  resolve()
  t.equal(await asked, 'done')
})
