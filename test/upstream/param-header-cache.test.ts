// What is learned of tools for the headers of calls: complete lists only, within a limit.

import t from 'tap'
import { createParamHeaderCache } from '../../src/upstream/modern/param-header-cache.ts'

const tool = (name: string, header = 'Region', key = 'region') => ({
  name,
  inputSchema: { type: 'object', properties: { [key]: { type: 'string', 'x-mcp-header': header } } }
})
const args = { region: 'eu' }
const headers = ['Mcp-Param-Region', 'eu']

t.test('a list counts when all of its pages have been read', async (t) => {
  const cache = createParamHeaderCache()
  cache.learn({ tools: [tool('one')], nextCursor: 'a' }, undefined)
  t.same([cache.known, cache.headers('one', args)], [false, []])
  cache.learn({ tools: [tool('two')] }, 'a')
  t.same([cache.known, cache.headers('one', args), cache.headers('two', args)], [true, headers, headers])
  cache.learn({ tools: [tool('two')], nextCursor: '' }, undefined)
  t.same(cache.headers('one', args), headers, 'until then the former one does')
  cache.learn({ tools: [] }, '')
  t.same([cache.headers('one', args), cache.headers('two', args)], [[], headers], 'a tool that is gone is forgotten')
})

t.test('two that read at the same time make one list', async (t) => {
  const cache = createParamHeaderCache()
  for (const _reader of [1, 2]) cache.learn({ tools: [tool('one')], nextCursor: 'a' }, undefined)
  for (const _reader of [1, 2]) cache.learn({ tools: [tool('two')], nextCursor: 'b' }, 'a')
  for (const _reader of [1, 2]) cache.learn({ tools: [] }, 'b')
  t.same(
    ['one', 'two'].map((name) => cache.headers(name, args)),
    [headers, headers]
  )
  cache.learn({ tools: [] }, 'elsewhere')
  t.same(cache.headers('one', args), headers, 'a page that nobody waits for changes nothing')
})

t.test('where the reader stops, the list is what there was', async (t) => {
  const cache = createParamHeaderCache()
  cache.learn({ tools: [tool('one')], nextCursor: 'a' }, undefined)
  cache.stop('other')
  t.equal(cache.known, false)
  cache.stop('a')
  t.same(cache.headers('one', args), headers)
})

t.test('a cursor that is too long ends the list', (t) => {
  for (const [length, isOver] of [
    [8_192, false],
    [8_193, true]
  ] as const) {
    const cache = createParamHeaderCache()
    cache.learn({ tools: [tool('one')], nextCursor: 'x'.repeat(length) }, undefined)
    t.equal(cache.known, isOver)
  }
  t.end()
})

t.test('of an endless list only so much is kept, and the next list starts anew', async (t) => {
  const cache = createParamHeaderCache()
  const long = (n: number) => tool(`tool-${n}`, 'Region', String(n).padEnd(1_000, 'k'))
  const has = (n: number): boolean => cache.headers(`tool-${n}`, { [String(n).padEnd(1_000, 'k')]: 'eu' }).length > 0
  for (let page = 0; page < 30; page++)
    cache.learn(
      { tools: Array.from({ length: 100 }, (_, n) => long(page * 100 + n)), nextCursor: `p${page + 1}` },
      page === 0 ? undefined : `p${page}`
    )
  cache.stop('p30')
  const kept = Array.from({ length: 3_000 }, (_, n) => has(n)).filter(Boolean).length
  t.ok(kept > 900 && kept < 1_049, `${kept} tools of 1000 characters`)
  cache.learn({ tools: [long(2_999)] }, undefined)
  t.same([has(2_999), has(0)], [true, false])
})
