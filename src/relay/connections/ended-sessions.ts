// Sessions at servers over HTTP whose client's session was ended where no process has a connection to them: its home
// was killed or has stopped. The process that ended it tells the servers, once, in the background.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { createSemaphore } from '../../limits/limits.ts'
import type { Implementation, TenantId } from '../../protocol/messages.ts'
import type { Session, Sessions } from '../../session/sessions.ts'
import { pause } from '../../time/clock.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { quotaKeyOf, type ContextOf, type Runtime } from '../call/call.ts'
import { definitionsOf } from '../catalog/client-catalogs.ts'
import type { KeptSessions } from './kept-sessions.ts'

/** The process that has a connection ends it with its own last messages, within this time, and keeps nothing of it. */
const ownersFirstMs = 3_000
/** Of one tenant: sessions that wait, and that are ended at a time. */
const maxWaiting = 1_000
const maxAtOnce = 4

interface EndedSessionsOptions extends Pick<Runtime, 'clock' | 'log'> {
  readonly pool: Pick<Pool, 'endSession'>
  readonly kept: Pick<KeptSessions, 'placeOf'>
  readonly clientInfo: Implementation
  readonly contextOf: ContextOf
  readonly sessions: Pick<Sessions, 'onEnded'>
}

export function createEndedSessions(options: EndedSessionsOptions) {
  const { pool, kept, clientInfo, contextOf, sessions, clock, log } = options
  const tenants = new Map<TenantId, { waiting: number; readonly limited: ReturnType<typeof createSemaphore> }>()
  const stop = new AbortController()

  async function endAll({ key, record }: Session): Promise<void> {
    const { owner, endpoint } = record
    // What its person has connected decides under which name it is kept.
    const context = await contextOf.load(owner.tenant, endpoint, owner)
    if (context === undefined) return
    const of = { key, tenant: owner.tenant, session: { key, record } }
    for (const definition of definitionsOf(context).filter(hasSessions)) {
      const place = kept.placeOf(definition, context, of)
      const left = await place?.load()
      if (left === undefined || (await place?.end(left.id)) !== true) continue
      await pool.endSession(definition, left, { clientInfo, quotaKey: quotaKeyOf(owner) })
    }
  }

  function endLater(session: Session): void {
    const { owner, endpoint } = session.record
    const { tenant } = owner
    const context = contextOf(tenant, endpoint, owner)
    if (context === undefined || !definitionsOf(context).some(hasSessions)) return
    const turns = tenants.get(tenant) ?? { waiting: 0, limited: createSemaphore(maxAtOnce) }
    if (turns.waiting >= maxWaiting)
      return log.debug({ tenant }, 'sessions at servers stay until those end them: too many ended at once')
    tenants.set(tenant, turns)
    turns.waiting++
    void pause(clock, ownersFirstMs, stop.signal)
      .then(() => turns.limited(async () => (stop.signal.aborted ? undefined : await endAll(session))))
      .catch((err: unknown) => log.debug({ err, tenant }, 'sessions at servers stay until those end them'))
      .finally(() => {
        if (--turns.waiting === 0) tenants.delete(tenant)
      })
  }

  sessions.onEnded((_key, session) => session && endLater(session))

  return {
    /** What waits is left to the servers. */
    close: (): void => stop.abort()
  }
}

const hasSessions = (definition: UpstreamDefinition): definition is UpstreamDefinition & { readonly type: 'http' } =>
  definition.type === 'http' && definition.isolation === 'session'
