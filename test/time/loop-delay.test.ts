// How late the event loop is for good: one long turn is no reason to refuse anybody, late turns without end are.

import t from 'tap'
import { createLoopDelay } from '../../src/time/loop-delay.ts'
import type { Clock } from '../../src/time/clock.ts'

t.test('the least delay of the last samples counts', (t) => {
  let now = 0
  let sample = (): void => {}
  const clock: Clock = {
    now: () => now,
    timer(_ms, run) {
      sample = run
      return { refresh() {}, close() {}, unref() {} }
    }
  }
  const delay = createLoopDelay(clock)
  const come = (lateMs: number): void => {
    now += 250 + lateMs
    sample()
  }
  for (const late of [0, 900, 0, 0]) come(late)
  t.equal(delay.standingMs(), 0, 'one pause')
  for (const late of [300, 400, 350]) come(late)
  t.equal(delay.standingMs(), 0)
  come(320)
  t.equal(delay.standingMs(), 300, 'a second of late turns')
  come(20)
  t.equal(delay.standingMs(), 20, 'over')
  delay.close()
  t.end()
})
