// Connections that go to the worker that has the session of their requests, and come from others
// (workers/connection-moves.ts). One that moves is idle: each of its requests was answered, and nothing more was read.

import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { SocketHandle } from '../../workers/channel.ts'
import type { ConnectionMoves } from '../../workers/connection-moves.ts'
import type { MovedConnection } from '../../workers/messages.ts'

/** Of one connection: sessions of several processes may take turns on it. */
const maxMoves = 4

/** Node has no other way to stop reading a socket at once, and to begin again. */
interface ReadHandle extends SocketHandle {
  reading: boolean
  readStart(): number
  readStop(): number
}

export interface MovableConnection extends MovedConnection {
  readonly socket: Socket
  /** The other process that has the session of the last request. */
  lastHome: string | undefined
  /** @returns whether it was idle, and is the caller's now */
  leave(): boolean
}

/** By which Node takes a connection that the system, or the primary, has accepted. */
interface ServerHandle {
  onconnection(status: 0, handle: SocketHandle): void
}

export type Moving = ReturnType<typeof createMoving>

/**
 * @param isOpen whether the server takes connections
 * @param serve a connection of which nothing is read yet
 */
export function createMoving(
  server: Server,
  moves: ConnectionMoves,
  isOpen: () => boolean,
  serve: (socket: Socket, connection: MovedConnection) => void
) {
  let arriving: MovedConnection | undefined
  const underWay = new Set<Socket>()

  moves.serve(isOpen, (handle, connection) => {
    const { _handle: listening } = server as unknown as { readonly _handle: ServerHandle | null }
    if (listening === null) return handle.close()
    arriving = connection
    listening.onconnection(0, handle)
    arriving = undefined
  })

  /** One that the other process does not take is served here. */
  function move(from: MovableConnection, home: string): void {
    if (!moves.mayGive(home) || !from.leave()) return
    const { socket, requests } = from
    const { _handle: handle } = socket as unknown as { readonly _handle: ReadHandle }
    const connection = { moves: from.moves + 1, requests }
    const fail = (): void => void socket.destroy()
    handle.reading = false
    handle.readStop()
    socket.setTimeout(0).on('error', fail)
    underWay.add(socket)
    void moves.give(home, handle, connection).then((isTaken) => {
      socket.off('error', fail)
      underWay.delete(socket)
      if (socket.destroyed) return
      if (isTaken === true) return fail()
      // The other process hangs: the client had better connect anew.
      if (isTaken === undefined) return socket.destroySoon()
      serve(socket, connection)
      handle.reading = true
      handle.readStart()
    })
  }

  return {
    /** What came along with the connection that the server is just told of; undefined where it is a new one. */
    get arriving() {
      return arriving
    },
    /** Follows the sessions of the requests, where two in a row live at the same other process. */
    follow(connection: MovableConnection, home: string | undefined): void {
      const isAgain = home === connection.lastHome
      connection.lastHome = home
      if (home === undefined || !isAgain || connection.moves >= maxMoves) return
      // Later: in this turn Node may begin to read the socket once more.
      setImmediate(move, connection, home)
    },
    /** Those under way: whoever takes one still has it. */
    closeAll(): void {
      for (const socket of underWay) socket.destroy()
    }
  }
}

/** Whether all that was read of it was taken, and all that was written has left. */
export const isIdle = (socket: Socket): boolean =>
  socket.readable && socket.writable && !socket.isPaused() && socket.readableLength === 0 && socket.writableLength === 0
