import t from 'tap'
import { createCountedLater } from '../../src/observe/counted-later.ts'
import { handClock } from '../kit/connector.ts'

t.test('what has ended is counted in time, in its order, or before somebody reads', async (t) => {
  const clock = handClock()
  const counted: number[] = []
  const later = createCountedLater<number>(clock, (ended) => void counted.push(...ended))
  later.add(1, true)
  later.add(2, true)
  t.same(counted, [], 'not between calls')
  clock.advance(50)
  t.same(counted, [1, 2])
  later.add(3, true)
  later.settle()
  t.same(counted, [1, 2, 3])
  clock.advance(50)
  t.same(counted, [1, 2, 3], 'once')
  later.add(4, true)
  clock.advance(50)
  t.same(counted, [1, 2, 3, 4], 'after somebody has read as well')
})

t.test('what is large is counted at once', async (t) => {
  const counted: string[] = []
  const later = createCountedLater<string>(handClock(), (ended) => void counted.push(...ended))
  later.add('small', true)
  later.add('large', false)
  t.same(counted, ['large'])
  later.settle()
  t.same(counted, ['large', 'small'])
})

t.test('not more than 512 are held', async (t) => {
  const counted: number[] = []
  const later = createCountedLater<number>(handClock(), (ended) => void counted.push(...ended))
  for (let each = 0; each < 511; each++) later.add(each, true)
  t.equal(counted.length, 0)
  later.add(511, true)
  t.same(
    counted,
    Array.from({ length: 512 }, (_, each) => each)
  )
})
