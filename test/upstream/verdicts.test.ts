// What is remembered of servers: for how long, and of how many.

import t from 'tap'
import { createVerdicts } from '../../src/upstream/verdicts.ts'
import { handClock } from '../kit/connection.ts'

t.test('a legacy verdict has its time, a modern one holds until it is dropped', async (t) => {
  const clock = handClock()
  const verdicts = createVerdicts()
  verdicts.set('old', { era: 'legacy', until: clock.now() + 10 })
  verdicts.set('new', { era: 'modern', only: true })
  t.match([verdicts.get('old', clock), verdicts.get('new', clock), verdicts.get('none', clock)], [{ era: 'legacy' }, { era: 'modern', only: true }, undefined])
  clock.advance(10)
  t.match([verdicts.get('old', clock), verdicts.get('new', clock)], [undefined, { era: 'modern' }])
  verdicts.drop('new')
  t.equal(verdicts.get('new', clock), undefined)
})

t.test('of definitions that come and go only the latest are remembered', async (t) => {
  const clock = handClock()
  const verdicts = createVerdicts()
  for (let n = 0; n < 20_000; n++) {
    verdicts.set(`hash-${n}`, { era: 'modern', only: false })
    verdicts.set('used', { era: 'modern', only: true })
  }
  const left = Array.from({ length: 20_000 }, (_, n) => verdicts.get(`hash-${n}`, clock)).filter((each) => each !== undefined).length
  t.equal(left, 9_999)
  t.ok(verdicts.get('used', clock), 'what is confirmed again and again stays')
  t.ok(verdicts.get('hash-19999', clock))
})
