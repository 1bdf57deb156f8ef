// The first phase of the composition: telemetry, the store and what is kept in it, and the bus between processes.

import { createAudit } from '../audit/audit.ts'
import { createControl } from '../control/control.ts'
import type { Snapshot } from '../config/snapshot.ts'
import { memoryAccountOfProcess } from '../limits/memory.ts'
import { createLiveEvents } from '../observe/live.ts'
import { openTelemetry } from '../observe/telemetry.ts'
import { createBus } from '../session/bus/bus.ts'
import { createRandomBytes } from '../session/random-bytes.ts'
import { createSessions } from '../session/sessions.ts'
import { openStore } from '../store/open-store.ts'
import { createSealer } from '../store/seal.ts'
import { steadyClock, wallClock } from '../time/clock.ts'
import { clocks, type GatewayOptions, type GatewayState } from './state.ts'
import { timedStore } from './timed-store.ts'

export type GatewayStorage = Awaited<ReturnType<typeof openStorage>>

/** Opens the store, and replaces the snapshot of `state` by one with the tenants of the admin API. */
export async function openStorage(state: GatewayState, { log, version, env, worker, overrides = {} }: GatewayOptions) {
  const initial = state.file
  const snapshot = (): Snapshot => state.snapshot
  const randomBytes = createRandomBytes()
  const newId = (): string => randomBytes(16).toString('base64url')
  const node = randomBytes(4).toString('hex')
  const memory = overrides.memory ?? memoryAccountOfProcess(worker?.memoryBytes ?? initial.limits.memoryBytes)
  const telemetry = await openTelemetry(initial, { version, node, ...clocks, log })

  const opened = overrides.store ?? (await openStore(initial.store, wallClock, log, worker))
  const store = timedStore(opened, steadyClock, telemetry.metrics)
  const sealer = await createSealer({ store, randomBytes, timer: steadyClock.timer, log })

  const control = await createControl({ store, sealer, file: () => state.file, env, wall: wallClock, log })
  state.snapshot = control.snapshot()
  memory.configure(state.snapshot.tenants)

  const bus = await createBus({ store, sealer, node, memory, clock: wallClock, log })
  const recording = { store, snapshot, run: newId(), live: createLiveEvents(), ...clocks, log }
  const audit = initial.audit && createAudit({ config: initial.audit, ...recording })
  await audit?.loaded
  const sessions = await createSessions({ store, clock: wallClock, randomBytes, snapshot, node, log })
  return {
    node,
    randomBytes,
    newId,
    snapshot,
    memory,
    telemetry,
    store,
    sealer,
    control,
    bus,
    recording,
    audit,
    sessions
  }
}
