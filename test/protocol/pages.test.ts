// Walking the pages of a list gives each entry exactly once; a cursor is opaque, and only ours is one.

import fc from 'fast-check'
import t from 'tap'
import { GatewayError } from '../../src/protocol/messages.ts'
import { pageOf } from '../../src/protocol/naming.ts'

const self = (entry: string) => entry
const names = fc.uniqueArray(fc.string({ unit: 'grapheme' }), { maxLength: 60 })

function walk(list: readonly string[], size: number): string[][] {
  const pages: string[][] = []
  let cursor: string | undefined
  do {
    const page = pageOf(list, cursor, size, self)
    pages.push([...page.entries])
    cursor = page.nextCursor
  } while (cursor !== undefined && pages.length <= list.length)
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
    { numRuns: 500 }
  )
})

t.test('a cursor goes on after the entry that it names, whatever was added or taken away elsewhere', async (t) => {
  const before = ['a', 'b', 'c', 'd', 'e']
  const { nextCursor } = pageOf(before, undefined, 2, self)
  t.same(pageOf(before, nextCursor, 2, self).entries, ['c', 'd'])
  t.same(pageOf(['0', 'a', 'b', 'b2', 'c'], nextCursor, 2, self).entries, ['b2', 'c'])
  t.same(pageOf(['b'], nextCursor, 2, self), { entries: [], nextCursor: undefined })
  t.throws(
    () => pageOf(['a', 'c', 'd'], nextCursor, 2, self),
    { code: 'invalid_params' },
    'but not after one that is gone'
  )
})

t.test('anything else is refused, never taken for the beginning', async (t) => {
  const list = ['a', 'b', 'c']
  for (const cursor of [
    '',
    'a',
    'after:a',
    '0',
    '%',
    btoa('a'),
    btoa('after:z'),
    btoa('after:%'),
    btoa('before:a'),
    'ü',
    0,
    null,
    {},
    [],
    true
  ]) {
    t.throws(() => pageOf(list, cursor, 1, self), { code: 'invalid_params' }, JSON.stringify(cursor))
  }
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.base64String(), fc.anything()), (cursor) => {
      if (cursor === undefined) return true
      try {
        const { entries } = pageOf(list, cursor, 1, self)
        return entries[0] !== 'a'
      } catch (error) {
        return error instanceof GatewayError && error.code === 'invalid_params'
      }
    }),
    { numRuns: 2_000 }
  )
})

t.test('a cursor is printable, whatever the names are', async () => {
  fc.assert(
    fc.property(names, (list) =>
      /^[A-Za-z0-9+/=]*$/.test(pageOf([...list, 'x', 'y'], undefined, Math.max(1, list.length), self).nextCursor ?? '')
    )
  )
})
