// What a collector did not get. Nobody waits for it: what does not fit, or is refused, is counted, and said once until
// something is delivered again.

import type { Log } from '../log.ts'

export type Signal = 'traces' | 'metrics' | 'logs'

export interface LossMeter {
  dropped(signal: Signal, items: number): void
}

export interface Losses {
  /** @param items spans, points of metrics, or lines of the log */
  lost(items: number, err?: unknown): void
  delivered(): void
}

export function createLosses(signal: Signal, log: Log, meter: LossMeter | undefined): Losses {
  /** Since it was said last; undefined while all is well. */
  let dropped: number | undefined
  return {
    lost(items, err) {
      meter?.dropped(signal, items)
      const isFirst = dropped === undefined
      // Before the line, which is itself one to be sent.
      dropped = (dropped ?? 0) + items
      if (isFirst)
        log.warn({ signal, err }, 'telemetry does not reach the collector; what does not fit is dropped and counted')
    },
    delivered() {
      if (dropped === undefined) return
      const items = dropped
      dropped = undefined
      log.info({ signal, dropped: items }, 'telemetry reaches the collector again')
    }
  }
}
