// Pages of a list that is held in memory. The cursor names the last entry sent, so that it stays valid across restarts,
// replicas and changes elsewhere in the list. It grants no access: it is a position in the caller's own list.

import { GatewayError } from './messages.ts'

export interface Page<Entry> {
  readonly entries: readonly Entry[]
  readonly nextCursor: string | undefined
}

const prefix = 'after:'

/**
 * @param cursor from the client; absent for the first page
 * @throws GatewayError invalid_params on a foreign cursor or one whose entry is gone (specification,
 * server/utilities/pagination)
 */
export function pageOf<Entry>(
  list: readonly Entry[],
  cursor: unknown,
  size: number,
  nameOf: (entry: Entry) => string
): Page<Entry> {
  let start = 0
  if (cursor !== undefined) {
    const name = typeof cursor === 'string' ? decode(cursor) : undefined
    const at = name === undefined ? -1 : list.findIndex((entry) => nameOf(entry) === name)
    if (at === -1)
      throw new GatewayError('invalid_params', 'Unknown or outdated cursor. Start the list again without a cursor.')
    start = at + 1
  }
  const entries = list.slice(start, start + size)
  const last = entries.at(-1)
  return { entries, nextCursor: last === undefined || start + size >= list.length ? undefined : encode(nameOf(last)) }
}

const encode = (name: string): string => btoa(prefix + encodeURIComponent(name))

function decode(cursor: string): string | undefined {
  try {
    const text = atob(cursor)
    return text.startsWith(prefix) ? decodeURIComponent(text.slice(prefix.length)) : undefined
  } catch {
    return undefined // A foreign cursor: the caller gets invalid_params.
  }
}
