// What a listen stream says: what was asked for and granted, nothing else, and nothing before the acknowledgment.

import t from 'tap'
import { upstreamName } from '../../src/protocol/messages.ts'
import type { Route } from '../../src/relay/catalog/catalog.ts'
import { listenRoutes } from '../../src/relay/subscriptions/listen-filter.ts'
import { until } from '../kit/until.ts'
import { tool } from './kit.ts'
import { ackOf, listenSetup, said } from './listen-kit.ts'

const all = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }

t.test('a filter that is none is refused, and unknown members are left out', async (t) => {
  const setup = await listenSetup(t, { one: {} })
  const wrong = [
    undefined,
    null,
    [],
    'all',
    { toolsListChanged: 'yes' },
    { promptsListChanged: 1 },
    { resourcesListChanged: null },
    { resourceSubscriptions: 'test://a' },
    { resourceSubscriptions: [1] },
    { resourceSubscriptions: Array.from({ length: 1_001 }, (_, n) => `test://${n}`) },
    { resourceSubscriptions: ['x'.repeat(8_193)] },
    { taskIds: {} }
  ]
  for (const filter of wrong)
    await t.rejects(setup.listener(filter).over, { code: 'invalid_params' }, JSON.stringify(filter)?.slice(0, 60))
  t.equal(setup.legs.length, 0, 'nothing has reached an upstream')
  const right = setup.listener({ ...all, messages: true, nested: { deep: [] } })
  await until('it is acknowledged', () => ackOf(right))
  t.same(ackOf(right), all)
})

t.test('an empty filter opens a stream that says nothing', async (t) => {
  const setup = await listenSetup(t, { one: { tools: [] } })
  const [empty, denied] = [setup.listener({}), setup.listener({ toolsListChanged: false })]
  await until('both are acknowledged', () => ackOf(empty) !== undefined && ackOf(denied) !== undefined)
  t.same([ackOf(empty), ackOf(denied)], [{}, {}])
  setup.relisted('one', 'tools')
  t.same([said(empty), said(denied)], [[], []])
})

t.test('only what was asked for is told, and only when the lists that the client sees have changed', async (t) => {
  const one = { tools: [tool('a')], prompts: [{ name: 'p' }] }
  const setup = await listenSetup(t, { one, two: {} })
  const [tools, everything, elsewhere] = [
    setup.listener({ toolsListChanged: true }),
    setup.listener(all),
    setup.listener(all, { endpoint: 'only-two' })
  ]
  await until('all are acknowledged', () => [tools, everything, elsewhere].every((each) => ackOf(each) !== undefined))
  setup.relisted('one')
  t.same(said(everything), [], 'listed anew, and the same as before')
  one.tools = [tool('a'), tool('b')]
  one.prompts = []
  setup.relisted('one', 'tools', 'prompts')
  t.same(said(tools), ['notifications/tools/list_changed'])
  t.same(said(everything).toSorted(), ['notifications/prompts/list_changed', 'notifications/tools/list_changed'])
  t.same(said(elsewhere), [], 'another endpoint has no part in it')
})

t.test('a storm of changes is told at once, and then ten times a second at most', async (t) => {
  const one = { tools: [tool('a')] }
  const setup = await listenSetup(t, { one })
  const ada = setup.listener(all)
  await until('it is acknowledged', () => ackOf(ada))
  const change = (name: string): void => {
    one.tools = [tool(name)]
    setup.relisted('one', 'tools')
  }
  change('b')
  t.equal(said(ada).length, 1, 'at once')
  for (let n = 0; n < 50; n++) change(`c${n}`)
  t.equal(said(ada).length, 1)
  setup.clock.move(100)
  t.equal(said(ada).length, 2, 'the last one is not lost')
  setup.clock.move(100)
  t.equal(said(ada).length, 2)
  change('d')
  t.equal(said(ada).length, 3)
})

t.test('a change that comes before the acknowledgment is told after it', async (t) => {
  const one = { tools: [tool('a')], silent: true }
  const setup = await listenSetup(t, { one, two: {} })
  const ada = setup.listener({ ...all, resourceSubscriptions: ['gatehouse://one/test://a'] })
  const leg = await until('the upstream is asked', () => setup.open('one')[0])
  one.tools = []
  setup.relisted('one', 'tools')
  leg.say('notifications/resources/updated', { uri: 'test://a' })
  t.same(ada.heard, [], 'what an upstream says before it has acknowledged does not count')
  leg.ack()
  leg.say('notifications/resources/updated', { uri: 'test://a' })
  await until('it is acknowledged', () => ackOf(ada))
  t.same(said(ada), ['notifications/resources/updated gatehouse://one/test://a', 'notifications/tools/list_changed'])
})

t.test('a caller has so many streams, and another one has others', async (t) => {
  const setup = await listenSetup(t, { one: {} })
  const streams = Array.from({ length: 100 }, () => setup.listener({}))
  await until('a hundred are open', () => streams.every((stream) => ackOf(stream) !== undefined))
  await t.rejects(setup.listener({}).over, { code: 'too_many' })
  const bob = setup.listener({}, { who: 'bob' })
  await until('bob has his own', () => ackOf(bob))
  streams[0]?.leave()
  await streams[0]?.over
  const third = setup.listener({})
  await until('there is a place again', () => ackOf(third))
})

t.test(
  'what is kept of the streams of a caller is weighed: URIs, ids, and the capabilities that pass on',
  async (t) => {
    const setup = await listenSetup(t, { one: {} })
    const long = (n: number): string => `test://${n}/${'\u00e9'.repeat(4_000)}`
    const streams = Array.from({ length: 5 }, (_, stream) =>
      setup.listener(
        { resourceSubscriptions: Array.from({ length: 100 }, (_, n) => long(stream * 100 + n)) },
        { endpoint: 'only-one' }
      )
    )
    await until('all are open', () => streams.every((stream) => ackOf(stream) !== undefined))
    const more = { resourceSubscriptions: Array.from({ length: 25 }, (_, n) => long(n)) }
    await t.rejects(setup.listener(more).over, { code: 'too_many', message: /4 MiB/ })
    await t.rejects(setup.listener({}, { capabilities: { elicitation: { padding: 'x'.repeat(200_000) } } }).over, {
      code: 'too_many'
    })
    const dropped = setup.listener(
      {},
      { capabilities: { extensions: { 'com.example/x': { padding: 'x'.repeat(200_000) } } } }
    )
    await until('what does not pass on weighs nothing', () => ackOf(dropped))
    streams[0]?.leave()
    await streams[0]?.over
    const again = setup.listener(more)
    await until('there is room again', () => ackOf(again))
  }
)

t.test('a caller cannot name resources without end', async (t) => {
  const setup = await listenSetup(t, { one: { silent: true } })
  const many = Array.from({ length: 1_000 }, (_, n) => `test://${n}`)
  const streams = Array.from({ length: 10 }, () =>
    setup.listener({ resourceSubscriptions: many }, { endpoint: 'only-one' })
  )
  await t.rejects(setup.listener({ resourceSubscriptions: ['test://more'] }).over, { code: 'too_many' })
  streams[0]?.leave()
  await streams[0]?.over
  setup.listener({ resourceSubscriptions: ['test://more'] }, { endpoint: 'only-one' })
  await until('there is room again', () =>
    setup.open('one').some(({ filter }) => JSON.stringify(filter).includes('test://more'))
  )
})

t.test('as long as somebody listens the upstreams of the endpoint are in use', async (t) => {
  const setup = await listenSetup(t, { one: {}, two: {} })
  const ada = setup.listener({})
  await until('it is acknowledged', () => ackOf(ada))
  setup.used.length = 0
  setup.clock.move(15_000)
  t.same(setup.used, ['one', 'two'])
  ada.leave()
  await ada.over
  setup.used.length = 0
  setup.clock.move(60_000)
  t.same(setup.used, [])
  t.same(setup.clock.waits, [], 'no timer is left')
})

t.test('where the resources of a stream lead is looked up one by one: many streams wait for the same lists', (t) => {
  const uris = Array.from({ length: 100 }, (_, at) => `test://${at}`)
  let lookups = 0
  const view = {
    resource(uri: string): Route {
      lookups++
      return { upstream: upstreamName('up'), name: uri }
    }
  }
  const steps = listenRoutes(view, { kinds: new Set(), uris, taskIds: [] }, () => undefined)
  const lookupsOfSteps: number[] = []
  let step = steps.next()
  for (; step.done !== true; step = steps.next()) {
    lookupsOfSteps.push(lookups)
    lookups = 0
  }
  t.equal(Math.max(...lookupsOfSteps), 1)
  t.same([...(step.value[0]?.uris.keys() ?? [])], uris)
  t.end()
})
