// What legacy servers list for clients that declare something, at the seam: which connections are opened for it, who
// sees what, and who is told.

import t from 'tap'
import type { ClientCapabilities } from '../../src/protocol/messages.ts'
import { until } from '../kit/until.ts'
import { relaySetup, stillClock, tool, type Connection, type Double, type Person, type RelaySetup } from './kit.ts'

const sampling: ClientCapabilities = { sampling: {} }

/** A server with a tool that asks. */
const picky = (): Double => ({
  tools: (declared) => [tool('plain'), ...(declared['sampling'] === undefined ? [] : [tool('asks')])]
})
const even = (): Double => ({ tools: [tool('plain')] })

const toolsOf = async (person: Person): Promise<string[]> => {
  const { tools } = await person.call('tools/list')
  return (tools as Array<{ name: string }>).map(({ name }) => name)
}

/**
 * The connections that were opened to read what somebody sees who declares this; none of a session's own before it
 * calls.
 */
const readingFor = ({ connections }: RelaySetup, name: string): Connection[] =>
  connections.filter(({ declared }) => declared[name] !== undefined)

t.test(
  'a client that declares a capability sees and calls the tools that a server has for it; no other client does',
  async (t) => {
    const setup = await relaySetup(t, { doubles: { one: picky() } })
    const [ada, bob, eve] = [
      await setup.person('ada', 'default', sampling),
      await setup.person('bob'),
      await setup.person('eve', 'default', { sampling: {}, roots: { listChanged: true } })
    ]
    t.same(
      [await toolsOf(ada), await toolsOf(bob), await toolsOf(eve)],
      [['one__plain', 'one__asks'], ['one__plain'], ['one__plain', 'one__asks']]
    )
    t.ok(await ada.call('tools/call', { name: 'one__asks' }))
    await t.rejects(bob.call('tools/call', { name: 'one__asks' }), { code: 'invalid_params', message: /Unknown tool/ })
    t.same(
      setup.requests('tools/call').map(({ params }) => params?.['name']),
      ['asks']
    )
  }
)

t.test('clients that declare the same capabilities share a view', async (t) => {
  const setup = await relaySetup(t, { doubles: { one: picky() } })
  for (const name of ['ada', 'bob', 'eve'])
    t.same(await toolsOf(await setup.person(name, 'default', sampling)), ['one__plain', 'one__asks'])
  t.equal(readingFor(setup, 'sampling').length, 1)
})

t.test(
  'a server that lists the same for everybody is read once more per profile, and that connection is closed',
  async (t) => {
    const clock = stillClock()
    const setup = await relaySetup(t, { doubles: { one: even() }, clock })
    const ada = await setup.person('ada', 'default', sampling)
    t.same(await toolsOf(ada), ['one__plain'])
    clock.move(4_999)
    await new Promise(setImmediate)
    t.notOk(readingFor(setup, 'sampling')[0]?.closed, 'servers may have more to say at first')
    clock.move(1)
    await until('it is let go of', () => readingFor(setup, 'sampling').every(({ closed }) => closed))
    ada.heard.length = 0 // There was nothing before.
    for (let at = 0; at < 5; at++) await toolsOf(ada)
    t.equal(readingFor(setup, 'sampling').length, 1)
    t.same(ada.heard, [], 'nothing changed for anybody')
    clock.move(10 * 60_000 + 1)
    await toolsOf(ada)
    await until('after ten minutes it is looked at again', () => readingFor(setup, 'sampling').length === 2)
  }
)

t.test(
  'where nothing differs, a change that everybody is told of is seen at once, and the profile is looked at again',
  async (t) => {
    const double: Double = { tools: () => tools }
    let tools = [tool('plain')]
    const clock = stillClock()
    const setup = await relaySetup(t, { doubles: { one: double }, clock })
    const ada = await setup.person('ada', 'default', sampling)
    t.same(await toolsOf(ada), ['one__plain'])
    ada.heard.length = 0
    clock.move(5_001)
    tools = [tool('plain'), tool('newer')]
    setup.connections
      .find(({ declared, closed }) => !closed && declared['sampling'] === undefined)
      ?.listChanged('tools')
    await until('it is told', () => ada.heard.some(({ method }) => method === 'notifications/tools/list_changed'))
    t.same(await toolsOf(ada), ['one__plain', 'one__newer'])
    t.equal(readingFor(setup, 'sampling').length, 1)
    clock.move(10_001)
    t.same(await toolsOf(ada), ['one__plain', 'one__newer'])
    await until('it is looked at again', () => readingFor(setup, 'sampling').length === 2)
    t.same(await toolsOf(ada), ['one__plain', 'one__newer'])
  }
)

t.test('a change in a view is reported to its clients, and a change of the shared listing to the others', async (t) => {
  let [plain, asks] = [[tool('plain')], [tool('asks')]]
  const setup = await relaySetup(t, {
    doubles: { one: { tools: (declared) => (declared['sampling'] === undefined ? plain : asks) } }
  })
  const [ada, bob] = [await setup.person('ada', 'default', sampling), await setup.person('bob')]
  t.same([await toolsOf(ada), await toolsOf(bob)], [['one__asks'], ['one__plain']])
  ada.heard.length = bob.heard.length = 0
  asks = [tool('asks'), tool('asks-more')]
  readingFor(setup, 'sampling')[0]?.listChanged('tools')
  await until('whoever sees it is told', () => ada.heard.length === 1)
  t.same([await toolsOf(ada), await toolsOf(bob), bob.heard], [['one__asks', 'one__asks-more'], ['one__plain'], []])
  plain = [tool('plain'), tool('plainer')]
  setup.connections.find(({ declared }) => declared['sampling'] === undefined)?.listChanged('tools')
  await until('the others are told', () => bob.heard.length === 1)
  t.same([await toolsOf(bob), ada.heard.length], [['one__plain', 'one__plainer'], 1])
})

t.test('where a view cannot be read, its clients see the shared listing', async (t) => {
  const one = picky()
  const setup = await relaySetup(t, { doubles: { one } })
  t.same(await toolsOf(await setup.person('bob')), ['one__plain'])
  one.listing = (_request, { declared }) => {
    if (declared['sampling'] !== undefined) throw new Error('not for you')
  }
  t.same(await toolsOf(await setup.person('ada', 'default', sampling)), ['one__plain'])
  t.equal(readingFor(setup, 'sampling').length, 1)
})

t.test('a change that a server reports just after it was initialized is seen', async (t) => {
  let registered = false
  const clock = stillClock()
  const setup = await relaySetup(t, {
    doubles: {
      one: {
        tools: (declared) => [
          tool('plain'),
          ...(declared['sampling'] === undefined || !registered ? [] : [tool('asks')])
        ]
      }
    },
    clock
  })
  const ada = await setup.person('ada', 'default', sampling)
  t.same(await toolsOf(ada), ['one__plain'])
  ada.heard.length = 0
  registered = true
  readingFor(setup, 'sampling')[0]?.listChanged('tools')
  await until('the client is told', () => ada.heard.length === 1)
  t.same(await toolsOf(ada), ['one__plain', 'one__asks'])
  clock.move(5_001)
  await new Promise(setImmediate)
  t.same(
    readingFor(setup, 'sampling').map(({ closed }) => closed),
    [false],
    'it is followed from now on'
  )
})

t.test('a change that the own connection of a session reports has its view read again', async (t) => {
  let more = false
  const clock = stillClock()
  const setup = await relaySetup(t, {
    doubles: {
      one: {
        tools: (declared) => [tool('plain'), ...(declared['sampling'] === undefined || !more ? [] : [tool('asks')])]
      }
    },
    clock
  })
  const [ada, bob] = [await setup.person('ada', 'default', sampling), await setup.person('bob', 'default', sampling)]
  t.same([await toolsOf(ada), await toolsOf(bob)], [['one__plain'], ['one__plain']])
  await ada.call('tools/call', { name: 'one__plain' })
  clock.move(5_001)
  more = true
  clock.move(10_001)
  setup.connections.at(-1)?.listChanged('tools')
  await until('others who declare the same see it', async () => (await toolsOf(bob)).includes('one__asks'))
  t.same(await toolsOf(ada), ['one__plain', 'one__asks'])
})

t.test('connections that several sessions share declare nothing, so they have one view', async (t) => {
  for (const isolation of ['principal', 'shared']) {
    const setup = await relaySetup(t, { doubles: { one: picky() }, isolation })
    t.same(await toolsOf(await setup.person('ada', 'default', sampling)), ['one__plain'], isolation)
    t.equal(readingFor(setup, 'sampling').length, 0)
  }
})

t.test(
  'one person has twelve views of an upstream at a time, and all persons sixteen; the others see what everybody sees',
  async (t) => {
    const clock = stillClock()
    const setup = await relaySetup(t, {
      doubles: {
        one: { tools: (declared) => [tool(`for-${Object.keys(declared['experimental'] ?? {}).join() || 'all'}`)] }
      },
      endpoints: { default: { upstreams: ['one'], prefix: '' } },
      clock
    })
    const inventive = async (who: string, what: string): Promise<string[]> => {
      clock.move(1_000) // All views of an upstream have one pace.
      return await toolsOf(await setup.person(who, 'default', { experimental: { [what]: {} } }))
    }
    for (let at = 1; at <= 12; at++) t.same(await inventive('ada', `ada${at}`), [`for-ada${at}`])
    t.same(await inventive('ada', 'ada13'), ['for-all'])
    t.same(await inventive('ada', 'ada1'), ['for-ada1'], 'what is there stays')
    for (const who of ['bob', 'eve'])
      for (const at of [1, 2]) t.same(await inventive(who, `${who}${at}`), [`for-${who}${at}`])
    t.same(await inventive('gil', 'gil1'), ['for-all'])
    clock.move(60_001)
    t.same(await inventive('ada', 'ada13'), ['for-ada13'], 'those of the same person that rest make room')
    t.same(await inventive('gil', 'gil1'), ['for-gil1'], 'and those of one who has more')
    await until('their connections are closed', () => setup.connections.filter(({ closed }) => closed).length === 2)
  }
)

t.test(
  'one person has 48 views of all upstreams of a tenant, and all persons 64; those that rest make room for others',
  async (t) => {
    const clock = stillClock()
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
    const double = (): Double => ({
      tools: (declared) => [tool(`for-${Object.keys(declared['experimental'] ?? {}).join() || 'all'}`)]
    })
    const setup = await relaySetup(t, {
      doubles: Object.fromEntries(names.map((name) => [name, double()])),
      endpoints: Object.fromEntries(names.map((name) => [name, { upstreams: [name], prefix: '' }])),
      clock
    })
    /** How many of the upstreams have a view for this. */
    const viewsOf = async (who: string, what: string): Promise<number> => {
      clock.move(1_000) // All views of an upstream have one pace.
      const lists = await Promise.all(
        names.map(async (name) => toolsOf(await setup.person(who, name, { experimental: { [what]: {} } })))
      )
      t.equal(lists.flat().length, names.length)
      return lists.flat().filter((name) => name === `for-${what}`).length
    }
    for (let at = 1; at <= 6; at++) t.equal(await viewsOf('ada', `ada${at}`), 8)
    t.equal(await viewsOf('ada', 'ada7'), 0, 'one person has no more')
    t.same([await viewsOf('bob', 'bob1'), await viewsOf('eve', 'eve1')], [8, 8], 'others have what is left')
    t.equal(await viewsOf('gil', 'gil1'), 0, 'while all are used there is no room')
    clock.move(60_001)
    t.equal(await viewsOf('gil', 'gil1'), 8, 'views that rest make room, on whichever upstream')
    t.same([await viewsOf('bob', 'bob1'), await viewsOf('eve', 'eve1')], [8, 8], 'those of whoever has most')
    await until('their connections are closed', () => setup.connections.filter(({ closed }) => closed).length === 8)
    clock.move(60_001)
    await until('they make room for oneself, too', async () => (await viewsOf('ada', 'ada7')) === 8)
  }
)

t.test('whose view was evicted does not go on seeing what that showed last', async (t) => {
  const clock = stillClock()
  const special = new Set(Array.from({ length: 12 }, (_, at) => `x${at}`))
  const tools: Double['tools'] = (declared) => [
    tool('plain'),
    ...Object.keys(declared['experimental'] ?? {}).flatMap((what) => (special.has(what) ? [tool(`for-${what}`)] : []))
  ]
  const endpoints = { default: { upstreams: ['one'], prefix: '' } }
  const setup = await relaySetup(t, { doubles: { one: { tools } }, endpoints, clock })
  const listedFor = async (what: string): Promise<string[]> => {
    clock.move(1_000) // All views of an upstream have one pace.
    return await toolsOf(await setup.person('ada', 'default', { experimental: { [what]: {} } }))
  }
  // Twice, because each new view has the catalogs of all built anew.
  for (const what of [...special, ...special])
    t.same(await listedFor(what), ['plain', `for-${what}`], 'one person has twelve')
  clock.move(60_001)
  t.same(await listedFor('nothing'), ['plain'], 'the view that was used least lately makes room')
  t.same(await listedFor('x1'), ['plain', 'for-x1'], 'others show what they did')
  special.delete('x0')
  t.same(await listedFor('x0'), ['plain'])
})

t.test('views that are the same as the shared listing are evicted at once', async (t) => {
  const clock = stillClock()
  const setup = await relaySetup(t, {
    doubles: { one: picky() },
    endpoints: { default: { upstreams: ['one'], prefix: '' } },
    clock
  })
  for (let at = 0; at < 15; at++, clock.move(1_000))
    t.same(await toolsOf(await setup.person('ada', 'default', { experimental: { [`x${at}`]: {} } })), ['plain'])
  t.same(await toolsOf(await setup.person('ada', 'default', sampling)), ['plain', 'asks'])
})

t.test('capabilities that are too large have no view', async (t) => {
  const setup = await relaySetup(t, {
    doubles: { one: picky() },
    endpoints: { default: { upstreams: ['one'], prefix: '' } }
  })
  t.same(
    await toolsOf(await setup.person('ada', 'default', { ...sampling, experimental: { x: { y: 'z'.repeat(2_100) } } })),
    ['plain']
  )
  t.same(
    await toolsOf(await setup.person('bob', 'default', { ...sampling, experimental: { x: { y: 'z'.repeat(1_000) } } })),
    ['plain', 'asks']
  )
})

t.test('an upstream that the configuration no longer names has no views', async (t) => {
  const setup = await relaySetup(t, { doubles: { one: picky() } })
  const ada = await setup.person('ada', 'default', sampling)
  t.same(await toolsOf(ada), ['one__plain', 'one__asks'])
  const open = setup.connections.length
  setup.relay.retain(new Set())
  t.same(await toolsOf(ada), [])
  t.equal(setup.connections.length, open)
})
