// The network between one gateway and Redis, which a test can cut or slow down.

import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Teardown } from './until.ts'

export interface RedisLink {
  /** Leads to this server. @returns the address that the gateway uses */
  to(url: string): string
  /** From now on nothing passes, and nobody is told: connections stay open, and new ones open. */
  cut(): void
  /** Every connection begins anew, and each piece of what passes takes so long. */
  pass(delayMs?: number): void
}

export async function redisLink(t: Teardown): Promise<RedisLink> {
  const sockets = new Set<Socket>()
  let port = 0
  let isCut = false
  let delay = 0
  const hold = (socket: Socket, other: Socket): void => {
    sockets.add(socket)
    socket.on('error', () => {}) // Its close says the same.
    socket.on('close', () => {
      sockets.delete(socket)
      other.destroy()
    })
    socket.on('data', (chunk) => {
      if (isCut) return
      setTimeout(() => {
        if (other.writable) other.write(chunk)
      }, delay)
    })
  }
  const server = createServer((socket) => {
    const onward = connect(port, '127.0.0.1')
    hold(socket, onward)
    hold(onward, socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const destroyAll = (): void => {
    for (const socket of [...sockets]) socket.destroy()
  }
  t.teardown(() => {
    server.close()
    destroyAll()
  })
  return {
    to(url) {
      port = Number(new URL(url).port)
      return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`
    },
    cut() {
      isCut = true
    },
    pass(delayMs = 0) {
      isCut = false
      delay = delayMs
      destroyAll()
    }
  }
}
