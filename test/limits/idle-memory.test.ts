// A process that does nothing gives the space of its young objects back; one that works is left alone.

import t from 'tap'
import { giveBackWhenIdle, youngBytes } from '../../src/limits/idle-memory.ts'
import { handClock } from '../kit/connector.ts'

/** Objects that live for a while make the space grow; all together stay far below what is collected at once. */
function work(): void {
  let kept: object[] = []
  for (let at = 0; at < 300_000; at++) {
    kept.push({ at, text: `text ${at}` })
    if (kept.length > 20_000) kept = []
  }
}

t.test('memory is given back when nothing went on, and only then', async (t) => {
  work()
  const grown = youngBytes()
  t.ok(grown > 8 * 1024 * 1024, `it has grown to ${grown}`)
  const clock = handClock()
  const use = { active: 0, idle: 0, utilization: 0 }
  const watch = giveBackWhenIdle(clock, () => ({ ...use }))
  const second = (active: number): void => {
    use.active += active
    use.idle += 1_000 - active
    clock.advance(1_000)
  }
  for (let n = 0; n < 9; n++) second(4)
  second(10)
  t.ok(youngBytes() > grown / 2, 'it does something again')
  for (let n = 0; n < 59; n++) second(4)
  t.ok(youngBytes() > grown / 2, 'it is idle, and not for long')
  second(4)
  t.ok(youngBytes() < grown / 4, `${youngBytes()} are left`)
  watch.close()
})
