// Which process holds the store file, for the message at a start that fails.

import { readFile, stat } from 'node:fs/promises'

/** @returns ` (process ID)`; nothing where the system does not tell */
export async function lockOwner(path: string): Promise<string> {
  try {
    const { ino } = await stat(path)
    // proc(5): `1: POSIX  ADVISORY  WRITE 1234 fd:00:INODE START END`. An inode of another file system may have the
    // same number, so two owners are as good as none.
    const locks = [...(await readFile('/proc/locks', 'utf8')).matchAll(/(\d+) [\da-f]+:[\da-f]+:(\d+) /g)]
    const owners = new Set(locks.filter(([, , inode]) => inode === String(ino)).map(([, owner]) => owner))
    return owners.size === 1 ? ` (process ${[...owners].join('')})` : ''
  } catch {
    return '' // Not Linux, or hidden in a container: the message does without.
  }
}
