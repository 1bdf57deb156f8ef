// What one process tells another at length: little of it is on its way at a time, what waits counts for whom it is, and
// what is told under one name keeps its order.

import t from 'tap'
import { createMemoryAccount } from '../../src/limits/memory.ts'
import { everyNode } from '../../src/store/keys.ts'
import { heldClock } from '../kit/connector.ts'
import { recorded } from '../store/kit.ts'
import { until } from '../kit/until.ts'
import { ada, wire, type Wire } from './bus-kit.ts'

const long = 'x'.repeat(900_000)
const isLong = (text: string): boolean => text.length > long.length
const countLong = ({ published }: Wire): number => published.filter(([, text]) => isLong(text)).length
const under = (name: string, whose = ada) => ({ whose, about: name })

/** Long messages do not leave before it is called. */
function holdLong(setup: Wire): () => void {
  const { promise, resolve } = Promise.withResolvers<void>()
  setup.hold = (text) => (isLong(text) ? promise : undefined)
  return resolve
}

/** The numbers of what the second process heard. */
function heardBy({ two }: Wire): unknown[] {
  const heard: unknown[] = []
  two.hear('deliver', ({ n }: { n: unknown }) => void heard.push(n))
  return heard
}

async function turns(): Promise<void> {
  for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve))
}

for (const to of ['two', everyNode])
  t.test(`of what is told to ${to} little is on its way, and what waits counts for whom it is`, async (t) => {
    const memory = createMemoryAccount(64_000_000)
    const setup = await wire(t, { memory }, { memory: createMemoryAccount() })
    // The second process that hears what all are told is this one.
    const heard = heardBy(setup)
    const leave = holdLong(setup)
    setup.hurry = to === everyNode
    const told = Array.from({ length: 10 }, (_, n) => setup.one.tell(to, 'deliver', { n, long }, under(`${n}`)))
    await turns()
    t.equal(countLong(setup), 5)
    t.ok(memory.ofTenant('acme').used > 8_000_000)
    leave()
    t.same(new Set(await Promise.all(told)), new Set([true]))
    await until('all are heard', () => heard.length === 10)
    await until('nothing is left', () => memory.ofTenant('acme').used === 0)
  })

t.test('nothing overtakes what is told under the same name; what is told under another does', async (t) => {
  const setup = await wire(t)
  const heard = heardBy(setup)
  const leave = holdLong(setup)
  const tell = (n: number, name: string, more = {}) => setup.one.tell('two', 'deliver', { n, ...more }, under(name))
  const told = [tell(1, 'a', { long }), tell(2, 'a'), tell(3, 'a', { long }), tell(4, 'a')]
  t.equal(await tell(5, 'b'), true)
  await until('it came', () => heard.length === 1)
  leave()
  t.same(await Promise.all(told), [true, true, true, true])
  t.equal(await tell(6, 'a'), true)
  await until('all came', () => heard.length === 6)
  t.same(heard, [5, 1, 2, 3, 4, 6])
})

t.test('where one of a name was not heard, those that waited for it are not sent', async (t) => {
  const setup = await wire(t)
  const heard = heardBy(setup)
  setup.fail = () => 'lost'
  const tell = (n: number, more = {}) => setup.one.tell('two', 'deliver', { n, ...more }, under('a'))
  const told = [tell(1, { long }), tell(2)]
  await until('the first has left', () => countLong(setup) === 1)
  setup.fail = () => undefined
  t.same(await Promise.all(told), [false, false], 'who says them again keeps their order')
  t.equal(await tell(3), true, 'the control')
  await until('it came', () => heard.length === 1)
  t.same(heard, [3])
})

t.test('what there is no memory for is refused where it is told, and said in the log once', async (t) => {
  const { log, lines } = recorded()
  const setup = await wire(t, { memory: createMemoryAccount(8_000_000), log }, { memory: createMemoryAccount() })
  const leave = holdLong(setup)
  // A caller has a quarter.
  const told = Array.from({ length: 10 }, (_, n) => setup.one.tell('two', 'deliver', { n, long }, under(`${n}`)))
  const neighbour = setup.one.tell('two', 'deliver', { n: 10, long }, under('n', { tenant: 'globex', caller: 'eve' }))
  await turns()
  leave()
  t.same(await Promise.all(told), [true, true, ...Array<boolean>(8).fill(false)])
  t.equal(await neighbour, true)
  t.match(
    lines.filter(({ msg }) => String(msg).startsWith('no room')),
    [{ level: 40, tenant: 'acme' }]
  )
})

t.test('what there is no memory to read is left out where it comes, and said in the log', async (t) => {
  const { log, lines } = recorded()
  const setup = await wire(t, {}, { memory: createMemoryAccount(4_000_000), log })
  const heard = heardBy(setup)
  t.equal(await setup.one.tell('two', 'deliver', { n: 1, long }, under('a')), true)
  t.equal(await setup.one.tell('two', 'deliver', { n: 2 }, under('a')), true)
  await until('the short one came', () => heard.length > 0)
  t.same(heard, [2])
  const about = lines.filter(({ msg }) => String(msg).startsWith('no room'))
  t.match(about, [{ level: 40, tenant: 'acme', messages: 1 }])
})

t.test('what an earlier version tells keeps its order, long or short', async (t) => {
  const setup = await wire(t)
  const heard = heardBy(setup)
  const tell = (n: number, more = {}) => {
    const said = {
      from: 'old',
      at: setup.today,
      n,
      word: 'told',
      id: '',
      body: { kind: 'deliver', said: { n, ...more } }
    }
    return setup.store.publish('node:two', setup.sealer.seal('bus', ['two'], JSON.stringify(said)))
  }
  await Promise.all([tell(1), tell(2, { long }), tell(3), tell(4, { long }), tell(5)])
  await until('all came', () => heard.length === 5)
  t.same(heard, [1, 2, 3, 4, 5])
})

t.test('a message that is cut or is none harms nothing that comes after it', async (t) => {
  const { log, lines } = recorded()
  const memory = createMemoryAccount(64_000_000)
  const setup = await wire(t, {}, { log, memory })
  const heard = heardBy(setup)
  const head = `{"from":"one","at":${setup.today},"n":`
  const whole = `,"word":"told","id":"a","body":{"kind":"deliver","whose":{"tenant":"acme","caller":"ada"},"said":{"n":1,"long":"${long}"}}}`
  const texts = [whole.slice(0, -1), whole.slice(0, -400_000), whole.replace('"long"', '"long'), `${whole}}`]
  for (const [n, text] of texts.entries())
    await setup.store.publish('node:two', setup.sealer.seal('bus', ['two'], `${head}${n + 1}${text}`))
  await setup.store.publish('node:two', setup.sealer.seal('bus', ['two'], `${head}9${whole}`))
  await until('the whole one came', () => heard.length === 1)
  const unread = lines.filter(({ msg }) => String(msg).includes('could not be read'))
  t.equal(unread.length, texts.length, 'each was said in the log')
  await until('nothing is held', () => memory.ofTenant('acme').used === 0)
})

t.test(
  'thousands of short ones wait, too, until some are read, and no long one of theirs overtakes them',
  async (t) => {
    // When the time of a process that says nothing is over is up to the test, whatever the machine takes.
    const late = heldClock(2_000)
    const setup = await wire(t, { clock: { ...late, now: () => 1_000_000 } })
    const heard = heardBy(setup)
    const text = 'x'.repeat(3_600)
    // Answers to beats are lost.
    setup.lose = (channel) => channel === 'node:one'
    const told = Array.from({ length: 1_500 }, (_, n) =>
      setup.one.tell('two', 'deliver', { n, text: n === 1_400 ? long : text }, under('a'))
    )
    await until('many came', () => heard.length > 1_000)
    await turns()
    t.ok(heard.length < 1_200, `${heard.length} came`)
    const whenTold = Promise.all(told)
    await until('all came', () => {
      late.pass(2_000)
      return heard.length === 1_500
    })
    t.same(new Set(await whenTold), new Set([true]), 'a process that says nothing is waited for two seconds')
    t.same(
      heard,
      Array.from({ length: 1_500 }, (_, n) => n)
    )
  }
)

t.test('what is short is told whatever others hold, and asked', async (t) => {
  const memory = createMemoryAccount(1_000_000)
  const setup = await wire(t, { memory })
  const heard = heardBy(setup)
  setup.two.serve('request', async (question) => question)
  memory.share('globex', 'eve').move(1_000_000)
  t.equal(await setup.one.tell('two', 'deliver', { n: 1, long }, under('a')), false, 'the control')
  await t.rejects(setup.one.request('two', 'request', ada, { long }), { code: 'too_many' })
  t.equal(await setup.one.tell('two', 'deliver', { n: 2 }), true)
  t.equal(await setup.one.request('two', 'request', ada, 'short'), 'short')
  await until('it came', () => heard.length === 1)
  t.equal(memory.held, 1_000_000, 'they counted while they left')
})
