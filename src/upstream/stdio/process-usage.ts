// What the processes of stdio upstreams take up, read from /proc: those of one child are found by the mark in their
// environment, wherever they have gone.

import { execFile } from 'node:child_process'
import { readFile, readdir } from 'node:fs/promises'
import { promisify } from 'node:util'

export interface ProcessUsage {
  /** Of its own: without what it shares with other processes or reads from files, in bytes. */
  readonly bytes: number
  readonly processes: number
}

/** A new process has the environment of its parent until it runs its own program. */
const looks = 3

/** @param markIn the mark in the environment of a process, if it has one */
export function createUsageReader(markIn: (environment: string) => string | undefined, proc = '/proc') {
  let pageBytes: number | undefined
  /** By process number: its mark, or how often none was seen. Others are not read again. */
  const known = new Map<string, string | number>()

  async function markOf(pid: string): Promise<string | undefined> {
    const last = known.get(pid) ?? 0
    if (typeof last === 'string') return last
    if (last >= looks) return undefined
    const mark = markIn(await readFile(`${proc}/${pid}/environ`, 'latin1').catch(() => ''))
    known.set(pid, mark ?? last + 1)
    return mark
  }

  /** @returns by mark; empty where the system has no /proc */
  return async function usage(): Promise<ReadonlyMap<string, ProcessUsage>> {
    const sums = new Map<string, ProcessUsage>()
    pageBytes ??= await pageSize()
    const pids = (await readdir(proc).catch(() => [])).filter((name) => /^\d+$/.test(name))
    const running = new Set(pids)
    for (const pid of known.keys()) if (!running.has(pid)) known.delete(pid)
    for (const pid of pids) {
      const mark = await markOf(pid)
      if (mark === undefined) continue
      // proc(5) statm: size, resident, shared (files and shared memory), in pages.
      const [, resident = 0, shared = 0] = (await readFile(`${proc}/${pid}/statm`, 'latin1').catch(() => ''))
        .split(' ')
        .map(Number)
      const { bytes = 0, processes = 0 } = sums.get(mark) ?? {}
      sums.set(mark, { bytes: bytes + Math.max(0, resident - shared) * pageBytes, processes: processes + 1 })
    }
    return sums
  }
}

const usualPageBytes = 4_096

async function pageSize(): Promise<number> {
  try {
    return Number((await promisify(execFile)('getconf', ['PAGESIZE'])).stdout) || usualPageBytes
  } catch {
    return usualPageBytes
  }
}
