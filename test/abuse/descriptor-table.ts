// The table of file descriptors of a running process: full, as where it has opened as many as it may. Linux only.

import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, readlinkSync } from 'node:fs'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Sent } from '../kit/client.ts'
import { until, type Teardown } from '../kit/until.ts'

export function descriptorTable(pid: number) {
  const before = /^Max open files\s+(\S+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.[1] ?? ''
  // The soft limit alone, which may be raised again.
  const limit = (most: string | number): unknown => execFileSync('prlimit', [`--pid=${pid}`, `--nofile=${most}:`])
  /** @returns what is open under that number, such as `socket:[8941]`; undefined: nothing is */
  function opened(number: number): string | undefined {
    try {
      return readlinkSync(`/proc/${pid}/fd/${number}`)
    } catch {
      return undefined
    }
  }
  const isKept = (number: number): boolean => number <= 2 || !(opened(number) ?? 'socket:').startsWith('socket:')
  return {
    /**
     * Those that are open stay so, and no other is opened, whatever is closed meanwhile: the limit is the lowest number
     * of a socket, and what has a lower one a process keeps. The number of a connection that closes is above the limit.
     */
    fill(): void {
      let most = 0
      while (isKept(most)) most++
      limit(most)
    },
    /** So many more can be opened, and one more for each that is closed. */
    leave(free: number): void {
      let most = 0
      for (let left = free; left > 0; most++) if (opened(most) === undefined) left--
      limit(most)
    },
    /** There are as many as there were. */
    empty: (): void => void limit(before)
  }
}

export interface HeldAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

/** Sends one request. */
export type Held = (path: string, sent?: Sent) => Promise<HeldAnswer>

/** Whether the other end has accepted it, and not only the system on its behalf (proc_pid_net(5): it has no inode before). */
function isAccepted({ localPort = 0, remotePort = 0 }: Socket): boolean {
  const hex = (port: number): string => `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const rows = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((row) => row.trim().split(/\s+/))
  return rows.some(
    ([, local = '', remote = '', , , , , , , inode]) =>
      local.endsWith(hex(remotePort)) && remote.endsWith(hex(localPort)) && inode !== '0'
  )
}

/** Opens a connection ahead of the time at which none can be accepted. */
export async function heldConnection(t: Teardown, origin: string): Promise<Held> {
  const socket = connect(Number(new URL(origin).port), '127.0.0.1')
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  await until('the connection is accepted', () => isAccepted(socket))
  return (path, { method = 'GET', headers = {}, body } = {}) =>
    new Promise((resolve, reject) => {
      // Node would wait for an answer on it all the same.
      if (socket.destroyed) return reject(new Error('the other end has closed the connection'))
      const options = { method, headers, createConnection: () => socket }
      const outgoing = request(new URL(path, origin), options, (answer) => {
        const { statusCode: status = 0 } = answer
        let text = ''
        answer.setEncoding('utf8').on('data', (part: string) => (text += part))
        answer.once('error', reject).once('end', () => resolve({ status, headers: answer.headers, text }))
      })
      outgoing.once('error', reject).end(body)
    })
}
