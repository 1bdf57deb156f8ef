// The table of calls in flight finds what a Map finds, and lets go of what was removed from it.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import t from 'tap'
import { createOpenTable } from '../../src/limits/open-table.ts'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as (options: { type: 'minor' }) => void

t.test('it holds what a Map holds, whatever is set and deleted', async () => {
  const id = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 1, max: 2 ** 31 - 1 }))
  const step = fc.record({ id, deletes: fc.boolean(), member: fc.string() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const [table, map] = [createOpenTable<string>(), new Map<number, string>()]
      for (const { id, deletes, member } of steps) {
        if (deletes && table.delete(id) !== map.delete(id)) return false
        if (!deletes) {
          table.set(id, member)
          map.set(id, member)
        }
        if (table.size !== map.size || table.get(id) !== map.get(id) || table.has(id) !== map.has(id)) return false
      }
      return [...table].toSorted().join() === [...map.values()].toSorted().join()
    })
  )
})

t.test('what a server sends as an id finds nothing that it is not', async (t) => {
  const table = createOpenTable<string>()
  table.set(5, 'five')
  for (const id of ['5', 5.5, 2 ** 32 + 5, -5, null, undefined, {}, [5], true]) {
    t.equal(table.get(id as number), undefined, JSON.stringify(id))
    t.equal(table.delete(id as number), false, JSON.stringify(id))
  }
  t.equal(table.get(5), 'five')
})

/** With thirty calls in flight at all times, as many as come and go. @returns bytes of each that survive */
function survivingBytes(table: { set(id: number, member: object): unknown; delete(id: number): unknown }): number {
  const inFlight = 30
  const [calls, size] = [6_000, 1_000]
  const run = (from: number): void => {
    for (let id = from; id < from + calls; id++) {
      table.set(id, { body: Array.from({ length: size / 8 }, () => id) })
      table.delete(id - inFlight)
      if (id % 100 === 0) gc({ type: 'minor' })
    }
  }
  run(1)
  // As at any pause: what the table has by now becomes old.
  for (let times = 0; times < 3; times++) gc({ type: 'minor' })
  const before = process.memoryUsage().heapUsed
  run(calls + 1)
  gc({ type: 'minor' })
  gc({ type: 'minor' })
  return (process.memoryUsage().heapUsed - before) / calls
}

t.test('calls that are over are collected while they are young', async (t) => {
  const [ofTable, ofMap] = [survivingBytes(createOpenTable()), survivingBytes(new Map())]
  t.ok(ofTable < 200, `${Math.round(ofTable)} bytes of each survive in a table`)
  t.ok(ofMap > 2 * Math.max(ofTable, 100), `and ${Math.round(ofMap)} in a Map`)
})
