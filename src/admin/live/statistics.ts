// Live statistics of the admin API: it counts each call as it ends, for streams of events, for what a tenant uses,
// and for metrics.

import type { Snapshot } from '../../config/snapshot.ts'
import type { Control } from '../../control/control.ts'
import { callLine } from '../../observe/call-text.ts'
import type { CallMeter } from '../../observe/calls.ts'
import type { LiveEvents } from '../../observe/live.ts'
import type { Log } from '../../observe/log.ts'
import type { Metrics } from '../../observe/metrics/metrics.ts'
import type { RefusalObservers } from '../../observe/refused-requests.ts'
import type { Bus } from '../../session/bus/bus.ts'
import { everyNode } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import type { Clock } from '../../time/clock.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { createCallers } from '../callers/callers.ts'
import { createProcesses } from './processes.ts'
import { createPrometheus } from '../series/prometheus.ts'
import { createRefusedLately } from './refused-lately.ts'
import { createSeries } from '../series/series.ts'
import { createUsage } from './usage.ts'
import { createWatch } from './watch.ts'

/** A message between processes: the connections to an upstream are opened anew. */
interface Renewal {
  readonly hash: string
  readonly atOnce: boolean
}

/** The parts of this process that the list of processes shows. */
interface Serving {
  readonly snapshot: () => Snapshot
  readonly control: Pick<Control, 'version'>
  readonly release: string
}

interface LiveStatisticsOptions extends Serving {
  readonly live: LiveEvents
  readonly metrics: Metrics
  readonly store: Store
  readonly bus: Pick<Bus, 'tell' | 'hear' | 'node' | 'shared'>
  readonly pool: Pick<Pool, 'renew'>
  readonly clock: Clock
  /** The time of day. */
  readonly wall: Pick<Clock, 'now'>
  readonly log: Log
}

export type LiveStatistics = ReturnType<typeof createLiveStatistics>

export function createLiveStatistics({
  live,
  metrics,
  store,
  bus,
  pool,
  clock,
  wall,
  log,
  ...serving
}: LiveStatisticsOptions) {
  bus.hear('renew', ({ hash, atOnce }: Renewal, from) => {
    if (from !== bus.node) pool.renew(hash, atOnce)
  })
  const usage = createUsage({ store, node: bus.node, clock, wall, log })
  const series = createSeries(wall)
  const callers = createCallers(wall)
  const refusedLately = createRefusedLately(wall)
  const watch = createWatch({ live, bus, clock })
  const { snapshot, control, release: version } = serving
  const configuration = (): number => control.version
  const processes = createProcesses({ bus, snapshot, configuration, version, clock, wall })
  metrics.calls.countedBy((calls) => {
    const now = wall.now()
    for (const { call, ended } of calls) {
      usage.meter.callEnded(call, ended, now)
      series.meter.callEnded(call, ended, now)
      callers.meter.callEnded(call, now)
      if (ended.outcome !== 'ok') refusedLately.note(ended.outcome, call.tenant.id, 'call', now)
    }
  })

  /** Wraps a function that reads counts: calls that are not counted yet are counted first. */
  const settled =
    <Asked extends readonly unknown[], Told>(read: (...asked: Asked) => Told) =>
    (...asked: Asked): Told => {
      metrics.calls.settle()
      return read(...asked)
    }

  const meter: CallMeter & NonNullable<RefusalObservers['metrics']> = {
    callEnded(call, ended) {
      metrics.callEnded(call, ended)
      live.happened('call', call.tenant.id, () =>
        JSON.stringify({
          time: new Date(wall.now()).toISOString(),
          ...callLine(call, ended),
          allowedBy: call.record?.allowedBy,
          steps: call.record?.steps
        })
      )
    },
    sessionEnded: metrics.sessionEnded,
    refused(reason, tenant) {
      metrics.refused(reason, tenant)
      refusedLately.note(reason, tenant, 'request', wall.now())
    }
  }
  return {
    usage: { ...usage, read: settled(usage.read) },
    series: { ...series, read: settled(series.read), failuresSince: settled(series.failuresSince) },
    prometheus: createPrometheus(wall),
    processes,
    callers: { ...callers, today: settled(callers.today) },
    refusedLately: { ...refusedLately, read: settled(refusedLately.read) },
    watch,
    meter,
    /** Opens the connections to an upstream anew, at every process. */
    renew(renewal: Renewal): void {
      pool.renew(renewal.hash, renewal.atOnce)
      if (bus.shared) void bus.tell(everyNode, 'renew', renewal)
    },
    async close(): Promise<void> {
      watch.close()
      processes.close()
      metrics.calls.settle()
      await usage.close()
    }
  }
}
