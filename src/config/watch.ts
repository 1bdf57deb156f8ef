// Notices that the configuration file, or a file that it names by `${file:PATH}`, has new content: written in place,
// replaced by rename (editors), or swapped by a symlink above it (secrets of Kubernetes and Docker). Folder events
// trigger a check at once; polling covers mounts without events. Only content counts, never dates.

import { createHash } from 'node:crypto'
import { readFileSync, realpathSync, watch, type FSWatcher } from 'node:fs'
import { dirname, resolve } from 'node:path'

import { every, steadyClock, type Timer } from '../time/clock.ts'
import { readReferenced, resolveReferences } from './references.ts'
import { readSource } from './source.ts'

/** The digest of each watched file by its path, the configuration first; undefined: it could never be read. */
type Contents = ReadonlyMap<string, string | undefined>

/**
 * Calls `onChange` once for every new content that stays for `settleMs`. A file that goes missing is not a change.
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
  let current = contentsNow(file, new Map())
  let candidate: Contents | undefined
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
    const now = contentsNow(file, current)
    const changed = !same(now, current)
    const settled = changed && same(now, candidate)
    candidate = changed && !settled ? now : undefined
    if (settled) {
      current = now
      onChange()
    } else if (changed) scheduleCheck()
  }

  /**
   * Watches the folder of each path and, behind symlinks, the folder of the real file: a change may happen in either.
   */
  function follow(): void {
    const files = [...(candidate ?? current).keys()]
    const folders = new Set(files.flatMap((path) => [dirname(path), dirname(realPath(path))]))
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

/** Reads the contents; unreadable files count as unchanged: most likely they are being replaced. */
const contentsNow = (file: string, before: Contents): Contents => readOr(before, () => contentsOf(file, before))

/** @throws the error of the system where no descriptor is left for the files that it names */
function contentsOf(file: string, before: Contents): Contents {
  const bytes = readOr(undefined, () => readFileSync(file))
  const own = bytes === undefined ? before.get(file) : digest(bytes)
  const known = [...before.keys()].slice(1)
  const names = bytes === undefined || own === before.get(file) ? known : (namedFiles(bytes, file, known) ?? known)
  return new Map([
    [file, own],
    ...names.map((name) => [name, readOr(before.get(name), () => digest(readReferenced(name)))] as const)
  ])
}

/** The paths after `${file:`; undefined if the text is no configuration, which the reload will report. */
function namedFiles(bytes: Buffer, file: string, known: readonly string[]): readonly string[] | undefined {
  const text = bytes.toString('utf8')
  if (text.length > maxReadChars) return namedInText(text, file, known)
  const { value, report } = readSource(text)
  if (value === undefined) return undefined
  return [...resolveReferences(value, dirname(file), {}, report).files].filter((name) => name !== file)
}

/** Characters of a configuration that is read here: a longer one would hold up calls. */
const maxReadChars = 32_768

/** Those that a long text seems to name, and those from before: it may be no configuration, and is not read here. */
function namedInText(text: string, file: string, known: readonly string[]): readonly string[] {
  const named = [...text.matchAll(/\$\{file:([^{}\r\n]+)\}/g)].map(([, path = '']) => resolve(dirname(file), path))
  return [...new Set([...named, ...known])].filter((name) => name !== file)
}

const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

const same = (one: Contents, other: Contents | undefined): boolean =>
  other !== undefined && JSON.stringify([...one]) === JSON.stringify([...other])

function readOr<T>(otherwise: T, read: () => T): T {
  try {
    return read()
  } catch {
    return otherwise
  }
}

function realPath(file: string): string {
  // The folder of the path itself is watched in any case.
  return readOr(file, () => realpathSync(file))
}
