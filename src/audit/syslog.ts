// Audit records to a syslog server (RFC 5424), each as the message of one entry: over TCP or TLS (RFC 5425), or a Unix
// socket of streams, always with octet counting (RFC 6587 section 3.4.1). One connection has all those of the process.

import type { Socket } from 'node:net'
import { hostname } from 'node:os'
import type { SyslogConfig } from '../config/snapshot.ts'
import { openSocket } from '../egress/sockets.ts'
import type { Clock } from '../time/clock.ts'
import { readRecord } from './record-fields.ts'
import type { WriteLines } from './writes.ts'

/** The longest time for sending, connecting included, in milliseconds. */
const maxSendMs = 5_000
/** RFC 5424 section 6.2.1: informational. */
const severity = 6

export function createSyslogSink({ to, facility }: SyslogConfig, clock: Clock) {
  const host =
    hostname()
      .replaceAll(/[^\x21-\x7e]/g, '')
      .slice(0, 255) || '-'
  let connection: Socket | undefined
  let last = Promise.resolve()

  function open(): Socket {
    const socket = openSocket(new URL(to))
    const gone = (): void => {
      if (connection === socket) connection = undefined
    }
    socket.on('close', gone).on('error', gone)
    // A server says nothing; what it does say is not read for ever.
    socket.resume()
    return (connection = socket)
  }

  /** RFC 5424 section 6: HEADER, no STRUCTURED-DATA, and the record to the letter. */
  function entryOf(line: string): string {
    const { time, kind } = readRecord(line)
    const text = `<${facility * 8 + severity}>1 ${time} ${host} gatehouse ${process.pid} ${kind} - ${line}`
    return `${Buffer.byteLength(text)} ${text}`
  }

  function send(lines: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const socket = connection ?? open()
    const fail = (error: Error): void => {
      socket.destroy()
      reject(error)
    }
    const onClose = (): void => fail(new Error('the syslog server has closed the connection'))
    const timer = clock.timer(maxSendMs, () => fail(new Error('the syslog server takes nothing')))
    socket.once('error', fail).once('close', onClose)
    socket.write(lines.split('\n').filter(Boolean).map(entryOf).join(''), (error) => (error ? fail(error) : resolve()))
    return promise.finally(() => {
      timer.close()
      socket.off('error', fail).off('close', onClose)
    })
  }

  return {
    /** One after the other: what a broken connection has lost is sent again before what comes later. */
    write: ((lines) => {
      const next = last.then(() => send(lines))
      last = next.catch(() => undefined)
      return next
    }) satisfies WriteLines,
    close: () => void connection?.end()
  }
}
