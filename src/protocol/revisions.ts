// The revisions of MCP, and what `initialize` agrees on. Source: specification, basic/lifecycle of each revision.

export type Era = 'legacy' | 'modern'

export const legacyRevisions = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const
export type Revision = typeof legacyRevisions[number]

export const latestLegacy: Revision = '2025-11-25'
/** What a Streamable HTTP request without any other hint speaks (2025-06-18 basic/transports, "Protocol Version Header"). */
export const assumedRevision: Revision = '2025-03-26'

export function isLegacyRevision (value: unknown): value is Revision {
  return (legacyRevisions as readonly unknown[]).includes(value)
}

/** basic/lifecycle "Version Negotiation": the requested revision if we speak it, else our latest. */
export function negotiate (requested: unknown): Revision {
  return isLegacyRevision(requested) ? requested : latestLegacy
}

/** Revisions are dates, so text order is age order. */
export function atLeast (revision: Revision, floor: Revision): boolean {
  return revision >= floor
}
