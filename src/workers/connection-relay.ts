// The primary's part in the moves of connections: it knows which worker is which process of the gateway, and passes
// sockets on. A worker that ends has taken what it said it took, and nothing else.

import type { SocketHandle } from './channel.ts'
import type { PrimaryChannel } from './messages.ts'

interface Move {
  readonly from: PrimaryChannel
  /** Of the sender. */
  readonly id: number
  readonly to: PrimaryChannel
  readonly handle: SocketHandle
}

/** On their way to one worker. One that hangs takes none, and those beyond stay where they are. */
const maxUnderWay = 64

export function createConnectionRelay() {
  const nodes = new Map<string, PrimaryChannel>()
  const underWay = new Map<number, Move>()
  let lastId = 0

  function tellNodes(): void {
    for (const [node, channel] of nodes)
      channel.send({ kind: 'nodes', nodes: [...nodes.keys()].filter((other) => other !== node) })
  }

  function settle(id: number, isTaken: boolean): void {
    const move = underWay.get(id)
    if (move === undefined) return
    underWay.delete(id)
    move.handle.close()
    move.from.send({ kind: 'given', id: move.id, isTaken })
  }

  const isFull = (worker: PrimaryChannel): boolean =>
    [...underWay.values()].filter(({ to }) => to === worker).length >= maxUnderWay

  return {
    serve(channel: PrimaryChannel): void {
      channel.on('node', ({ node }) => {
        nodes.set(node, channel)
        tellNodes()
      })
      channel.on('give', ({ id: given, to: node, connection, until }, handle) => {
        const to = nodes.get(node)
        if (to === undefined || handle === undefined || isFull(to)) {
          handle?.close()
          return channel.send({ kind: 'given', id: given, isTaken: false })
        }
        const id = ++lastId
        underWay.set(id, { from: channel, id: given, to, handle })
        to.sendSocket({ kind: 'take', id, connection, until }, handle, (error) => {
          if (error !== null) settle(id, false)
        })
      })
      channel.on('taken', ({ id, isTaken }) => settle(id, isTaken))
      channel.onClosed(() => {
        for (const [node, each] of nodes) if (each === channel) nodes.delete(node)
        for (const [id, { to }] of underWay) if (to === channel) settle(id, false)
        tellNodes()
      })
    }
  }
}
