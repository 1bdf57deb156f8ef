// The connections of the admin listener. Strangers take all places and lose them again: where none is free, the oldest
// connection on which nobody was let in is closed for a new one, so that nobody without a key keeps an operator out.
// Beside the strangers, whoever has most connections gives one up.

import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { createFairEviction } from '../limits/limits.ts'

const maxAdminConnections = 256
/** Of them, on which somebody was let in: who comes next must be able to say who it is. */
const maxLetIn = 224

export interface AdminPlaces {
  /** A request with a right key came on it. @param key its name */
  letIn(socket: Socket, key: string): void
}

export function limitAdminConnections(server: Server): AdminPlaces {
  const strangers = new Set<Socket>()
  const owners = new Map<Socket, string>()
  const letIn = createFairEviction<Socket>({ perOwner: maxLetIn, perTenant: maxLetIn, max: maxLetIn })

  function forget(socket: Socket): void {
    strangers.delete(socket)
    const key = owners.get(socket)
    if (key !== undefined) letIn.delete('', key, socket)
    owners.delete(socket)
  }

  function close(socket: Socket | undefined): void {
    if (socket === undefined) return
    forget(socket)
    socket.destroy()
  }

  server.on('connection', (socket) => {
    if (strangers.size + owners.size >= maxAdminConnections) close(strangers.values().next().value)
    strangers.add(socket)
    socket.once('close', () => forget(socket))
  })

  return {
    letIn(socket, key) {
      if (socket.destroyed || owners.get(socket) === key) return
      forget(socket)
      close(letIn.evictFrom('', key)?.values().next().value)
      owners.set(socket, key)
      letIn.add('', key, socket)
    }
  }
}
