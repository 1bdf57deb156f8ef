// The handle by which a client of 2026-07-28 keeps apart what legacy servers remember of it:
// `_meta["io.gatehouse/conversation"]`. Each name, like each set of capabilities, is a set of upstream sessions of its
// own, and a caller may have so many of them.

import { GatewayError } from '../../protocol/errors.ts'
import { conversationKey } from '../client/request-meta.ts'

export interface ConversationLimit {
  /**
   * @param scope the set of upstream sessions that is used; opaque
   * @param idleMs for how long its connections stay when nobody uses them
   * @throws GatewayError too_many
   */
  enter(caller: string, scope: string, idleMs: number, max: number): { leave(): void }
}

interface Kept {
  inUse: number
  /** When its connections are closed, unless somebody uses them before. */
  until: number
}

const sweepEveryMs = 60_000

export function createConversationLimit(clock: { now(): number }): ConversationLimit {
  const callers = new Map<string, Map<string, Kept>>()
  let sweptAt = clock.now()

  function forget(scopes: Map<string, Kept>, now: number): void {
    for (const [scope, { inUse, until }] of scopes) if (inUse === 0 && until <= now) scopes.delete(scope)
  }

  return {
    enter(caller, scope, idleMs, max) {
      const now = clock.now()
      if (now - sweptAt > sweepEveryMs) {
        sweptAt = now
        for (const [each, scopes] of callers) {
          forget(scopes, now)
          if (scopes.size === 0) callers.delete(each)
        }
      }
      let scopes = callers.get(caller)
      if (scopes === undefined) callers.set(caller, (scopes = new Map()))
      let kept = scopes.get(scope)
      if (kept === undefined) {
        if (scopes.size >= max) forget(scopes, now)
        if (scopes.size >= max) {
          throw new GatewayError(
            'too_many',
            `This caller uses more than ${max} conversations (_meta.${conversationKey}) or sets of capabilities ` +
              'at once (limits.sessionsPerPrincipal). Use fewer, or wait until older ones have been idle.'
          )
        }
        scopes.set(scope, (kept = { inUse: 0, until: now + idleMs }))
      }
      const mine = kept
      mine.inUse++
      let left = false
      return {
        leave() {
          if (left) return
          left = true
          mine.inUse--
          mine.until = Math.max(mine.until, clock.now() + idleMs)
        }
      }
    }
  }
}
