// The network to a server on this machine, which a test can cut, slow down or break.

import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Teardown } from './until.ts'

export interface TcpLink {
  /** Leads to this server. @returns the URL to use instead of its own */
  to(url: string): string
  /** From now on nothing passes, and nobody is told: connections stay open, and new ones open. */
  cut(): void
  /** Every connection begins anew, and each piece of what passes takes so long. */
  pass(delayMs?: number): void
}

export async function tcpLink(t: Teardown): Promise<TcpLink> {
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
      const through = new URL(url)
      port = Number(through.port)
      through.port = String((server.address() as AddressInfo).port)
      return through.href
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
