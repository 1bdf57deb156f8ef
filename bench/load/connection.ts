// One keep-alive connection of the load: a request at a time, opened again where the other side has closed it.

import { connect, type Socket } from 'node:net'
import { createReader } from './wire.ts'

export interface Answer {
  readonly head: string
  /** Good until the receiver returns. */
  readonly body: Buffer
}

export interface Connection {
  /** Never before the answer to the last one. */
  send(request: Buffer): void
  end(): void
}

const readBytes = 65_536

/** @param onAnswer may send the next request at once */
export function openConnection(
  { hostname, port }: { readonly hostname: string; readonly port: string },
  onAnswer: (head: string, body: Buffer) => void,
  onError: (error: Error) => void
): Connection {
  let socket: Socket | undefined
  let waiting = false
  const open = (): Socket => {
    const read = createReader((head, body) => {
      waiting = false
      // Servers close a connection after so many requests; the next one then takes a new connection.
      if (/\r\nconnection: *close/i.test(head)) socket = undefined
      onAnswer(head, body)
    })
    const opened = connect({
      host: hostname,
      port: Number(port),
      noDelay: true,
      // One buffer for all reads: nothing is allocated for an answer that comes in one piece.
      onread: {
        buffer: Buffer.allocUnsafe(readBytes),
        callback(length, buffer) {
          read((buffer as Buffer).subarray(0, length))
          return true
        }
      }
    })
    opened.on('error', (error) => {
      if (socket === opened) onError(error)
    })
    opened.on('close', () => {
      if (socket !== opened) return
      socket = undefined
      if (waiting) onError(new Error('the connection was closed before its answer'))
    })
    return opened
  }
  return {
    send(request) {
      waiting = true
      socket ??= open()
      socket.write(request)
    },
    end() {
      const last = socket
      socket = undefined
      last?.destroy()
    }
  }
}

/** One request and its answer, on a connection that is used again: for what is not measured. */
export function createCaller(url: URL): { ask(request: Buffer): Promise<Answer>; end(): void } {
  let settle: PromiseWithResolvers<Answer> | undefined
  const connection = openConnection(
    url,
    (head, body) => settle?.resolve({ head, body: Buffer.from(body) }),
    (error) => settle?.reject(error)
  )
  return {
    ask(request) {
      settle = Promise.withResolvers()
      connection.send(request)
      return settle.promise
    },
    end: () => connection.end()
  }
}
