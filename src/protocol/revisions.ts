// The revisions of MCP, and what `initialize` agrees on. Source: specification, basic/lifecycle of each revision.

export type Era = 'legacy' | 'modern'

/** Agreed on by `initialize`, once for a session. */
export const legacyRevisions = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const
/** Named by every request. */
export const modernRevisions = ['2026-07-28'] as const
export type LegacyRevision = typeof legacyRevisions[number]
export type ModernRevision = typeof modernRevisions[number]
export type Revision = LegacyRevision | ModernRevision

export const latestLegacy: LegacyRevision = '2025-11-25'
export const latestModern: ModernRevision = '2026-07-28'
/** What a Streamable HTTP request without any other hint speaks (2025-06-18 basic/transports, "Protocol Version Header"). */
export const assumedRevision: LegacyRevision = '2025-03-26'

export function isLegacyRevision (value: unknown): value is LegacyRevision {
  return (legacyRevisions as readonly unknown[]).includes(value)
}

export function isModernRevision (value: unknown): value is ModernRevision {
  return (modernRevisions as readonly unknown[]).includes(value)
}

/** basic/lifecycle "Version Negotiation": the requested revision if we speak it, else our latest. */
export function negotiate (requested: unknown): LegacyRevision {
  return isLegacyRevision(requested) ? requested : latestLegacy
}

/** Revisions are dates, so text order is age order. */
export function atLeast (revision: Revision, floor: Revision): boolean {
  return revision >= floor
}
