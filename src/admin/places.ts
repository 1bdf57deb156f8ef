// The connections of the admin listener. Strangers take all places and lose them again: where none is free, the oldest
// connection on which nobody was let in is closed for a new one, so that nobody without a key keeps an operator out.
// Beside the strangers, whoever has most connections gives one up.

import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { createFairEviction } from '../limits/limits.ts'

const maxAdminConnections = 256
/** Part of the file descriptors that they may take: clients, processes and upstreams need the others. */
const perAdminConnection = 16
/** Part of the connections that those leave free who were let in: who comes next must be able to say who it is. */
const perNewcomer = 8

export interface AdminPlaces {
  /** A request with a right key came on it. @param key its name */
  letIn(socket: Socket, key: string): void
}

/** @param descriptors that the process may have open */
export function limitAdminConnections(server: Server, descriptors: number): AdminPlaces {
  const max = Math.max(2, Math.min(maxAdminConnections, Math.floor(descriptors / perAdminConnection)))
  const maxLetIn = max - Math.max(1, Math.floor(max / perNewcomer))
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
    if (strangers.size + owners.size >= max) close(strangers.values().next().value)
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
