// Walking the pages of a list gives each entry exactly once.

import fc from 'fast-check'
import t from 'tap'
import { pageOf } from '../../src/protocol/naming.ts'
import { runs } from '../kit/runs.ts'

const self = (entry: string) => entry
const names = fc.uniqueArray(fc.string({ unit: 'grapheme' }), { maxLength: 60 })

function walk(list: readonly string[], size: number): string[][] {
  const pages: string[][] = []
  let last: string | undefined
  do {
    const page = pageOf(list, last, size, self)
    pages.push([...page.entries])
    last = page.last
  } while (last !== undefined && pages.length <= list.length)
  return pages
}

t.test('all pages together are the list, in its order, none of them too long or needlessly there', async () => {
  fc.assert(
    fc.property(names, fc.integer({ min: 1, max: 20 }), (list, size) => {
      const pages = walk(list, size)
      return (
        JSON.stringify(pages.flat()) === JSON.stringify(list) &&
        pages.every(({ length }) => length <= size) &&
        pages.length === Math.max(1, Math.ceil(list.length / size))
      )
    }),
    { numRuns: runs(500) }
  )
})

t.test('a page goes on after the entry that it is told, whatever was added or taken away elsewhere', async (t) => {
  const before = ['a', 'b', 'c', 'd', 'e']
  const { last } = pageOf(before, undefined, 2, self)
  t.same(pageOf(before, last, 2, self).entries, ['c', 'd'])
  t.same(pageOf(['0', 'a', 'b', 'b2', 'c'], last, 2, self).entries, ['b2', 'c'])
  t.same(pageOf(['b'], last, 2, self), { entries: [], start: 1, last: undefined })
  t.throws(() => pageOf(['a', 'c', 'd'], last, 2, self), { code: 'invalid_params' }, 'but not after one that is gone')
})
