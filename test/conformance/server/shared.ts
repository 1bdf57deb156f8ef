// What all sessions of the reference server have in common: its lists change at run time, for everybody.

import { appendFileSync, existsSync, statSync } from 'node:fs'
import { join } from 'node:path'

export type Changing = 'tools' | 'prompts'

export interface Shared {
  /** How often a list was changed, which is what the last of its entries says. */
  changes(kind: Changing): number
  /** Changes a list and tells all sessions of this process. */
  change(kind: Changing): void
  /** @param tell of one session @returns how it leaves */
  join(tell: (kind: Changing) => void): () => void
}

/**
 * @param folder where processes keep count together: over stdio each session is a process of its own, and all are one
 * server. None: this process only
 */
export function createShared(folder?: string): Shared {
  const sessions = new Set<(kind: Changing) => void>()
  const counts = { tools: 0, prompts: 0 }
  // A byte for each change: appending is atomic, so that nobody's change is lost.
  const fileOf = (kind: Changing): string => join(folder ?? '', `${kind}-changes`)
  return {
    changes: (kind) =>
      folder === undefined ? counts[kind] : existsSync(fileOf(kind)) ? statSync(fileOf(kind)).size : 0,
    change(kind) {
      if (folder === undefined) counts[kind]++
      else appendFileSync(fileOf(kind), '.')
      for (const tell of sessions) tell(kind)
    },
    join(tell) {
      sessions.add(tell)
      return () => {
        sessions.delete(tell)
      }
    }
  }
}
