// Notices that a file has new content: written in place, replaced by rename (editors), or swapped by a symlink above it (Kubernetes).
// The folders tell at once; a slow look at the file itself covers mounts that tell nothing. Only content counts, never dates.

import { createHash } from 'node:crypto'
import { readFileSync, realpathSync, watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import { dirname, resolve } from 'node:path'

export interface WatchOptions {
  readonly log: { debug (fields: object, message: string): void }
  /** Content counts once two looks so far apart agree on it, so that half a file is rarely seen. */
  readonly settleMs?: number
  /** How often to look where the file system tells nothing. */
  readonly pollMs?: number
}

export interface Watch {
  close (): void
}

/**
 * Calls `onChange` once for every new content that stays for `settleMs`; a file that is away for a moment is waited for.
 * Does not keep the process alive.
 */
export function watchConfig (path: string, onChange: () => void, { log, settleMs = 100, pollMs = 5000 }: WatchOptions): Watch {
  const file = resolve(path)
  const watchers = new Map<string, FSWatcher>()
  let settling: NodeJS.Timeout | undefined
  let current = digest(file)
  let candidate: string | undefined
  let closed = false

  // A sign never puts off a look that is due: beside a busy neighbour, such as a database file, there is always another one.
  function sign (): void {
    if (!closed) settling ??= setTimeout(look, settleMs).unref()
  }

  function look (): void {
    settling = undefined
    follow()
    const now = digest(file)
    // Away: most likely between the two halves of a rename. The file in force stays in force.
    const changed = now !== undefined && now !== current
    const settled = changed && now === candidate
    candidate = changed && !settled ? now : undefined
    if (settled) {
      current = now
      onChange()
    } else if (changed) sign()
  }

  /** The folder of the path and, through symlinks, the folder of the real file: either may be where the change happens. */
  function follow (): void {
    const folders = new Set([dirname(file), dirname(realPath(file))])
    for (const [folder, watcher] of watchers) {
      if (folders.has(folder)) continue
      watcher.close()
      watchers.delete(folder)
    }
    for (const folder of folders) if (!watchers.has(folder)) open(folder)
  }

  function open (folder: string): void {
    const lost = (err: unknown): void => {
      // The poll goes on without it, and the next change tries again.
      log.debug({ err }, 'a folder of the configuration cannot be watched; it is looked at every few seconds instead')
      watchers.get(folder)?.close()
      watchers.delete(folder)
    }
    try {
      watchers.set(folder, watch(folder, { persistent: false }, sign).on('error', lost))
    } catch (error) {
      lost(error)
    }
  }

  follow()
  const poll = setInterval(sign, pollMs).unref()

  return {
    close () {
      closed = true
      clearTimeout(settling)
      clearInterval(poll)
      for (const watcher of watchers.values()) watcher.close()
      watchers.clear()
    }
  }
}

function digest (file: string): string | undefined {
  try {
    return createHash('sha256').update(readFileSync(file)).digest('hex')
  } catch {
    // Nobody's loss: the caller waits until the file is back.
    return undefined
  }
}

function realPath (file: string): string {
  try {
    return realpathSync(file)
  } catch {
    // Nobody's loss: the folder of the path itself is watched in any case.
    return file
  }
}
