// One end of the channel between a worker and its primary: typed messages in order, sockets with them, and the bytes
// that wait to be written counted.

import type { EventEmitter } from 'node:events'

/** `process` in a worker, a `Worker` of node:cluster in the primary. */
export interface ChannelEnd extends Pick<EventEmitter, 'on' | 'once'> {
  send?:
    | ((message: Kind, handle?: never, options?: object, written?: (error: Error | null) => void) => boolean)
    | undefined
}

interface Kind {
  readonly kind: string
}

/** Of Node, below a socket: what it reads and writes by, and what is sent to another process. */
export interface SocketHandle {
  close(): void
}

type Taker<In extends Kind> = (message: In, handle: SocketHandle | undefined) => void

/** What a message takes beside its texts, in bytes; an estimate. */
const messageBytes = 128

export interface Channel<In extends Kind, Out extends Kind> {
  /** What was given to `send` and is not written yet, in bytes. */
  readonly waitingBytes: number
  readonly isOpen: boolean
  /**
   * Never throws: a message to an end that is gone is dropped.
   * @param bytes of its texts
   * @param written called when it is written, or dropped
   */
  send(message: Out, bytes?: number, written?: () => void): void
  /** Sends a socket, which stays open here, too. */
  sendSocket(message: Out, handle: SocketHandle, sent: (error: Error | null) => void): void
  /** There is one taker for each kind. What came before it is taken, too. */
  on<Name extends In['kind']>(kind: Name, take: Taker<Extract<In, { kind: Name }>>): void
  /** Calls it when the channel is closed, at once where it is. */
  onClosed(closed: () => void): void
}

export function openChannel<In extends Kind, Out extends Kind>(end: ChannelEnd): Channel<In, Out> {
  const takers = new Map<string, Taker<In>>()
  /** Of kinds that nobody takes yet: a process that starts takes them one after the other. */
  const early: Array<{ readonly message: In; readonly handle: SocketHandle | undefined }> = []
  const closers: Array<() => void> = []
  let waitingBytes = 0
  let isOpen = true

  end.on('message', (message: In, handle?: SocketHandle) => {
    const take = takers.get(message.kind)
    if (take === undefined) early.push({ message, handle })
    else take(message, handle)
  })
  end.once('disconnect', () => {
    isOpen = false
    for (const closed of closers) closed()
  })

  return {
    get waitingBytes() {
      return waitingBytes
    },
    get isOpen() {
      return isOpen
    },
    send(message, bytes = 0, written) {
      const size = messageBytes + bytes
      waitingBytes += size
      const done = (): void => {
        waitingBytes -= size
        written?.()
      }
      if (isOpen) end.send?.(message, undefined, {}, done)
      else done()
    },
    sendSocket(message, handle, sent) {
      if (isOpen) end.send?.(message, handle as never, {}, sent)
      else sent(new Error('The channel is closed.'))
    },
    on(kind, take) {
      takers.set(kind, take as Taker<In>)
      const mine = early.filter(({ message }) => message.kind === kind)
      for (const each of mine) early.splice(early.indexOf(each), 1)
      for (const { message, handle } of mine) (take as Taker<In>)(message, handle)
    },
    onClosed(closed) {
      if (isOpen) closers.push(closed)
      else closed()
    }
  }
}
