// How many conversations a caller of 2026-07-28 may have at one process.

import { GatewayError } from '../../protocol/messages.ts'
import type { Clock } from '../../time/clock.ts'
import { conversationKey } from '../client/modern-client.ts'

const sweepEveryMs = 60_000

/**
 * Counts the conversations (`_meta["io.gatehouse/conversation"]`) of callers: each name, like each set of capabilities,
 * is a set of upstream sessions of its own.
 * @returns enters one, and returns how to leave it, which is idempotent; throws GatewayError too_many
 */
export function createConversationLimit(clock: Clock) {
  /** By caller and scope. `until`: when its connections are closed, unless somebody uses them before. */
  const callers = new Map<string, Map<string, { inUse: number; until: number }>>()
  let sweptAt = clock.now()

  return (caller: string, scope: string, idleMs: number, max: number): (() => void) => {
    const now = clock.now()
    const forget = (key: string): void => {
      const scopes = callers.get(key)
      for (const [each, { inUse, until }] of scopes ?? []) if (inUse === 0 && until <= now) scopes?.delete(each)
      if (scopes?.size === 0) callers.delete(key)
    }
    if (now - sweptAt > sweepEveryMs) {
      sweptAt = now
      for (const each of callers.keys()) forget(each)
    }
    const isNew = callers.get(caller)?.has(scope) !== true
    if (isNew && (callers.get(caller)?.size ?? 0) >= max) forget(caller)
    const scopes = callers.get(caller) ?? new Map<string, { inUse: number; until: number }>()
    const kept = scopes.get(scope) ?? { inUse: 0, until: now + idleMs }
    if (isNew && scopes.size >= max) {
      throw new GatewayError(
        'too_many',
        `This caller uses more than ${max} conversations (_meta.${conversationKey}) or sets of capabilities ` +
          'at once (limits.sessionsPerPrincipal). Use fewer, or wait until older ones have been idle.'
      )
    }
    callers.set(caller, scopes.set(scope, kept))
    kept.inUse++
    let left = false
    return () => {
      if (left) return
      left = true
      kept.inUse--
      kept.until = Math.max(kept.until, clock.now() + idleMs)
    }
  }
}
