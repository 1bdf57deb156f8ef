// The audit log: one record for each call, for each caller that is refused, for each session that is opened or ended,
// and for each change that an administrator makes; of each tenant on its own. Undefined where the configuration wants
// none.

import { appendFile } from 'node:fs/promises'
import type { AuditConfig, Snapshot } from '../config/snapshot.ts'
import { createTokenBucket } from '../limits/limits.ts'
import type { CallAuditor, Log } from '../observe/log.ts'
import { type GatewayError, tenantId } from '../protocol/messages.ts'
import { type Store, unavailable } from '../store/port.ts'
import { createDelay, every, steadyClock, wallClock } from '../time/clock.ts'
import { type AuditedPrincipal, callEntry, callerFields } from './call-entry.ts'
import { createChain } from './chain.ts'
import { type AuditKeys, loadAuditKeys } from './keys.ts'
import { createSegments } from './segments.ts'
import { createTrail, type Trail, type WriteLines } from './trail.ts'

/** How often records are signed, at least, in milliseconds. */
const checkpointMs = 60_000
/** Records of refused requests of a tenant: so many a second, and so many at once. Others are counted only. */
const refusalsPerSecond = 5
const refusalsAtOnce = 50
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
  readonly chain: string
  readonly log: Log
}

/** Begins when its key is there: a store that is away at the start is asked again. */
export function createAudit({ config, store, snapshot, chain: chainName, log }: AuditOptions) {
  const [clock, wall] = [steadyClock, wallClock]
  let keys: AuditKeys | undefined
  const trails = new Map<string, Trail>()
  const refusals = new Map<string, Refusals>()
  const waiting = { chars: 0 }
  const file = config.file === undefined ? undefined : createFileWriter(config.file)
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
  function trailOf(tenant: string): Trail | undefined {
    const known = trails.get(tenant)
    if (known !== undefined || keys === undefined) return known
    const chain = createChain(`${tenant}/${chainName}`, keys.privateKey, wall)
    const segments = config.store ? createSegments(store, tenant, chain.head.chain, retention, wall) : undefined
    const trail = createTrail({ chain, segments, file, waiting, clock, log: log.child({ tenant }) })
    trails.set(tenant, trail)
    void trail.checkpoint('begin', { publicKey: keys.publicKey })
    return trail
  }

  const checkpoints = every(clock, checkpointMs, () => {
    for (const trail of trails.values()) void trail.checkpoint('checkpoint')
    for (const id of trails.keys()) {
      if (id === gatewayItself || snapshot().tenants.has(tenantId(id))) continue
      void trails.get(id)?.checkpoint('end')
      trails.delete(id)
    }
  })

  const auditor: CallAuditor = {
    begin(call) {
      const { id, audit } = call.tenant
      const trail = trailOf(id)
      if (audit.required && trail?.isFailing !== false) throw notWritten()
      if (trail === undefined || keys === undefined) return unrecorded
      const { ready, fields } = callEntry(call, keys.argumentKey(id), audit)
      return {
        ready,
        end(outcome) {
          trail.add('call', fields(outcome))
          return audit.required ? trail.written() : undefined
        }
      }
    }
  }

  const loaded = loadKeys()

  return {
    ...auditor,
    /** Resolves when the key is there, or could not be had at once. */
    loaded,
    /** A caller opened or ended a session. */
    session(action: 'opened' | 'ended', caller: SessionCaller, { clientInfo, revision }: Session): void {
      const { tenant, endpoint, principal, address: from, requestId: request } = caller
      const fields = { ...callerFields(principal), from, request, client: clientInfo, revision }
      trailOf(tenant.id)?.add('session', { endpoint: endpoint.name, action, ...fields })
    },
    /** An administrator changed something: see admin/changes.ts. */
    changed({ actor, role, action, tenant, target, before, after, address: from }: Change): void {
      const by = { kind: 'admin', name: actor, role }
      trailOf(tenant ?? gatewayItself)?.add('change', { by, from, action, target, before, after })
    },
    /** A request that was refused before it became a call. */
    refused(tenant: string, endpoint: string, request: RefusedRequest, outcome: string): void {
      const known = refusals.get(tenant)
      const refusal = known ?? { bucket: createTokenBucket(clock, refusalsPerSecond, refusalsAtOnce), unrecorded: 0 }
      if (known === undefined) refusals.set(tenant, refusal)
      if (!refusal.bucket.take()) return void refusal.unrecorded++
      const { unrecorded } = refusal
      refusal.unrecorded = 0
      const { context, raw, id, method } = request
      trailOf(tenant)?.add('refused', {
        endpoint,
        ...(context === undefined ? {} : callerFields(context.principal)),
        from: raw.socket.remoteAddress,
        request: id,
        http: method.slice(0, 16),
        decision: 'denied',
        outcome,
        ...(unrecorded > 0 && { unrecorded })
      })
    },
    /** Writes and signs what is left. Never rejects. */
    async close(): Promise<void> {
      checkpoints.close()
      loading.close()
      await Promise.all([...trails.values()].map((trail) => trail.checkpoint('end')))
      let lost = 0
      for (const trail of trails.values()) lost += trail.close()
      if (lost > 0) log.error({ records: lost }, 'audit records were lost: they could not be written')
    }
  }
}

/** Who opens or ends a session. */
interface SessionCaller {
  readonly tenant: { readonly id: string }
  readonly endpoint: { readonly name: string }
  readonly principal: AuditedPrincipal
  readonly address?: string | undefined
  readonly requestId: string
}

/** What an administrator did. `before` and `after` are digests. */
interface Change {
  readonly actor: string
  readonly role: string
  readonly action: string
  /** undefined: the whole gateway. */
  readonly tenant: string | undefined
  readonly target: string
  readonly before: string | undefined
  readonly after: string | undefined
  readonly address: string
}

interface RefusedRequest {
  /** Undefined where nobody was let in. */
  readonly context?: { readonly principal: AuditedPrincipal } | undefined
  readonly raw: { readonly socket: { readonly remoteAddress?: string | undefined } }
  readonly id: string
  readonly method: string
}

interface Session {
  readonly clientInfo: unknown
  readonly revision: string
}

interface Refusals {
  readonly bucket: ReturnType<typeof createTokenBucket>
  /** Since the last record. */
  unrecorded: number
}

const unrecorded = { ready: undefined, end: () => undefined }

const notWritten = (): GatewayError =>
  unavailable(
    'The audit log of this tenant cannot be written at the moment, and no call is let through without it. Retry later.'
  )

/** Writes one after the other: two at once could mix their lines. Opened anew each time, so that it can be rotated. */
function createFileWriter(path: string): WriteLines {
  let last = Promise.resolve()
  return (lines) => {
    const next = last.then(() => appendFile(path, lines, { mode: 0o600 }))
    last = next.catch(() => {})
    return next
  }
}
