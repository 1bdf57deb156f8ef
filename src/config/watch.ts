// Notices that a file has new content: written in place, replaced by rename (editors), or swapped by a symlink above it
// (Kubernetes). Folder events trigger a check at once; polling covers mounts without events. Only content counts, never
// dates.

import { createHash } from 'node:crypto'
import { readFileSync, realpathSync, watch, type FSWatcher } from 'node:fs'
import { dirname, resolve } from 'node:path'

import { every, steadyClock, type Timer } from '../time/clock.ts'

/**
 * Calls `onChange` once for every new content that stays for `settleMs`. A missing file is not a change.
 * Does not keep the process alive.
 * @param settleMs new content counts once two checks this far apart agree on it, so that a half-written file is rarely
 * read
 * @param pollMs how often to check where the file system sends no events
 */
export function watchConfig(
  path: string,
  onChange: () => void,
  log: { debug(fields: object, message: string): void },
  { settleMs = 100, pollMs = 5000 } = {}
) {
  const file = resolve(path)
  const watchers = new Map<string, FSWatcher>()
  let settling: Timer | undefined
  let current = digest(file)
  let candidate: string | undefined
  let closed = false

  // An event never postpones a check that is due: a busy file in the same folder, such as a database, sends events all
  // the time.
  function scheduleCheck(): void {
    if (closed || settling !== undefined) return
    settling = steadyClock.timer(settleMs, check)
    settling.unref()
  }

  function check(): void {
    settling = undefined
    follow()
    const now = digest(file)
    // A missing file is most likely being replaced.
    const changed = now !== undefined && now !== current
    const settled = changed && now === candidate
    candidate = changed && !settled ? now : undefined
    if (settled) {
      current = now
      onChange()
    } else if (changed) scheduleCheck()
  }

  /**
   * Watches the folder of the path and, behind symlinks, the folder of the real file: a change may happen in either.
   */
  function follow(): void {
    const folders = new Set([dirname(file), dirname(realPath(file))])
    for (const [folder, watcher] of watchers) {
      if (folders.has(folder)) continue
      watcher.close()
      watchers.delete(folder)
    }
    for (const folder of folders) if (!watchers.has(folder)) open(folder)
  }

  function open(folder: string): void {
    const lost = (err: unknown): void => {
      // Polling goes on, and the next check tries again.
      log.debug(
        { err },
        'a folder of the configuration cannot be watched; the file is checked every few seconds instead'
      )
      watchers.get(folder)?.close()
      watchers.delete(folder)
    }
    try {
      watchers.set(folder, watch(folder, { persistent: false }, scheduleCheck).on('error', lost))
    } catch (error) {
      lost(error)
    }
  }

  follow()
  const poll = every(steadyClock, pollMs, scheduleCheck)

  return {
    close(): void {
      closed = true
      settling?.close()
      poll.close()
      for (const watcher of watchers.values()) watcher.close()
      watchers.clear()
    }
  }
}

function digest(file: string): string | undefined {
  try {
    return createHash('sha256').update(readFileSync(file)).digest('hex')
  } catch {
    // The caller waits until the file exists again.
    return undefined
  }
}

function realPath(file: string): string {
  try {
    return realpathSync(file)
  } catch {
    // The folder of the path itself is watched in any case.
    return file
  }
}
