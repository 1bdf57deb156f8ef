// Which connection gives way where all places are taken.

import t from 'tap'
import { createLargestGroup } from '../../src/limits/largest-group.ts'

t.test('the first entry of the largest group gives way, of the own where that is as large as any', (t) => {
  const groups = createLargestGroup<string>()
  t.equal(groups.toGiveUp('a'), undefined)
  for (const each of ['a1', 'b1', 'b2', 'c1', 'c2']) groups.add(each.slice(0, 1), each)
  t.equal(groups.toGiveUp('c'), 'c1')
  t.equal(groups.toGiveUp('a'), 'b1')
  groups.add('a', 'a2')
  groups.add('a', 'a3')
  groups.add('a', 'a3')
  t.equal(groups.toGiveUp('b'), 'a1')
  groups.delete('a', 'a1')
  groups.delete('a', 'a1')
  t.equal(groups.toGiveUp('b'), 'b1', 'those of the same size')
  for (const each of ['a2', 'a3', 'b1', 'b2', 'c1', 'c2']) groups.delete(each.slice(0, 1), each)
  t.equal(groups.toGiveUp('a'), undefined)
  t.end()
})
