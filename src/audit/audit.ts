// The audit log: one record for each call, for each caller that is refused, for each session that is opened or ended,
// and for each change that an administrator makes; of each tenant on its own. Undefined where the configuration wants
// none.

import type { AuditConfig, Snapshot } from '../config/snapshot.ts'
import type { CallAuditor } from '../observe/calls.ts'
import type { LiveEvents } from '../observe/live.ts'
import type { Log } from '../observe/log.ts'
import type { AuditedLogin } from '../observe/login-event.ts'
import { type GatewayError, type JsonObject, tenantId } from '../protocol/messages.ts'
import { type Store, unavailable } from '../store/port.ts'
import { type Clock, createDelay, every } from '../time/clock.ts'
import { callEntry } from './entries/call-entry.ts'
import { checkpointMs, createChain, type RecordKind } from './chain.ts'
import { type AuditKeys, loadAuditKeys } from './keys.ts'
import {
  type AdministrativeChange,
  changeEntry,
  loginEntry,
  refusedChangeEntry,
  refusedEntry,
  type RefusedEntry
} from './entries/refused-entry.ts'
import { recordReload } from './entries/reload-entry.ts'
import { type AuditedSession, type SessionCaller, sessionEntry } from './entries/session-entry.ts'
import { createRefusals, type Refusals } from './refusals.ts'
import { createSegments } from './segments.ts'
import { createSinks } from './sinks.ts'
import { createTrail, type Trail } from './trail.ts'

/** Between attempts to read the key, in milliseconds. */
const retryMs = 500
const dayMs = 24 * 60 * 60 * 1000
const MiB = 1024 * 1024

/** The trail of what belongs to no tenant: no tenant can have this name. */
export const gatewayItself = '(gateway)'

export type Audit = ReturnType<typeof createAudit>

export interface AuditOptions {
  readonly config: AuditConfig
  readonly store: Store
  readonly snapshot: () => Snapshot
  /** Unique among all processes, now and before. */
  readonly run: string
  /** Measures durations. */
  readonly clock: Clock
  readonly live: Pick<LiveEvents, 'happened'>
  /** The time of day. */
  readonly wall: Pick<Clock, 'now'>
  readonly log: Log
}

/** What is recorded of one tenant, until the configuration has it no more. */
interface TenantTrail {
  readonly tenant: string
  readonly trail: Trail
  readonly refusals: Refusals
  /** Under way. */
  calls: number
}

/** Begins when its key is there: a store that is away at the start is asked again. */
export function createAudit({ config, store, snapshot, run, clock, wall, live, log }: AuditOptions) {
  let keys: AuditKeys | undefined
  const trails = new Map<string, TenantTrail>()
  /** Of removed tenants: their last calls are still to be recorded. */
  const leaving = new Set<TenantTrail>()
  let begun = 0
  let lost = 0
  const sinks = createSinks(config, clock, wall, log)
  const shared = { sinks: sinks.places, waiting: { chars: 0 }, clock }
  const retention = { ttlMs: config.retentionDays * dayMs, bytes: config.megabytesPerTenant * MiB }
  const loading = createDelay(clock)

  async function loadKeys(): Promise<void> {
    try {
      keys = await loadAuditKeys(config.signingKey, store)
      log.info({ publicKey: keys.publicKey }, 'audit records are signed by this key')
    } catch (err) {
      if (!loading.pending) loading.start(retryMs, () => void loadKeys())
      log.warn({ err }, 'nothing is recorded yet: the key of the audit log cannot be read')
    }
  }

  /** @returns undefined before the key is there */
  function trailOf(tenant: string): TenantTrail | undefined {
    const known = trails.get(tenant)
    if (known !== undefined || keys === undefined) return known
    // What a removed tenant still does belongs to it, and not to another one that comes under its name.
    const last = isConfigured(tenant) ? undefined : [...leaving].findLast((each) => each.tenant === tenant)
    if (last !== undefined) return last
    const chain = createChain(`${tenant}/${run}-${++begun}`, keys, wall)
    const segments = config.store ? createSegments(store, tenant, chain.name, retention, wall) : undefined
    const made = (line: string): void => live.happened('audit', tenant, () => line)
    const trail = createTrail({ ...shared, chain, segments, made, log: log.child({ tenant }) })
    const added = { tenant, trail, refusals: createRefusals(clock), calls: 0 }
    trails.set(tenant, added)
    void trail.begin(config.store ? { retentionMs: retention.ttlMs } : {})
    return added
  }

  const isConfigured = (tenant: string): boolean => tenant === gatewayItself || snapshot().tenants.has(tenantId(tenant))

  function releaseRemovedTenants(): void {
    for (const [tenant, each] of trails) {
      if (isConfigured(tenant)) continue
      trails.delete(tenant)
      leaving.add(each)
    }
  }

  function sign(kind: 'checkpoint' | 'end', { trail, refusals }: TenantTrail): Promise<void> {
    for (const members of refusals.takeUnrecorded()) trail.add('refused', members)
    return trail.checkpoint(kind)
  }

  let round: Promise<void> | undefined
  const checkpoints = every(clock, checkpointMs, () => {
    round ??= signAll().finally(() => {
      round = undefined
    })
  })

  /** One after the other: a thousand tenants at once would hold up everybody. */
  async function signAll(): Promise<void> {
    for (const each of trails.values()) await sign('checkpoint', each)
    // Those that were removed before the last round: calls that a removal ends are recorded within it.
    for (const each of leaving) {
      if (each.trail.isOver) {
        lost += each.trail.close()
        leaving.delete(each)
      } else if (each.calls === 0) await sign('end', each)
    }
    releaseRemovedTenants()
  }

  const auditor: CallAuditor = {
    begin(call) {
      const { id, audit } = call.tenant
      const each = trailOf(id)
      if (audit.required && (each === undefined || isBlocked(each))) throw notWritten()
      if (each === undefined || keys === undefined) return unrecorded
      const { trail } = each
      const { ready, fields } = callEntry(call, keys.argumentKey(id), audit)
      each.calls++
      return {
        ready,
        end(outcome) {
          each.calls--
          if (audit.required) trail.addRequired('call', fields(outcome))
          else trail.add('call', fields(outcome))
          return audit.required ? trail.written() : undefined
        }
      }
    }
  }

  /** Unless it is left out, and counted. */
  function addRefused(kind: RecordKind, tenant: string, entryOf: (refusals: Refusals) => JsonObject | undefined): void {
    const each = trailOf(tenant)
    const entry = each && entryOf(each.refusals)
    if (entry !== undefined) each?.trail.add(kind, entry)
  }

  const loaded = loadKeys()

  return {
    ...auditor,
    /** Resolves when the key is there, or could not be had at once. */
    loaded,
    blockedTenants: (): readonly string[] => blockedTenants(snapshot(), keys && trails),
    /** After each reload: a tenant that comes under the name of a removed one has a chain of its own. */
    releaseRemovedTenants,
    /** A caller opened or ended a session. */
    session(action: 'opened' | 'ended', caller: SessionCaller, session: AuditedSession): void {
      trailOf(caller.tenant.id)?.trail.add('session', sessionEntry(action, caller, session))
    },
    /**
     * An administrator changed something. Resolves when that is written, at once where nothing can be written now:
     * what was changed holds already, and whoever stops something is not kept waiting. Never rejects.
     */
    async changed(change: AdministrativeChange): Promise<void> {
      const trail = trailOf(change.tenant ?? gatewayItself)?.trail
      trail?.add('change', changeEntry(change))
      if (trail?.isFailing === false) await trail.written()
    },
    /** The configuration file was taken anew. Never rejects. */
    async reloaded(before: Snapshot, after: Snapshot): Promise<void> {
      if (keys !== undefined) await recordReload(before, after, { itself: gatewayItself, keys, trailOf })
    },
    /** An administrator asked for a change that it may not make. */
    changeRefused: (change: Omit<AdministrativeChange, 'before' | 'after'>, outcome: string): void =>
      addRefused('refused', change.tenant ?? gatewayItself, (refusals) =>
        refusedChangeEntry(change, outcome, refusals)
      ),
    /** A request that was refused before it became a call. */
    refused: (tenant: string, endpoint: string, request: RefusedEntry, outcome: string): void =>
      addRefused('refused', tenant, (refusals) => refusedEntry(endpoint, request, outcome, refusals)),
    login: (tenant: string, event: AuditedLogin): void =>
      addRefused('login', tenant, (refusals) => loginEntry(event, refusals)),
    /** Writes and signs what is left. Never rejects. */
    async close(): Promise<void> {
      checkpoints.close()
      loading.close()
      const all = [...trails.values(), ...leaving]
      await Promise.all(all.map((each) => sign('end', each)))
      for (const { trail } of all) lost += trail.close()
      sinks.close()
      if (lost > 0) log.error({ records: lost }, 'audit records were lost: they could not be written')
    }
  }
}

/** Tenants that require their records, and get no call through, because these cannot be written now. */
const blockedTenants = (
  { tenants }: Pick<Snapshot, 'tenants'>,
  trails: ReadonlyMap<string, TenantTrail> | undefined
): readonly string[] =>
  [...tenants.values()].flatMap(({ id, audit }) => {
    const each = trails?.get(id)
    return audit.required && (trails === undefined || (each !== undefined && isBlocked(each))) ? [id] : []
  })

const isBlocked = ({ trail }: TenantTrail): boolean => trail.isFailing || trail.isFull

const unrecorded = { ready: undefined, end: () => undefined }

const notWritten = (): GatewayError =>
  unavailable(
    'The audit log of this tenant cannot be written at the moment, and no call is let through without it. Retry later.'
  )
