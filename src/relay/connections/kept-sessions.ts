// The sessions that servers over HTTP have given to sessions of clients: sealed, in the store, so that the process that
// comes next speaks in them. What cannot be opened counts as not there; no call fails for it.

import type { HttpDefinition, UpstreamDefinition } from '../../config/snapshot.ts'
import { isLegacyRevision, isObject, type TenantId } from '../../protocol/messages.ts'
import type { SessionPlace, UpstreamSession } from '../../protocol/seams.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import type { SessionKeepers } from '../../session/elsewhere/session-keepers.ts'
import type { SessionLimits } from '../../session/session-index.ts'
import { upstreamSessionKey, upstreamSessionsKey, upstreamSessionsListed } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import type { Sealer } from '../../store/seal.ts'
import type { EndpointContext, Runtime } from '../call/call.ts'

/** With all that its server says of itself; sealed, in characters. */
const maxKeptLength = 65_536
const purpose = 'upstream session'

/** A record that lives long need not be renewed sooner. */
const longestRenewMs = 60_000

/** As it stands in the store. */
interface OpenedSession {
  readonly session: UpstreamSession
  /** Under which it was kept (session/elsewhere/session-keepers.ts). */
  readonly lapse: unknown
}

/** Whose they are. */
type KeptOf = Pick<LiveSession, 'key' | 'tenant' | 'session'>

interface KeptPlace extends SessionPlace {
  /**
   * To be ended at its server by this process alone, also where it is out of date: it is kept no more.
   * @returns undefined where nothing is kept, or another process has taken it
   */
  take(): Promise<UpstreamSession | undefined>
}

export interface KeptSessions {
  /** @returns undefined for what gives no session of this client alone, and where nothing outlives the process */
  placeOf(definition: UpstreamDefinition, context: EndpointContext, session: KeptOf): KeptPlace | undefined
  /** Keys of the sessions of a tenant for which something may be kept. @throws GatewayError unavailable */
  listed(tenant: TenantId): Promise<string[]>
  /** The session uses its connection to the upstream: what is kept of it stays. Costs nothing most of the time. */
  used(session: LiveSession, hash: UpstreamDefinition['hash']): void
}

export function createKeptSessions(
  store: Store,
  sealer: Pick<Sealer, 'seal' | 'open'>,
  { wall, newId, log }: Pick<Runtime, 'wall' | 'newId' | 'log'>,
  keepers: Pick<SessionKeepers, 'lapseOf'>
): KeptSessions {
  const uses = new WeakMap<KeptOf, Map<string, { dueAt: number; renew(): void }>>()

  function openPlace(definition: HttpDefinition, session: KeptOf, limits: SessionLimits): KeptPlace {
    const { name: upstream, hash } = definition
    const { key, tenant } = session
    const { openedAt } = session.session.record
    const keptMs = Math.max(limits.sessionIdleMs, definition.idleMs)
    const renewMs = Math.min(keptMs / 10, longestRenewMs)
    // As long as a connection is in it, and then until the session of the client has ended as idle.
    const ttlMs = (): number => Math.min(keptMs + renewMs, limits.sessionMaxMs - (wall.now() - openedAt))
    // The hash stands for the account of a person, too: another one begins anew.
    const storeKey = upstreamSessionKey(key, hash)
    const binding = [tenant, key, hash]
    const told = { tenant, upstream, storeKey }
    const use = {
      dueAt: wall.now() + renewMs,
      renew(): void {
        use.dueAt = wall.now() + renewMs
        store
          .touch(storeKey, ttlMs())
          .catch((err: unknown) => log.debug({ err, ...told }, 'a kept session at an upstream cannot be renewed'))
      }
    }
    uses.set(session, (uses.get(session) ?? new Map<string, typeof use>()).set(hash, use))
    /** What this connection has read or written last, as it stands in the store. */
    let last: { readonly sealed: string; readonly id: string | undefined } | undefined
    /** Id of the session that was loaded; another process may have it by now. */
    let former: string | undefined

    /** Of the home that this process is. */
    let lapse = ''

    async function read(): Promise<OpenedSession | undefined> {
      const sealed = await store.get(storeKey).catch((err: unknown) => {
        log.debug({ err, ...told }, 'a session at an upstream cannot be looked for')
        return undefined
      })
      last = undefined
      // Empty: it has just been forgotten.
      if (sealed === undefined || sealed === '') return undefined
      const kept = opened(sealed)
      last = { sealed, id: (former = kept?.session.id) }
      if (kept === undefined)
        log.warn(told, 'a session at an upstream in the store cannot be opened: a new one is begun')
      return kept
    }

    return {
      async load() {
        const [kept, known] = await Promise.all([read(), keepers.lapseOf(key)])
        lapse = known
        // An earlier version that keeps says nothing of it.
        if (kept?.lapse === undefined || kept.lapse === lapse) return kept?.session
        // It is not ended at its server: whoever begins sessions there may be judged to be gone, and in it.
        log.info(told, 'a new session is begun at an upstream: another version of the gateway had this one meanwhile')
        return undefined
      },
      async take() {
        const session = (await read())?.session
        const held = last?.sealed
        last = undefined
        return held !== undefined && (await store.delete(storeKey, { is: held })) ? session : undefined
      },
      async keep(kept) {
        const before = last
        last = undefined
        try {
          // Another text each time, so that of two processes that have it each knows which was the last.
          const sealed = sealer.seal(purpose, binding, JSON.stringify({ ...kept, holder: newId(), lapse }))
          const isKept =
            sealed.length <= maxKeptLength &&
            (await store.set(storeKey, sealed, {
              ttlMs: ttlMs(),
              when: before === undefined ? 'absent' : { is: before.sealed }
            }))
          if (isKept && before === undefined) list(tenant, key, limits.sessionMaxMs)
          if (isKept) last = { sealed, id: kept.id }
          else log.debug(told, 'a session at an upstream is not kept: another process has it, or it is too large')
          return isKept
        } catch (err) {
          log.debug({ err, ...told }, 'a session at an upstream cannot be kept: it ends with this process')
          return false
        }
      },
      forget() {
        const held = last?.sealed
        last = undefined
        if (held === undefined) return
        store
          .delete(storeKey, { is: held })
          .catch((err: unknown) => log.debug({ err, ...told }, 'a session at an upstream cannot be forgotten'))
      },
      async end(id) {
        const held = last?.id === id ? last.sealed : undefined
        if (held !== undefined) last = undefined
        try {
          // In one step: another process may take it up at this moment.
          if (held !== undefined && (await store.delete(storeKey, { is: held }))) return true
          const now = await store.get(storeKey)
          return now === undefined || opened(now)?.session.id !== id
        } catch (err) {
          log.debug({ err, ...told }, 'whether another process has a session at an upstream is not known')
          // Nobody else ever saw one that was begun here and not kept.
          return held === undefined && id !== former
        }
      }
    }

    function opened(sealed: string): OpenedSession | undefined {
      if (sealed.length > maxKeptLength) return undefined
      try {
        const text = sealer.open(purpose, binding, sealed)
        const value: unknown = text === undefined ? undefined : JSON.parse(text)
        const found = sessionIn(value)
        return found && { session: found, lapse: (value as { readonly lapse?: unknown }).lapse }
      } catch {
        return undefined // The caller logs it.
      }
    }
  }

  /** For whoever ends what is left of callers who are gone: nobody waits for it. */
  function list(tenant: TenantId, key: string, ttlMs: number): void {
    store
      .append(upstreamSessionsKey(tenant), key, { ttlMs, keep: upstreamSessionsListed, isLazy: true })
      .catch((err: unknown) => log.debug({ err, tenant }, 'a kept session at an upstream cannot be listed'))
  }

  return {
    listed: async (tenant) => [...new Set(await store.entries(upstreamSessionsKey(tenant)))],
    placeOf(definition, { snapshot: { limits } }, session) {
      const isOwn = definition.type === 'http' && definition.isolation === 'session'
      return isOwn && store.lasting ? openPlace(definition, session, limits) : undefined
    },
    used(session, hash) {
      const use = uses.get(session)?.get(hash)
      if (use !== undefined && wall.now() >= use.dueAt) use.renew()
    }
  }
}

/** It was sealed here, or by a process of another version. */
function sessionIn(value: unknown): UpstreamSession | undefined {
  if (!isObject(value)) return undefined
  const { id, revision, capabilities, serverInfo, instructions, secret, turn } = value
  const isWhole =
    typeof id === 'string' &&
    isLegacyRevision(revision) &&
    isObject(capabilities) &&
    isObject(serverInfo) &&
    [serverInfo['name'], serverInfo['version'], secret].every((each) => typeof each === 'string') &&
    (instructions === undefined || typeof instructions === 'string') &&
    Number.isSafeInteger(turn)
  return isWhole
    ? ({ id, revision, capabilities, serverInfo, instructions, secret, turn } as UpstreamSession)
    : undefined
}
