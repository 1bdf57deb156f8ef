// Audit records of the store, page by page.

import { auditIndexKey, auditSegmentKey } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import { segmentOf } from './segments.ts'

/** Segments that one page is looked for in: each is about a mebibyte. */
const segmentsPerPage = 4

/**
 * The newest records first: the newest segment first, and in each the newest line.
 * @param kind undefined: of all kinds
 * @param cursor `nextCursor` of the page before
 * @returns undefined where the cursor is none. `nextCursor` null: there are no more
 * @throws GatewayError unavailable
 */
export async function readAuditBackwards(
  store: Store,
  tenant: string,
  {
    limit,
    cursor,
    kind
  }: { readonly limit: number; readonly cursor?: string | undefined; readonly kind?: string | undefined }
): Promise<{ readonly lines: readonly string[]; readonly nextCursor: string | null } | undefined> {
  const index = await store.entries(auditIndexKey(tenant))
  const [begin, before] = cursor === undefined ? [index.at(-1), Infinity] : placeIn(cursor)
  if (begin === undefined && cursor !== undefined) return undefined
  // What was deleted meanwhile is not there any more, and neither is what came before it.
  const start = begin === undefined ? -1 : index.lastIndexOf(begin)
  const lines: string[] = []
  for (let at = start; at >= 0; at--) {
    const entry = index[at] ?? ''
    const found = (await store.entries(auditSegmentKey(tenant, ...segmentOf(entry)))).join('').split('\n').slice(0, -1)
    for (let line = Math.min(found.length, at === start ? before : Infinity) - 1; line >= 0; line--) {
      const text = found[line] ?? ''
      // Most lines are of another kind, and what takes long is to read them.
      if (kind !== undefined && !(text.includes(`"kind":"${kind}"`) && kindOf(text) === kind)) continue
      lines.push(text)
      if (lines.length === limit) return { lines, nextCursor: cursorOf(entry, line) }
    }
    if (start - at + 1 === segmentsPerPage && at > 0) return { lines, nextCursor: cursorOf(index[at - 1] ?? '') }
  }
  return { lines, nextCursor: null }
}

const kindOf = (line: string): unknown => (JSON.parse(line) as { readonly kind?: unknown }).kind

/** @param before a number of a line of the segment; not given: all of it */
const cursorOf = (entry: string, before?: number): string =>
  Buffer.from(JSON.stringify([entry, before ?? null])).toString('base64url')

function placeIn(cursor: string): [entry: string | undefined, before: number] {
  try {
    const [entry, before] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as [unknown, unknown]
    if (typeof entry === 'string' && (before === null || Number.isSafeInteger(before)))
      return [entry, (before as number | null) ?? Infinity]
  } catch {
    // Said by what is returned.
  }
  return [undefined, 0]
}
