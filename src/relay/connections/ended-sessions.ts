// Sessions at servers over HTTP whose client's session was ended, or whose caller is let in no more, where no process
// has a connection to them: its home was killed or has stopped. Their servers are told, once, in the background.

import { isDeepStrictEqual } from 'node:util'
import { isConfiguredPrincipal } from '../../auth/principal.ts'
import type { Snapshot, Tenant, UpstreamDefinition } from '../../config/snapshot.ts'
import { createSemaphore } from '../../limits/limits.ts'
import type { Implementation, TenantId } from '../../protocol/messages.ts'
import type { Session, Sessions } from '../../session/sessions.ts'
import { createDelay } from '../../time/clock.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { contextIn, quotaKeyOf, type ContextOf, type EndpointContext, type Runtime } from '../call/call.ts'
import { definitionsOf } from '../catalog/client-catalogs.ts'
import type { KeptSessions } from './kept-sessions.ts'

/** The process that has a connection ends it with its own last messages, within this time, and keeps nothing of it. */
const ownersFirstMs = 3_000
/** Of one tenant: sessions that wait, and that are ended at a time. */
const maxWaiting = 1_000
const maxAtOnce = 4

interface Waiting {
  /** Of the steady clock. */
  readonly dueAt: number
  readonly tenant: TenantId
  /** A session, or all of callers whom the tenant let in before. */
  readonly ended: Session | { readonly before: Snapshot }
}

interface EndedSessionsOptions extends Pick<Runtime, 'clock' | 'log'> {
  readonly pool: Pick<Pool, 'endSession'>
  readonly kept: Pick<KeptSessions, 'placeOf' | 'listed'>
  readonly clientInfo: Implementation
  readonly contextOf: ContextOf
  readonly sessions: Pick<Sessions, 'onEnded' | 'index'>
}

export function createEndedSessions(options: EndedSessionsOptions) {
  const { pool, kept, clientInfo, contextOf, sessions, clock, log } = options
  const tenants = new Map<TenantId, { waiting: number; readonly limited: ReturnType<typeof createSemaphore> }>()
  /** The oldest first. Thousands are ended in a second: none of them has a timer of its own. */
  const waiting: Waiting[] = []
  const delay = createDelay(clock)
  const stop = new AbortController()

  /** @param before the endpoint as it was, where it may be gone */
  async function endAll({ key, record }: Session, before?: EndpointContext): Promise<void> {
    const { owner, endpoint } = record
    // What its person has connected decides under which name it is kept.
    const context = (await contextOf.load(owner.tenant, endpoint, owner)) ?? before
    if (context === undefined) return
    const of = { key, tenant: owner.tenant, session: { key, record } }
    for (const definition of definitionsOf(context).filter(hasSessions)) {
      const left = await kept.placeOf(definition, context, of)?.take()
      if (left !== undefined) await pool.endSession(definition, left, { clientInfo, quotaKey: quotaKeyOf(owner) })
    }
  }

  /** Sees to all that have waited for long enough, side by side as far as their tenant may. */
  function seeToDue(): void {
    while ((waiting[0]?.dueAt ?? Infinity) <= clock.now()) void seeTo(waiting.shift() as Waiting)
    if (waiting[0] !== undefined) delay.start(waiting[0].dueAt - clock.now(), seeToDue)
  }

  async function seeTo({ tenant, ended }: Waiting): Promise<void> {
    const turns = tenants.get(tenant)
    if (turns === undefined) return
    try {
      await turns.limited(async () => {
        if (stop.signal.aborted) return
        await ('before' in ended ? endOfGone(tenant, ended.before) : endAll(ended))
      })
    } catch (err) {
      log.debug({ err, tenant }, 'sessions at servers stay until those end them')
    }
    if (--turns.waiting === 0) tenants.delete(tenant)
  }

  function later(tenant: TenantId, ended: Waiting['ended']): void {
    const turns = tenants.get(tenant) ?? { waiting: 0, limited: createSemaphore(maxAtOnce) }
    if (turns.waiting >= maxWaiting)
      return log.debug({ tenant }, 'sessions at servers stay until those end them: too many ended at once')
    tenants.set(tenant, turns)
    turns.waiting++
    waiting.push({ dueAt: clock.now() + ownersFirstMs, tenant, ended })
    if (!delay.pending) delay.start(ownersFirstMs, seeToDue)
  }

  function endLater(session: Session): void {
    const { owner, endpoint } = session.record
    const context = contextOf(owner.tenant, endpoint, owner)
    if (context !== undefined && definitionsOf(context).some(hasSessions)) later(owner.tenant, session)
  }

  /** Of callers whom the tenant lets in no more, or whose endpoint is gone. */
  async function endOfGone(tenant: TenantId, before: Snapshot): Promise<void> {
    for (const key of await kept.listed(tenant)) {
      if (stop.signal.aborted) return
      const record = await sessions.index.recordOf(key)
      // It may have ended, and been seen to.
      if (record?.owner.tenant !== tenant) continue
      const now = contextOf(tenant, record.endpoint, record.owner)
      if (now !== undefined && isConfiguredPrincipal(record.owner, now.tenant.auth)) continue
      await endAll({ key, record }, contextIn(before, tenant, record.endpoint))
    }
  }

  sessions.onEnded((_key, session) => session && endLater(session))

  return {
    /** After a reload: of sessions whose caller is gone, where no process has a connection to close. */
    reloaded(before: Snapshot, next: Snapshot): void {
      for (const [id, tenant] of before.tenants) {
        const mayBeLeft = [...tenant.upstreams.values()].some(hasSessions)
        if (mayBeLeft && letsInFewer(tenant, next.tenants.get(id))) later(id, { before })
      }
    },
    /** What waits is left to the servers. */
    close(): void {
      stop.abort()
      delay.close()
    }
  }
}

/** Does the tenant let in others than before? Some of those of before may be gone. */
const letsInFewer = (before: Tenant, now: Tenant | undefined): boolean =>
  now === undefined ||
  [...before.endpoints.keys()].some((name) => !now.endpoints.has(name)) ||
  !isDeepStrictEqual(before.auth, now.auth)

const hasSessions = (definition: UpstreamDefinition): definition is UpstreamDefinition & { readonly type: 'http' } =>
  definition.type === 'http' && definition.isolation === 'session'
