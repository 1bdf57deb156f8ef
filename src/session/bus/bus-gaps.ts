// What may have been missed of what another process says on a request: it is asked for.

import { type Clock, pause } from '../../time/clock.ts'
import type { Store } from '../../store/port.ts'
import { keptMs } from './bus-kept.ts'

/** Between two looks whether messages arrive again. */
const retryMs = 100
/** What was missed is asked for so often. */
const askAgainMs = 500

/** @returns whether what came is to wait for what is missing before it, which is asked for */
export function createGap({ now }: Pick<Clock, 'now'>, askAgain: () => void): (isGap: boolean) => boolean {
  let [since, askedAt]: [number | undefined, number] = [undefined, -Infinity]
  return (isGap) => {
    if (!isGap) since = undefined
    else since ??= now()
    if (since === undefined || now() - since >= keptMs) return false
    if (now() - askedAt >= askAgainMs) {
      askedAt = now()
      askAgain()
    }
    return true
  }
}

interface Asked {
  readonly isWorking: boolean
  /** Has what may have been missed said again. */
  askAgain(): Promise<unknown>
}

interface MissedOptions {
  readonly store: Pick<Store, 'live' | 'onLost'>
  readonly clock: Clock
}

/** Asks for what may have been missed, whenever messages arrive again. What is worked on will be answered. */
export function askForMissed({ store, clock }: MissedOptions, sent: ReadonlyMap<string, Asked>): void {
  let asking = false
  const ask = async (): Promise<boolean> => {
    if (!store.live) return false
    const working = [...sent.values()].filter(({ isWorking }) => isWorking)
    const asked = await Promise.allSettled(working.map((each) => each.askAgain()))
    return asked.every(({ status }) => status === 'fulfilled')
  }
  async function askUntilHeard(): Promise<void> {
    if (asking) return
    asking = true
    while (sent.size > 0 && !(await ask())) await pause(clock, retryMs)
    asking = false
  }
  store.onLost(() => void askUntilHeard())
}
