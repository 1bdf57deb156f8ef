// Streams of server-sent events (WHATWG HTML 9.2) about what happens now. Nothing is kept for a client that is away,
// and a client that does not read is disconnected. A stream ends when its administrator loses access.

import type { ServerResponse } from 'node:http'
import { createDelay, every, type Clock } from '../../time/clock.ts'
import type { Administrator } from '../access.ts'
import { AdminProblem } from '../problem.ts'
import type { AdminStream } from '../route.ts'

const maxStreams = 32
const maxStreamsPerKey = 4
/** The most streams of administrators of one tenant. */
const maxStreamsPerTenant = 8
/** Streams that are reserved for administrators of all tenants. */
const keptStreams = 8
/** The most bytes that wait for a reader that does not read. */
const maxUnreadBytes = 1024 * 1024
/** How long such a client may take to read why it is disconnected; the interval of keep-alives. In milliseconds. */
const lastWordMs = 5_000
const keepAliveMs = 15_000
/** The time after which the stream of a removed key ends, where nothing happens, in milliseconds. */
const recheckMs = 1_000

type End = 'slow' | 'access' | 'closing'

interface EventStreamsOptions {
  readonly clock: Clock
  /** Whether the key or the rules that let an administrator in are unchanged. */
  readonly isLetIn: (administrator: Administrator) => boolean
}

export function createEventStreams({ clock, isLetIn }: EventStreamsOptions) {
  const open = new Map<() => void, Administrator>()
  let isClosing = false

  function checkRoom({ name, tenants }: Administrator): void {
    const all = [...open.values()]
    const own = all.filter((each) => each.name === name).length
    const max = tenants === undefined ? maxStreams : maxStreams - keptStreams
    const ofTenant = (id: string): number => all.filter((each) => each.tenants?.has(id)).length
    const isFull = [...(tenants ?? [])].some((id) => ofTenant(id) >= maxStreamsPerTenant)
    if (!isClosing && all.length < max && own < maxStreamsPerKey && !isFull) return
    throw new AdminProblem('rate_limited', 'Too many streams of events are open.', 'Close one that is not read.', {
      headers: { 'Retry-After': '10' }
    })
  }

  return {
    /** @throws AdminProblem rate_limited, before anything is sent */
    serve(
      raw: ServerResponse,
      headers: Readonly<Record<string, string>>,
      who: Administrator,
      stream: AdminStream
    ): void {
      try {
        checkRoom(who)
      } catch (error) {
        stream.unopened()
        throw error
      }
      // Its end was told while the route was busy, and is not told again.
      if (raw.destroyed) return stream.unopened()
      let hasEnded = false
      let stop: (() => void) | undefined
      const lastWord = createDelay(clock)
      function end(reason: End): void {
        if (hasEnded) return
        write('end', JSON.stringify({ reason }))
        finish()
        raw.end()
        lastWord.start(lastWordMs, () => raw.destroy())
      }
      function write(event: string, data: string): void {
        if (hasEnded || raw.destroyed) return
        raw.write(`event: ${event}\ndata: ${data}\n\n`)
      }
      function finish(): void {
        if (hasEnded) return
        hasEnded = true
        stop?.()
        keepAlive.close()
        recheck.close()
        open.delete(close)
      }
      const check = (): boolean => {
        if (!hasEnded && !isLetIn(who)) end('access')
        return !hasEnded
      }
      const close = (): void => end('closing')
      const keepAlive = every(clock, keepAliveMs, () => raw.write(': still here\n\n'))
      const recheck = every(clock, recheckMs, check)
      open.set(close, who)
      raw.once('close', () => {
        finish()
        lastWord.close()
      })
      raw.writeHead(200, { ...headers, 'Content-Type': 'text/event-stream; charset=utf-8' })
      raw.write('retry: 3000\n\n')
      stop = stream.open(
        (event, data) => {
          if (!check()) return
          if (raw.writableLength + data.length > maxUnreadBytes) end('slow')
          else write(event, data)
        },
        () => {
          finish()
          raw.end()
        }
      )
      // What it told at once was too long for the reader.
      if (hasEnded) stop()
    },
    close(): void {
      isClosing = true
      for (const each of [...open.keys()]) each()
    }
  }
}
