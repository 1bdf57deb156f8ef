// What is learned of tools for the headers of calls: whole lists only, and no more than fits.

import t from 'tap'
import { createSchemas } from '../../src/upstream/modern/schemas.ts'

const tool = (name: string, header = 'Region', key = 'region') => ({ name, inputSchema: { type: 'object', properties: { [key]: { type: 'string', 'x-mcp-header': header } } } })
const args = { region: 'eu' }
const headers = ['Mcp-Param-Region', 'eu']

t.test('a list counts when all of its pages have been read', async (t) => {
  const schemas = createSchemas()
  schemas.learn({ tools: [tool('one')], nextCursor: 'a' }, undefined)
  t.same([schemas.known, schemas.headers('one', args)], [false, []])
  schemas.learn({ tools: [tool('two')] }, 'a')
  t.same([schemas.known, schemas.headers('one', args), schemas.headers('two', args)], [true, headers, headers])
  schemas.learn({ tools: [tool('two')], nextCursor: '' }, undefined)
  t.same(schemas.headers('one', args), headers, 'until then the former one does')
  schemas.learn({ tools: [] }, '')
  t.same([schemas.headers('one', args), schemas.headers('two', args)], [[], headers], 'a tool that is gone is forgotten')
})

t.test('two who read at the same time make one list', async (t) => {
  const schemas = createSchemas()
  for (const _reader of [1, 2]) schemas.learn({ tools: [tool('one')], nextCursor: 'a' }, undefined)
  for (const _reader of [1, 2]) schemas.learn({ tools: [tool('two')], nextCursor: 'b' }, 'a')
  for (const _reader of [1, 2]) schemas.learn({ tools: [] }, 'b')
  t.same(['one', 'two'].map((name) => schemas.headers(name, args)), [headers, headers])
  schemas.learn({ tools: [] }, 'elsewhere')
  t.same(schemas.headers('one', args), headers, 'a page that nobody waits for changes nothing')
})

t.test('where the reader stops, the list is what there was', async (t) => {
  const schemas = createSchemas()
  schemas.learn({ tools: [tool('one')], nextCursor: 'a' }, undefined)
  schemas.stop('other')
  t.equal(schemas.known, false)
  schemas.stop('a')
  t.same(schemas.headers('one', args), headers)
})

t.test('of a list without end only so much is kept, and the next one has room again', async (t) => {
  const schemas = createSchemas()
  const long = (n: number) => tool(`tool-${n}`, 'Region', String(n).padEnd(1_000, 'k'))
  const has = (n: number): boolean => schemas.headers(`tool-${n}`, { [String(n).padEnd(1_000, 'k')]: 'eu' }).length > 0
  for (let page = 0; page < 30; page++) schemas.learn({ tools: Array.from({ length: 100 }, (_, n) => long(page * 100 + n)), nextCursor: `p${page + 1}` }, page === 0 ? undefined : `p${page}`)
  schemas.stop('p30')
  const kept = Array.from({ length: 3_000 }, (_, n) => has(n)).filter(Boolean).length
  t.ok(kept > 900 && kept < 1_049, `${kept} tools of 1000 characters`)
  schemas.learn({ tools: [long(2_999)] }, undefined)
  t.same([has(2_999), has(0)], [true, false])
})
