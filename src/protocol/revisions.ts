// The revisions of MCP, and version negotiation. Source: specification, basic/lifecycle of each revision.

export type Era = 'legacy' | 'modern'

/** With a handshake: `initialize` agrees on one for a session. */
export const legacyRevisions = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const
/** Without a handshake: every request names one. */
export const modernRevisions = ['2026-07-28'] as const
export type LegacyRevision = (typeof legacyRevisions)[number]
export type ModernRevision = (typeof modernRevisions)[number]
export type Revision = LegacyRevision | ModernRevision

export const latestLegacy: LegacyRevision = '2025-11-25'
export const latestModern: ModernRevision = '2026-07-28'

export function isLegacyRevision(value: unknown): value is LegacyRevision {
  return (legacyRevisions as readonly unknown[]).includes(value)
}

export function isModernRevision(value: unknown): value is ModernRevision {
  return (modernRevisions as readonly unknown[]).includes(value)
}

/** basic/lifecycle "Version Negotiation": the requested revision if it is supported, else the latest. */
export function negotiateRevision(requested: unknown): LegacyRevision {
  return isLegacyRevision(requested) ? requested : latestLegacy
}

/** Revisions are dates, so they can be compared as text. */
export function atLeast(revision: Revision, minimum: Revision): boolean {
  return revision >= minimum
}
