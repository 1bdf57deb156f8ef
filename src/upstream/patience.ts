// While a person is asked, it is not the upstream who keeps its callers waiting.

import type { Timer } from './clock.ts'

/** A call whose time stands still while somebody is asked. */
export interface Patient {
  /** Questions that are open. */
  asking: number
  readonly timer: Timer
}

/**
 * @param alive is the call still one that waits?
 * @param withdrawn the question was taken back
 */
export function patiently<Answer, Each extends Patient> (waiting: readonly Each[], alive: (call: Each) => boolean, withdrawn: AbortSignal, answer: Promise<Answer>): Promise<Answer> {
  let over = false
  for (const call of waiting) call.asking++
  const done = (): void => {
    if (over) return
    over = true
    for (const call of waiting) {
      call.asking--
      if (alive(call)) call.timer.refresh()
    }
  }
  withdrawn.addEventListener('abort', done, { once: true })
  return answer.finally(done)
}
