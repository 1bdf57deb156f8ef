// Connections of clients go from one worker to another with their sockets, by way of the primary. Who gives one away
// keeps it, unread, until the other one says that it has it; who takes one reads it only after that was said. So
// whichever of the processes ends in between, what a client has sent is read by one of them, and by one alone. Who was
// held up takes nothing that its giver may have closed meanwhile.

import { type Clock, machineClock, patientTimer } from '../time/clock.ts'
import type { SocketHandle } from './channel.ts'
import type { MovedConnection, WorkerChannel } from './messages.ts'

export interface ConnectionMoves {
  /** Whether the process is a worker beside this one that lives, and a connection can be given to it now. */
  mayGive(node: string): boolean
  /**
   * Gives a connection to another worker.
   * @param handle that is not read, and stays open here
   * @returns whether it is the other one's now; undefined where that cannot be known, because a process on the way
   * hangs. Never rejects
   */
  give(node: string, handle: SocketHandle, connection: MovedConnection): Promise<boolean | undefined>
  /** Takes what others give to this process, while `isOpen`. */
  serve(isOpen: () => boolean, take: (handle: SocketHandle, connection: MovedConnection) => void): void
}

/** At a time. Until the primary has the socket of one, no other message leaves this process. */
const maxUnderWay = 16
/** How long another worker may take to say that it has one, in milliseconds. */
const takeMs = 10_000

/**
 * @param node the name that this process has for the others
 * @param clock the same at all of them
 */
export function createConnectionMoves(
  channel: WorkerChannel,
  node: string,
  clock: Clock = machineClock
): ConnectionMoves {
  let others: ReadonlySet<string> = new Set()
  let lastId = 0
  const given = new Map<number, (isTaken: boolean | undefined) => void>()

  function settle(id: number, isTaken: boolean | undefined): void {
    given.get(id)?.(isTaken)
    given.delete(id)
  }

  channel.on('nodes', ({ nodes }) => {
    others = new Set(nodes)
  })
  channel.on('given', ({ id, isTaken }) => settle(id, isTaken))
  channel.send({ kind: 'node', node })
  return {
    mayGive: (other) => others.has(other) && given.size < maxUnderWay,
    give(to, handle, connection) {
      const id = ++lastId
      const { promise, resolve } = Promise.withResolvers<boolean | undefined>()
      // What came while this process was held up is read before it gives up.
      const late = patientTimer(clock, takeMs, () => settle(id, undefined))
      given.set(id, (isTaken) => {
        late.close()
        resolve(isTaken)
      })
      // The second half of the time is for the answer.
      channel.sendSocket({ kind: 'give', id, to, connection, until: clock.now() + takeMs / 2 }, handle, (error) => {
        if (error !== null) settle(id, false)
      })
      return promise
    },
    serve(isOpen, take) {
      channel.on('take', ({ id, connection, until }, handle) => {
        const inTime = (): boolean => clock.now() < until
        const isTaken = handle !== undefined && isOpen() && inTime()
        channel.send({ kind: 'taken', id, isTaken }, 0, () => {
          // The answer may have waited for a primary that hangs.
          if (isTaken && inTime()) take(handle, connection)
          else handle?.close()
        })
      })
    }
  }
}
