// Sessions on a real store, with a clock that a test moves.

import { type Teardown } from '../kit/until.ts'
import pino from 'pino'
import { randomBytes } from 'node:crypto'
import { endpointName, type JsonObject, tenantId } from '../../src/protocol/messages.ts'
import { type Owner } from '../../src/session/session-record.ts'
import type { SessionLimits } from '../../src/session/session-index.ts'
import { createSessions, type Sessions } from '../../src/session/sessions.ts'
import { type Clock, wallClock } from '../../src/time/clock.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import type { Store } from '../../src/store/port.ts'

export const ada: Owner = { tenant: tenantId('acme'), issuer: 'https://idp.example', subject: 'ada', clientId: 'app' }
export const endpoint = endpointName('default')
export const client = {
  revision: '2025-11-25',
  clientInfo: { name: 'test', version: '1' },
  capabilities: { roots: {} }
} as const

export interface SessionsInStore {
  readonly sessions: Sessions
  readonly store: Store
  /** Keys that ended, in order. */
  readonly ended: string[]
  readonly clock: Clock & { advance(ms: number): void }
  /** Another process on the same store. */
  another(): Promise<Sessions>
}

export async function sessionsInStore(
  t: Teardown,
  limits: Partial<SessionLimits> = {},
  wrap: (store: Store) => Store = (store) => store,
  /** Whether `another` may be made. */
  shared = true
): Promise<SessionsInStore> {
  let now = 1_800_000_000_000
  const clock = {
    ...wallClock,
    now: () => now,
    advance: (ms: number) => {
      now += ms
    }
  }
  const all = { sessionIdleMs: 30 * 60_000, sessionMaxMs: 24 * 3_600_000, sessionsPerPrincipal: 100, ...limits }
  const made = await createSqliteStore({ path: ':memory:', clock, log: pino({ level: 'silent' }) })
  const store = wrap({ ...made, shared })
  const snapshot = { limits: all, tenants: new Map([[ada.tenant, {}]]), admin: {} }
  const make = () =>
    createSessions({
      store,
      clock,
      randomBytes,
      snapshot: () => snapshot,
      node: 'test',
      log: pino({ level: 'silent' })
    })
  const sessions = await make()
  const ended: string[] = []
  sessions.onEnded((key) => ended.push(key))
  t.teardown(async () => {
    await sessions.close()
    await store.close()
  })
  return { sessions, store, ended, clock, another: make }
}

/** As it would be loaded; its home is `test`. */
export const session = (key: string) => ({
  key,
  record: {
    owner: ada,
    endpoint,
    ...client,
    epoch: 0,
    seat: 0,
    logLevel: undefined,
    home: 'test',
    openedAt: 0,
    touchedAt: 0
  }
})

/** Keeps what is sent. */
export function stream() {
  const sent: JsonObject[] = []
  let ended = 0
  const made = {
    sent,
    ends: () => ended,
    attached: true,
    isAttached: () => made.attached,
    send: (message: unknown) => {
      sent.push(message as JsonObject)
    },
    finish: () => {
      ended++
    }
  }
  return made
}
