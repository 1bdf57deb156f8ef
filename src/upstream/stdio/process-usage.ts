// Reads from /proc how much memory and how many processes each child uses. All descendants of a child are found by its
// marks (orphans.ts), even if they have left its process group.

import { readFile, readdir } from 'node:fs/promises'
import { orNone } from './limit-mark.ts'

export interface ProcessUsage {
  /**
   * The private memory of all processes plus the largest shared memory of one of them, in bytes. Pages of files are not
   * counted.
   */
  readonly bytes: number
  readonly processes: number
}

/**
 * How many times a process without a mark is read before it counts as foreign. A new process shows the environment of
 * its parent until it executes its own program.
 */
const looks = 3

/** @returns which of these marks a process has */
export type MarkReader = (pid: string, marks: Iterable<string>) => Promise<string | undefined>

export function createUsageReader(markIn: MarkReader, proc = '/proc') {
  /** By process id: the mark, or how many times none was found. */
  const known = new Map<string, string | number>()

  async function markOf(pid: string, marks: Iterable<string>): Promise<string | undefined> {
    const last = known.get(pid) ?? 0
    if (typeof last === 'string') return last
    if (last >= looks) return undefined
    const mark = await markIn(pid, marks)
    known.set(pid, mark ?? last + 1)
    return mark
  }

  /**
   * @param marks the marks of the running children
   * @returns the usage by mark; empty if the system has no /proc
   * @throws the error of a read if no file descriptor is left
   */
  return async function usage(marks: Iterable<string>): Promise<ReadonlyMap<string, ProcessUsage>> {
    const sums = new Map<string, { own: number; shared: number; processes: number }>()
    const pids = (await readdir(proc).catch(none)).filter((name) => /^\d+$/.test(name))
    const running = new Set(pids)
    for (const pid of known.keys()) if (!running.has(pid)) known.delete(pid)
    for (const pid of pids) {
      const mark = await markOf(pid, marks)
      if (mark === undefined) continue
      // proc(5): `status` shows resident memory by kind.
      const status = await readFile(`${proc}/${pid}/status`, 'latin1').catch(orNone)
      const { own = 0, shared = 0, processes = 0 } = sums.get(mark) ?? {}
      sums.set(mark, {
        // gVisor does not list kinds of memory; there all resident memory is counted.
        own: own + (bytesOf(status, 'RssAnon') ?? bytesOf(status, 'VmRSS') ?? 0),
        // Every process that shares a page counts it, so a sum would count it several times.
        shared: Math.max(shared, bytesOf(status, 'RssShmem') ?? 0),
        processes: processes + 1
      })
    }
    return new Map([...sums].map(([mark, { own, shared, processes }]) => [mark, { bytes: own + shared, processes }]))
  }
}

function none(error: unknown): string[] {
  orNone(error)
  return []
}

function bytesOf(status: string, field: 'RssAnon' | 'RssShmem' | 'VmRSS'): number | undefined {
  const kibibytes = new RegExp(`^${field}:\\s*(\\d+) kB`, 'm').exec(status)?.[1]
  return kibibytes === undefined ? undefined : Number(kibibytes) * 1_024
}
