// Documents that cannot be read now, because no file descriptor was free for a file that they name. Other documents do
// not wait for them.

import type { Problem } from '../../config/problems.ts'
import { isOutOfDescriptors, outOfDescriptors } from '../../limits/descriptors.ts'

export const unreadProblems: readonly Problem[] = [
  { path: '', message: `cannot be read now: ${outOfDescriptors}`, suggestion: 'It is tried again every second.' }
]

/** The ids of their tenants. */
export function createUnread() {
  const ids = new Set<string>()
  /** @throws any other error */
  function keep(id: string, error: unknown): undefined {
    if (!isOutOfDescriptors(error)) throw error
    ids.add(id)
  }
  return {
    keep,
    isEmpty: () => ids.size === 0,
    clear: () => ids.clear(),
    /** @returns undefined where it cannot be read now. @throws any other error of `read` */
    unless<T>(id: string, read: () => T): T | undefined {
      try {
        return ids.has(id) ? undefined : read()
      } catch (error) {
        return keep(id, error)
      }
    }
  }
}
