// Scopes: whom a connection to an upstream serves. Calls with the same scope share a connection; the pool takes a scope
// as an opaque string.

import { hash } from 'node:crypto'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { canonicalJsonOf } from '../../protocol/canonical.ts'
import type { LiveSession } from '../../session/live-sessions.ts'

const digest = (text: string): string => hash('sha256', text, 'base64url')

/** The connection that lists are read from, which calls use too where the upstream is shared. */
export const listingScopeOf = (definition: UpstreamDefinition): string =>
  `${definition.isolation === 'shared' ? 'shared' : 'listing'}:${definition.hash}`

export const sessionScopeOf = (sessionKey: string): string => `session:${sessionKey}`

/** The connections that serve a session at an upstream, one after the other. */
export function scopeOf(definition: UpstreamDefinition, { key, session }: LiveSession): string {
  if (definition.isolation === 'session') return sessionScopeOf(key)
  if (definition.isolation === 'shared') return listingScopeOf(definition)
  const { tenant, issuer, subject, clientId } = session.record.owner
  return `principal:${digest(JSON.stringify([tenant, issuer, subject, clientId]))}`
}

/**
 * The connections of a caller of 2026-07-28; never those of the caller's sessions, which declared other capabilities.
 */
export const callerScopeOf = (...parts: readonly unknown[]): string => `caller:${digest(canonicalJsonOf(parts))}`

/** One of several connections of a caller, where a server request does not say which call it belongs to. */
export const slotScopeOf = (callerScope: string, slot: number): string =>
  slot === 0 ? callerScope : `${callerScope}/${slot}`
