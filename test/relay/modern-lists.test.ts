// What an endpoint says of itself to a modern client, for how long that holds, and when the gateway looks again.

import t from 'tap'
import type { JsonObject } from '../../src/protocol/messages.ts'
import { until } from '../kit/until.ts'
import { modernRoom, tasksExtension, tool } from './modern-kit.ts'

const ui = 'io.modelcontextprotocol/ui'
const hour = 3_600_000
const lists = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']

t.test('discovery says what works from end to end, and no more', async (t) => {
  const extensions = { [ui]: { a: 1 }, [tasksExtension]: {}, 'com.example/x': {} }
  const room = await modernRoom(t, {
    one: { instructions: 'use it', capabilities: { tools: {}, resources: { subscribe: true }, experimental: { x: {} }, extensions, tasks: { list: {} } } },
    old: { era: 'legacy', capabilities: { prompts: {}, resources: { subscribe: true }, tasks: { requests: { tools: { call: {} } } }, extensions } }
  }, { endpoints: { default: { upstreams: ['one', 'old'] }, modern: { upstreams: ['one'], prefix: '' }, legacy: { upstreams: ['old'] } } })
  const discover = (endpoint: string) => room.call('server/discover', {}, { endpoint })
  t.same(await discover('default'), {
    resultType: 'complete', supportedVersions: ['2026-07-28'], instructions: '## one (its tools and prompts are named one__…)\n\nuse it',
    capabilities: { tools: { listChanged: true }, prompts: { listChanged: true }, resources: { listChanged: true, subscribe: true }, extensions: { [ui]: { a: 1 }, [tasksExtension]: {} } },
    ttlMs: 0, cacheScope: 'private'
  })
  t.match(await discover('modern'), { instructions: 'use it', capabilities: { experimental: { x: {} } } })
  t.same((await discover('legacy'))['capabilities'], { prompts: { listChanged: true }, resources: { subscribe: true, listChanged: true }, extensions: { [ui]: { a: 1 }, [tasksExtension]: {} } })
})

t.test('lists come in pages, in the shape of 2026-07-28', async (t) => {
  const room = await modernRoom(t, { one: { tools: ['a', 'b'].map((name) => tool(name)) }, old: { era: 'legacy', tools: ['c', 'd'].map((name) => tool(name, { execution: { taskSupport: 'required' }, icons: [] })) } })
  const { nextCursor, ...first } = await room.call('tools/list', {})
  t.same(first, { resultType: 'complete', tools: [tool('one__a'), tool('one__b'), tool('old__c', { icons: [] })], ttlMs: 0, cacheScope: 'private' })
  t.same(await room.call('tools/list', { cursor: nextCursor }), { resultType: 'complete', tools: [tool('old__d', { icons: [] })], ttlMs: 0, cacheScope: 'private' })
  await t.rejects(room.call('tools/list', { cursor: '' }), { code: 'invalid_params' }, 'a cursor like any other, and none that we gave')
})

t.test('lists hold for as long as the shortest of what is left', async (t) => {
  const room = await modernRoom(t, { one: { ttlMs: 60_000 }, two: { ttlMs: 2 * hour, capabilities: { tools: {} } }, old: { era: 'legacy' } }, { endpoints: { default: { upstreams: ['one', 'two'] }, two: { upstreams: ['two'] }, mixed: { upstreams: ['one', 'old'] } } })
  const ttl = async (method: string, endpoint: string) => (await room.call(method, {}, { endpoint }))['ttlMs']
  for (const method of [...lists, 'server/discover']) t.equal(await ttl(method, 'default'), 60_000, method)
  t.equal(await ttl('tools/list', 'two'), hour, 'no longer than an hour')
  t.equal(await ttl('tools/list', 'mixed'), 0)
  room.later(20_000)
  t.equal(await ttl('prompts/list', 'default'), 40_000)
  t.equal((await room.call('prompts/list', {}))['cacheScope'], 'private')
})

t.test('a listing that is older than its server said is read again when it is used, off the path of the call', async (t) => {
  const double = { ttlMs: 30_000, tools: [tool('a')] as JsonObject[] }
  const room = await modernRoom(t, { one: double }, { endpoints: { default: { upstreams: ['one'], prefix: '' } } })
  const names = async () => ((await room.call('tools/list', {}))['tools'] as JsonObject[]).map(({ name }) => name)
  t.same(await names(), ['a'])
  double.tools = [tool('b')]
  room.later(29_000)
  t.same(await names(), ['a'])
  t.equal(room.requests('tools/list').length, 1)
  room.later(2_000)
  t.same(await names(), ['a'], 'nobody waits')
  await until('the new list', async () => (await names()).includes('b'))
  t.equal(room.requests('tools/list').length, 2)
})

t.test('where a server names no time, what counts is whether it reports changes; it is read once a second at most', async (t) => {
  const capabilities = { tools: { listChanged: true } }
  const told = await modernRoom(t, { one: { capabilities } })
  await told.call('tools/list', {})
  told.later(5_000)
  await told.call('tools/list', {})
  const untold = await modernRoom(t, { one: { capabilities: { tools: {} } } })
  for (let at = 0; at < 20; at++) await untold.call('tools/list', {})
  t.equal(untold.requests('tools/list').length, 1)
  untold.later(1_001)
  await until('the second reading', async () => {
    await untold.call('tools/list', {})
    return untold.requests('tools/list').length === 2
  })
  t.equal(told.requests('tools/list').length, 1)
})

t.test('an upstream that is not known yet takes nothing away from the others', async (t) => {
  const room = await modernRoom(t, { one: { tools: [tool('a')], ttlMs: hour }, two: { down: true } })
  t.same((await room.call('tools/list', {}))['tools'], [tool('one__a')])
  t.equal((await room.call('tools/list', {}))['ttlMs'], 0, 'it may come at any time')
  t.same((await room.call('prompts/list', {}))['prompts'], [], 'it may have prompts')
})
