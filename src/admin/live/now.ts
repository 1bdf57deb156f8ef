// What the admin API learns of each call as it ends: for those who listen, for what a tenant uses, and for metrics.

import { callLine, type CallMeter } from '../../observe/calls.ts'
import type { LiveEvents } from '../../observe/live.ts'
import type { Log } from '../../observe/log.ts'
import type { Bus } from '../../session/bus/bus.ts'
import type { Store } from '../../store/port.ts'
import type { Clock } from '../../time/clock.ts'
import { createUsage } from './usage.ts'
import { createWatch } from './watch.ts'

interface NowOptions {
  readonly live: LiveEvents
  readonly metrics: CallMeter | undefined
  readonly store: Store
  readonly bus: Pick<Bus, 'tell' | 'hear' | 'node' | 'shared'>
  readonly clock: Clock
  /** The time of day. */
  readonly wall: Pick<Clock, 'now'>
  readonly log: Log
}

export function createNow({ live, metrics, store, bus, clock, wall, log }: NowOptions) {
  const usage = createUsage({ store, node: bus.node, clock, wall, log })
  const watch = createWatch({ live, bus, clock })
  const meter: CallMeter = {
    callEnded(call, ended) {
      metrics?.callEnded(call, ended)
      usage.meter.callEnded(call, ended)
      live.happened('call', call.tenant.id, () =>
        JSON.stringify({ time: new Date(wall.now()).toISOString(), ...callLine(call, ended) })
      )
    }
  }
  return {
    usage,
    watch,
    meter,
    async close(): Promise<void> {
      watch.close()
      await usage.close()
    }
  }
}
