// File descriptors: sockets, pipes and files all take one, and the process may have only so many.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { open } from 'node:fs/promises'

/** The limit of a system that does not say it: the usual soft limit. */
const usualDescriptors = 1_024

/** Descriptors that the start of a process takes for a moment: both ends of its three pipes, and one for its exec. */
const perStart = 7

/** Descriptors that the pipes of a running child process take. */
const perProcess = 3
/** Part of the descriptors that child processes may take; connections of clients take half. */
const partOfProcesses = 3 / 8

/** Returns how many child processes may run, so that descriptors are left for sockets, files and the store. */
export const processesWithin = (descriptors: number): number =>
  Math.max(1, Math.floor((descriptors * partOfProcesses) / perProcess))

/** Part of the descriptors that sockets to the upstreams of one tenant may take: others have some left. */
const partOfTenant = 0.25

/** Returns how many sockets to its upstreams one tenant may have open. */
export const tenantSocketsWithin = (descriptors: number): number => Math.max(1, Math.floor(descriptors * partOfTenant))

/** @returns Infinity where there is no limit */
export function descriptorLimit(): number {
  const text = limitFromProc() ?? limitFromShell() ?? ''
  return text === 'unlimited' ? Infinity : Number(text) || usualDescriptors
}

/** Linux: "Max open files", of which the first number is the limit in force. */
function limitFromProc(): string | undefined {
  try {
    return /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
  } catch {
    return undefined // Another system: its shell is asked.
  }
}

function limitFromShell(): string | undefined {
  try {
    return execFileSync('/bin/sh', ['-c', 'ulimit -n'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore']
    }).trim()
  } catch {
    return undefined // No shell either: the usual limit is assumed.
  }
}

/** @param error of whatever opens a socket, a file or a process */
export function isOutOfDescriptors(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return code === 'EMFILE' || code === 'ENFILE'
}

/** The message that says what is wrong, and what the operator can do. */
export const outOfDescriptors =
  'this gateway process has no file descriptor left; raise the number of open files that it may have (ulimit -n)'

/**
 * Checks whether the next process could be started. The check takes descriptors itself: run one at a time. Never
 * rejects.
 */
export async function areDescriptorsFree(): Promise<boolean> {
  const opened = await Promise.allSettled(Array.from({ length: perStart }, () => open(process.execPath, 'r')))
  for (const each of opened) if (each.status === 'fulfilled') await each.value.close()
  return !opened.some((each) => each.status === 'rejected' && isOutOfDescriptors(each.reason))
}
