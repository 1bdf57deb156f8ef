// Limits the connections of the admin listener. If all are in use, a new one takes the place of the oldest connection
// without an accepted key, so that strangers cannot lock an operator out. Among connections with an accepted key, the
// owner of the most loses one. `http/sockets.ts` limits the connections of clients by the same eviction, and adds to it
// fairness between the networks of strangers, protection of running requests, and readiness.

import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { createFairEviction } from '../limits/limits.ts'

const maxAdminConnections = 256
/** One connection for so many file descriptors: clients, processes and upstreams need the others. */
const perAdminConnection = 16
/** One of so many connections is kept for newcomers, so that they can send their key. */
const perNewcomer = 8

export interface AdminPlaces {
  /** A request with an accepted key came on this connection. @param key the name of the key */
  letIn(socket: Socket, key: string): void
}

/** @param descriptors the file descriptors that the process may have open */
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
