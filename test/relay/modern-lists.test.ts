// What an endpoint says of itself to a modern client, for how long that holds, and when the gateway looks again.

import t from 'tap'
import { GatewayError, type JsonObject } from '../../src/protocol/messages.ts'
import { until } from '../kit/until.ts'
import { type Double, modernSetup, type ModernSetup, tasksExtension } from './modern-kit.ts'
import { tool } from './kit.ts'

const ui = 'io.modelcontextprotocol/ui'
const hour = 3_600_000
const lists = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']

t.test('server/discover declares what works from end to end, and no more', async (t) => {
  const extensions = { [ui]: { a: 1 }, [tasksExtension]: {}, 'com.example/x': {} }
  const setup = await modernSetup(
    t,
    {
      one: {
        instructions: 'use it',
        capabilities: {
          tools: {},
          resources: { subscribe: true },
          experimental: { x: {} },
          extensions,
          tasks: { list: {} }
        }
      },
      old: {
        era: 'legacy',
        capabilities: {
          prompts: {},
          resources: { subscribe: true },
          tasks: { requests: { tools: { call: {} } } },
          extensions
        }
      }
    },
    {
      endpoints: {
        default: { upstreams: ['one', 'old'] },
        modern: { upstreams: ['one'], prefix: '' },
        legacy: { upstreams: ['old'] }
      }
    }
  )
  const discover = (endpoint: string) => setup.call('server/discover', {}, { endpoint })
  t.same(await discover('default'), {
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    instructions: '## one (its tools and prompts are named one__…)\n\nuse it',
    capabilities: {
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
      extensions: { [ui]: { a: 1 }, [tasksExtension]: {} }
    },
    ttlMs: 0,
    cacheScope: 'private'
  })
  t.match(await discover('modern'), { instructions: 'use it', capabilities: { experimental: { x: {} } } })
  t.same((await discover('legacy'))['capabilities'], {
    prompts: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    extensions: { [ui]: { a: 1 }, [tasksExtension]: {} }
  })
})

t.test('lists come in pages, in the shape of 2026-07-28', async (t) => {
  const setup = await modernSetup(t, {
    one: { tools: ['a', 'b'].map((name) => tool(name)) },
    old: {
      era: 'legacy',
      tools: ['c', 'd'].map((name) => tool(name, { execution: { taskSupport: 'required' }, icons: [] }))
    }
  })
  const { nextCursor, ...first } = await setup.call('tools/list', {})
  t.same(first, {
    resultType: 'complete',
    tools: [tool('one__a'), tool('one__b'), tool('old__c', { icons: [] })],
    ttlMs: 0,
    cacheScope: 'private'
  })
  t.same(await setup.call('tools/list', { cursor: nextCursor }), {
    resultType: 'complete',
    tools: [tool('old__d', { icons: [] })],
    ttlMs: 0,
    cacheScope: 'private'
  })
  await t.rejects(
    setup.call('tools/list', { cursor: '' }),
    { code: 'invalid_params' },
    'a cursor like any other, and none that we gave'
  )
})

t.test('the ttlMs of a merged list is the shortest that is left', async (t) => {
  const setup = await modernSetup(
    t,
    { one: { ttlMs: 60_000 }, two: { ttlMs: 2 * hour, capabilities: { tools: {} } }, old: { era: 'legacy' } },
    {
      endpoints: {
        default: { upstreams: ['one', 'two'] },
        two: { upstreams: ['two'] },
        mixed: { upstreams: ['one', 'old'] }
      }
    }
  )
  const ttl = async (method: string, endpoint: string) => (await setup.call(method, {}, { endpoint }))['ttlMs']
  for (const method of [...lists, 'server/discover']) t.equal(await ttl(method, 'default'), 60_000, method)
  t.equal(await ttl('tools/list', 'two'), hour, 'no longer than an hour')
  t.equal(await ttl('tools/list', 'mixed'), 0)
  setup.later(20_000)
  t.equal(await ttl('prompts/list', 'default'), 40_000)
  t.equal((await setup.call('prompts/list', {}))['cacheScope'], 'private')
})

const oneOf = { default: { upstreams: ['one'], prefix: '' } }
const namesIn = async (setup: ModernSetup) =>
  ((await setup.call('tools/list', {}))['tools'] as JsonObject[]).map(({ name }) => name)

t.test(
  'a list that is older than its server said is read again first; a call of a name that is known does not wait',
  async (t) => {
    const double: Double = {
      ttlMs: 30_000,
      tools: [tool('a')],
      answer: () => ({ resultType: 'complete', content: [] })
    }
    const setup = await modernSetup(t, { one: double }, { endpoints: oneOf })
    t.same(await namesIn(setup), ['a'])
    double.tools = [tool('b')]
    setup.later(29_000)
    t.same(await namesIn(setup), ['a'])
    t.equal(setup.requests('tools/list').length, 1)
    setup.later(2_000)
    t.same(await namesIn(setup), ['b'])
    t.equal(setup.requests('tools/list').length, 2)

    double.listing = () => new Promise(() => {})
    setup.later(31_000)
    t.ok(await setup.call('tools/call', { name: 'b' }))
    await until('it is read again', () => setup.requests('tools/list').length === 3)
    t.ok(await setup.call('tools/call', { name: 'b' }), 'a call does not wait for it')
    const late = namesIn(setup)
    await until('a list does', () => setup.clock.waits.includes(1_000))
    setup.later(1_000)
    t.same(await late, ['b'], 'but not for ever')
  }
)

t.test('where a list cannot be read again, the old one is served', async (t) => {
  const double: Double = { ttlMs: 30_000, tools: [tool('a')] }
  const setup = await modernSetup(t, { one: double }, { endpoints: oneOf })
  t.same(await namesIn(setup), ['a'])
  double.listing = () => Promise.reject(new GatewayError('upstream_lost', 'it broke'))
  setup.later(31_000)
  t.same(await namesIn(setup), ['a'])
  t.equal(setup.requests('tools/list').length, 2)
})

t.test('an unknown name has lists read again that are older than a second', async (t) => {
  const double: Double = { ttlMs: hour, tools: [tool('a')], answer: () => ({ resultType: 'complete', content: [] }) }
  const setup = await modernSetup(t, { one: double, old: { era: 'legacy' } })
  t.ok(await setup.call('tools/call', { name: 'one__a' }))
  double.tools = [tool('a'), tool('b')]
  await t.rejects(setup.call('tools/call', { name: 'one__b' }), { code: 'invalid_params' }, 'it was read just now')
  t.equal(setup.requests('tools/list').length, 2)
  setup.later(1_001)
  t.ok(await setup.call('tools/call', { name: 'one__b' }))
  t.equal(setup.requests('tools/list').length, 3, 'a server without hints is not asked')
  for (let n = 0; n < 20; n++)
    await t.rejects(setup.call('tools/call', { name: `one__c${n}` }), { code: 'invalid_params' })
  t.equal(setup.requests('tools/list').length, 3)
})

t.test(
  'where a server names no time, what counts is whether it reports changes; it is read once a second at most',
  async (t) => {
    const capabilities = { tools: { listChanged: true } }
    const told = await modernSetup(t, { one: { capabilities } })
    await told.call('tools/list', {})
    told.later(5_000)
    await told.call('tools/list', {})
    const untold = await modernSetup(t, { one: { capabilities: { tools: {} } } })
    for (let at = 0; at < 20; at++) await untold.call('tools/list', {})
    t.equal(untold.requests('tools/list').length, 1)
    untold.later(1_001)
    await until('the second reading', async () => {
      await untold.call('tools/list', {})
      return untold.requests('tools/list').length === 2
    })
    t.equal(told.requests('tools/list').length, 1)
    told.later(5_001)
    await told.call('tools/list', {})
    t.equal(told.requests('tools/list').length, 2, 'a report may be lost')
  }
)

t.test('lists of known upstreams do not depend on one that is not known yet', async (t) => {
  const setup = await modernSetup(t, { one: { tools: [tool('a')], ttlMs: hour }, two: { down: true } })
  t.same((await setup.call('tools/list', {}))['tools'], [tool('one__a')])
  t.equal((await setup.call('tools/list', {}))['ttlMs'], 0, 'it may come at any time')
  t.same((await setup.call('prompts/list', {}))['prompts'], [], 'it may have prompts')
})
