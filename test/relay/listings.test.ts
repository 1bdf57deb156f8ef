// Listings kept and followed: by whom changes are seen, what an outage does, what a restart knows.

import pino from 'pino'
import t from 'tap'
import { listingKey } from '../../src/store/keys.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { until } from '../kit/until.ts'
import { relaySetup, stillClock, tool, type Double, type Person, type RelaySetup } from './kit.ts'

const toolsOf = async (person: Person) =>
  ((await person.call('tools/list'))['tools'] as Array<{ name: string }>).map(({ name }) => name)

/** Until what the only upstream lists is there for the next process. */
async function isKept({ store, snapshot }: RelaySetup): Promise<void> {
  const definition = [...snapshot.tenants.values()][0]?.upstreams.values().next().value
  if (definition === undefined) throw new Error('no upstream')
  await until('the listing is kept', () => store.get(listingKey(definition.hash)))
}

t.test('isolation decides which sessions share a connection', async (t) => {
  for (const [isolation, expected] of [
    ['session', 3],
    ['principal', 2],
    ['shared', 1]
  ] as const) {
    const setup = await relaySetup(t, { doubles: { one: { tools: [tool('x')] } }, isolation })
    const people = [await setup.person('ada'), await setup.person('ada'), await setup.person('bob')]
    await Promise.all(
      people.flatMap((person) => [
        person.call('tools/call', { name: 'one__x' }),
        person.call('tools/call', { name: 'one__x' })
      ])
    )
    const used = setup.connections.filter(({ requests }) => requests.some(({ method }) => method === 'tools/call'))
    t.equal(used.length, expected, isolation)
  }
})

t.test('a change of the shared listing is reported once to every session that sees it', async (t) => {
  const one: Double = { tools: [tool('x')] }
  const setup = await relaySetup(t, {
    doubles: { one, two: {} },
    endpoints: { default: { upstreams: ['one', 'two'] }, other: { upstreams: ['two'] } }
  })
  const [ada, bob, eve] = [await setup.person('ada'), await setup.person('bob'), await setup.person('eve', 'other')]
  t.same(await toolsOf(ada), ['one__x'])
  t.same(await toolsOf(eve), [])
  for (const { heard } of [ada, bob, eve]) heard.length = 0 // What they were told when the upstreams became known.
  one.tools = [tool('x'), tool('y')]
  for (let n = 0; n < 5; n++) setup.connections.find(({ upstream }) => upstream === 'one')?.listChanged('tools')
  await until('both have heard', () => ada.heard.length > 0 && bob.heard.length > 0)
  t.same(await toolsOf(ada), ['one__x', 'one__y'])
  for (const person of [ada, bob]) t.same(person.heard, [{ method: 'notifications/tools/list_changed' }])
  t.same(eve.heard, [], 'not to a session of an endpoint without it')

  const asked = setup.requests('tools/list').length
  setup.connections.find(({ upstream }) => upstream === 'one')?.listChanged('tools')
  await until('the list was read again', () => setup.requests('tools/list').length > asked)
  await until('they are told, although they see the same', () => ada.heard.length > 1 && bob.heard.length > 1)
  t.same([ada.heard.length, bob.heard.length, eve.heard], [2, 2, []])
})

t.test("a change that only one session's connection reports is seen by that session alone", async (t) => {
  const one: Double = { tools: [tool('x')], answer: () => ({}) }
  const setup = await relaySetup(t, { doubles: { one } })
  const [ada, bob] = [await setup.person('ada'), await setup.person('bob')]
  await ada.call('tools/call', { name: 'one__x' })
  for (const { heard } of [ada, bob]) heard.length = 0
  const hers = setup.connections.find(({ requests }) => requests.some(({ method }) => method === 'tools/call'))
  one.tools = [tool('x'), tool('hers')]
  hers?.listChanged('tools')
  await until('she has heard', () => ada.heard.length > 0)
  t.same(await toolsOf(ada), ['one__x', 'one__hers'])
  t.same(await toolsOf(bob), ['one__x'])
  t.same(bob.heard, [])
  await t.rejects(
    bob.call('tools/call', { name: 'one__hers' }),
    { code: 'invalid_params' },
    'and what is not in his list he cannot call'
  )

  hers?.die()
  await until('her view is the common one again', async () => (await toolsOf(ada)).length === 1)
  t.equal(ada.heard.length, 2, 'which is a change too')
})

t.test('an upstream that is down is left out, tried again, and reported when it is back', async (t) => {
  const one: Double = { tools: [tool('x')], down: true }
  const setup = await relaySetup(t, { doubles: { one, two: { tools: [tool('y')] } } })
  const ada = await setup.person()
  t.same(await toolsOf(ada), ['two__y'], 'the other upstream goes on')
  t.ok(setup.log.some(({ msg, upstream }) => upstream === 'one' && String(msg).startsWith('upstream is down')))
  one.down = false
  await until('it is back', async () => (await toolsOf(ada)).length === 2)
  t.match(ada.heard, [{ method: 'notifications/tools/list_changed' }])
  const back = setup.log.filter(({ msg }) => msg === 'upstream is back')
  t.match(back, [{ level: 30, upstream: 'one', tenant: 'acme', tools: 1 }], 'one line, and none of the other')
  t.equal(back.length, 1)
})

t.test('a restart knows the lists before any upstream has answered', async (t) => {
  const store = await createSqliteStore({ path: ':memory:', clock: { now: Date.now }, log: pino({ level: 'silent' }) })
  t.teardown(() => store.close())
  const doubles = { one: { tools: [tool('x')], instructions: 'Be kind.' } as Double }
  const first = await relaySetup(t, { doubles, store })
  t.same(await toolsOf(await first.person()), ['one__x'])
  await isKept(first)
  first.relay.close()

  doubles.one.down = true
  const second = await relaySetup(t, { doubles, store })
  const ada = await second.person()
  t.same(await toolsOf(ada), ['one__x'])
  await t.rejects(
    ada.call('tools/call', { name: 'one__x' }),
    { code: 'upstream_unavailable', message: /^((?!127\.0\.0\.1).)*$/ },
    'while a call says what is wrong, though not where the upstream is'
  )
})

t.test('what a limit of the gateway keeps from being read is not hidden, unlike what an outage does', async (t) => {
  for (const [down, expected] of [
    ['too_many', ['one__x']],
    [true, []]
  ] as const) {
    const clock = stillClock()
    const store = await createSqliteStore({ path: ':memory:', clock, log: pino({ level: 'silent' }) })
    t.teardown(() => store.close())
    const one: Double = { tools: [tool('x')] }
    const before = await relaySetup(t, { doubles: { one }, store, clock })
    t.same(await toolsOf(await before.person()), ['one__x'])
    await isKept(before)
    before.relay.close()

    one.down = down
    const setup = await relaySetup(t, { doubles: { one }, store, clock })
    const ada = await setup.person()
    t.same(await toolsOf(ada), ['one__x'])
    await until('several failures', () => {
      clock.move(10_000)
      return setup.log.filter(({ failures }) => failures !== undefined).length > 6
    })
    t.same(await toolsOf(ada), expected)
  }
})

t.test('the end of a session ends its connections, also one that was just being made', async (t) => {
  const setup = await relaySetup(t, { doubles: { one: { tools: [tool('x')] } } })
  const ada = await setup.person()
  await ada.call('tools/call', { name: 'one__x' })
  const open = () => setup.connections.filter(({ closed }) => !closed).length
  t.equal(open(), 2)
  await ada.end()
  await until('only the listing is left', () => open() === 1)

  const bob = await setup.person('bob')
  const racing = bob.call('tools/call', { name: 'one__x' }).catch(() => {})
  await bob.end()
  await racing
  await until('nothing is left behind', () => open() === 1)
})
