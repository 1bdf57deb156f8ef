// HTTP as bytes on a socket: for what no client library would send, and for what one would hide of the answer.

import { connect, type Socket } from 'node:net'
import { patienceMs } from './until.ts'

export interface RawResponse {
  readonly status: number
  /** Status line and headers as they came. */
  readonly head: string
  header(name: string): string | undefined
  readonly body: string
  readonly text: string
}

/** Sends the bytes and reads until the other side closes. Rejects where it does not within `ms`. */
export async function rawExchange(port: number, bytes: string | Buffer, ms = patienceMs): Promise<RawResponse> {
  const socket = dial(port)
  socket.write(bytes)
  const text = await untilClosed(socket, ms)
  return readRawResponse(text)
}

/** @param from the address on this machine that it comes from; on Linux all of 127.0.0.0/8 are */
export function dial(port: number, from = '127.0.0.1'): Socket {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from })
  socket.on('error', () => {}) // A reset is one way to close: the test looks at what came before it.
  return socket
}

/** Everything that comes on the socket until it is closed. */
export function untilClosed(socket: Socket, ms = patienceMs): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const late = setTimeout(() => {
      socket.destroy()
      reject(new Error(`the connection was still open after ${ms} ms; there was: ${text.slice(0, 500)}`))
    }, ms)
    socket.setEncoding('utf8')
    socket.on('data', (part: string) => {
      text += part
    })
    socket.once('close', () => {
      clearTimeout(late)
      resolve(text)
    })
  })
}

export function readRawResponse(text: string): RawResponse {
  const end = text.indexOf('\r\n\r\n')
  const head = end === -1 ? text : text.slice(0, end)
  return {
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0),
    head,
    header: (name) =>
      head
        .split('\r\n')
        .slice(1)
        .find((line) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`))
        ?.slice(name.length + 1)
        .trim(),
    body: end === -1 ? '' : text.slice(end + 4),
    text
  }
}
