// What the processes of stdio upstreams take up, read from /proc: those of one child are found by its marks
// (orphans.ts), wherever they have gone.

import { readFile, readdir } from 'node:fs/promises'
import { orNone } from './limit-mark.ts'

export interface ProcessUsage {
  /**
   * In bytes: the private memory of each process, and the shared memory of the one that has most. What is read from
   * files is not counted.
   */
  readonly bytes: number
  readonly processes: number
}

/** A new process has the environment of its parent until it runs its own program. */
const looks = 3

/** @returns which of these marks a process has */
export type MarkReader = (pid: string, marks: Iterable<string>) => Promise<string | undefined>

export function createUsageReader(markIn: MarkReader, proc = '/proc') {
  /** By process number: its mark, or how often none was seen. Others are not read again. */
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
   * @param marks of the children that run
   * @returns by mark; empty where the system has no /proc
   * @throws what says that no descriptor is left
   */
  return async function usage(marks: Iterable<string>): Promise<ReadonlyMap<string, ProcessUsage>> {
    const sums = new Map<string, { own: number; shared: number; processes: number }>()
    const pids = (await readdir(proc).catch(none)).filter((name) => /^\d+$/.test(name))
    const running = new Set(pids)
    for (const pid of known.keys()) if (!running.has(pid)) known.delete(pid)
    for (const pid of pids) {
      const mark = await markOf(pid, marks)
      if (mark === undefined) continue
      // proc(5), `status`: resident memory by kind.
      const status = await readFile(`${proc}/${pid}/status`, 'latin1').catch(orNone)
      const { own = 0, shared = 0, processes = 0 } = sums.get(mark) ?? {}
      sums.set(mark, {
        // Some sandboxes of containers (gVisor) tell no kinds: all that is resident counts there.
        own: own + (bytesOf(status, 'RssAnon') ?? bytesOf(status, 'VmRSS') ?? 0),
        // The same pages are counted in each process that has them.
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
