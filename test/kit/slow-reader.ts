// A client that takes of an answer what its test says, on a bare socket, and the time that it is given for that.

import { getEventListeners } from 'node:events'
import { dial } from './raw-http.ts'
import { until, type Teardown } from './until.ts'

export interface SlowReader {
  /** What was taken so far. */
  text(): string
  /** Takes what comes, a piece now and then, until there is this in it. Rejects where the connection is closed. */
  takeUntil(text: string): Promise<unknown>
  /** Takes so many bytes more, a piece now and then. */
  take(bytes: number): Promise<unknown>
  /** Takes all that comes, at once. */
  takeAll(): void
  /** From now on only what it is told to. */
  pause(): void
  /** Was the connection closed by the other side? It is seen when all that had come was taken. */
  readonly closed: boolean
}

export interface ReaderRequest {
  readonly method: string
  readonly headers: Readonly<Record<string, unknown>>
  readonly body?: string
}

/** @param path with the request, on a connection of its own */
export function slowReader(
  t: Teardown,
  port: number,
  path: string,
  { method, headers, body }: ReaderRequest
): SlowReader {
  const socket = dial(port).pause()
  t.teardown(() => socket.destroy())
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
  const lines = Object.entries({ host: `127.0.0.1:${port}`, ...headers, ...length })
  const head = lines.map(([name, value]) => `${name}: ${String(value)}\r\n`).join('')
  socket.write(`${method} ${path} HTTP/1.1\r\n${head}\r\n${body ?? ''}`)
  let text = ''
  const add = (part: Buffer | null): void => {
    text += part?.toString('latin1') ?? ''
  }
  const taken = (what: string, isEnough: () => boolean): Promise<unknown> =>
    until(what, () => {
      if (isEnough()) return true
      if (socket.closed) throw new Error(`closed without ${what}; there was: ${text.slice(-500)}`)
      if (!socket.readableFlowing) add(socket.read() as Buffer | null)
      return false
    })
  return {
    text: () => text,
    takeUntil: (wanted) => taken(wanted, () => text.includes(wanted)),
    take(bytes) {
      const enough = text.length + bytes
      return taken(`${bytes} bytes`, () => text.length >= enough)
    },
    takeAll: () => void socket.on('data', add).resume(),
    pause: () => void socket.off('data', add).pause(),
    get closed() {
      return socket.closed
    }
  }
}

export interface HeldSignals {
  /** The times that were asked for since, in milliseconds. */
  readonly asked: readonly number[]
  /** How many of them somebody still waits for. */
  waiting(): number
  /** All of them are over. */
  runOut(): void
}

/** What is to be aborted by the system's clock is aborted when the test says so. It holds for the whole process. */
export function heldSignals(t: Teardown): HeldSignals {
  const asked: number[] = []
  const held: AbortController[] = []
  const { timeout } = AbortSignal
  AbortSignal.timeout = (ms) => {
    const controller = new AbortController()
    asked.push(ms)
    held.push(controller)
    return controller.signal
  }
  t.teardown(() => {
    AbortSignal.timeout = timeout
  })
  return {
    asked,
    waiting: () => held.filter(({ signal }) => getEventListeners(signal, 'abort').length > 0).length,
    runOut() {
      for (const controller of held.splice(0)) controller.abort()
    }
  }
}

/**
 * Takes a piece of each message, until what is sent waits in the gateway and no longer in the kernel.
 * @param heard sends a message, of which four may wait, to this reader and to one that takes all; resolves when that
 * one has it
 */
export async function fallBehind(slow: SlowReader, signals: HeldSignals, heard: () => Promise<unknown>): Promise<void> {
  let behind = 0
  // The kernel takes less than a tenth of that.
  for (let sent = 0; behind < 3; sent++) {
    if (sent === 1_000) throw new Error('everything that was sent has gone out')
    await heard()
    await slow.take(1)
    behind = signals.waiting() > 0 ? behind + 1 : 0
  }
}
