// Requests of everybody, over a few connections that whoever comes next uses again, as behind a proxy: what stays behind
// on a connection would reach somebody of another tenant. Bare sockets, and requests that are made once and sent again,
// so that a long run is one of the gateway.

import { openConnection, type Connection } from '../../bench/load/connection.ts'
import { eventsOf, type Sent } from '../kit/client.ts'
import type { Json } from '../kit/server-request.ts'
import type { Teardown } from '../kit/until.ts'

export interface Heard {
  readonly status: number
  /** Status line and header fields. */
  readonly head: string
  /** In latin1: what it is searched for, and what is taken from it, is ASCII. */
  readonly text: string
  /** Of JSON or of a stream: the last message; undefined where there is none. */
  readonly last: () => Json | undefined
}

export interface Wire {
  /** @throws where the connection ends without an answer */
  ask(url: string, sent: Sent): Promise<Heard>
  /**
   * A request that is made where it was not before, and gets another id each time.
   * @param make each id in its body ends with `freshId`
   */
  askAgain(url: string, made: MadeRequests, key: string, make: () => Sent): Promise<Heard>
  /** How many requests were sent so far. */
  readonly requests: number
}

/** Requests as bytes, by what makes them what they are. Whoever has it waits for each answer before the next request. */
export type MadeRequests = Map<string, { readonly bytes: Buffer; readonly idsAt: readonly number[] }>
/** At the end of an id. */
export const freshId = '-000000000"'
/** What is said once only is forgotten with the rest. */
const maxMade = 500

/** The gateway closes a connection that was idle for some 70 seconds, perhaps just when the next request comes. */
const maxIdleMs = 20_000

interface Line {
  readonly connection: Connection
  usedAt: number
  answer: PromiseWithResolvers<Heard>
}

export function createWire(t: Teardown): Wire {
  const urls = new Map<string, URL>()
  const idle = new Map<string, Line[]>()
  const all = new Set<Connection>()
  let requests = 0
  t.teardown(() => all.forEach((each) => each.end()))

  function openLine(url: URL): Line {
    const line: Line = {
      connection: openConnection(
        url,
        (head, body) => line.answer.resolve(heardOf(head, body)),
        (error) => line.answer.reject(error)
      ),
      usedAt: 0,
      answer: Promise.withResolvers()
    }
    all.add(line.connection)
    return line
  }

  function drop(line: Line | undefined): void {
    if (line === undefined) return
    all.delete(line.connection)
    line.connection.end()
  }

  function urlOf(target: string): URL {
    const known = urls.get(target) ?? new URL(target)
    urls.set(target, known)
    return known
  }

  async function exchange(url: URL, bytes: Buffer): Promise<Heard> {
    const free = idle.get(url.host) ?? []
    idle.set(url.host, free)
    const now = performance.now()
    while (free[0] !== undefined && now - free[0].usedAt > maxIdleMs) drop(free.shift())
    // Whoever had it last is left to chance.
    const line = free.shift() ?? openLine(url)
    line.answer = Promise.withResolvers()
    requests++
    line.connection.send(bytes)
    const heard = await line.answer.promise
    line.usedAt = performance.now()
    free.push(line)
    return heard
  }

  return {
    get requests() {
      return requests
    },
    ask(target, sent) {
      const url = urlOf(target)
      return exchange(url, bytesOf(url, sent))
    },
    askAgain(target, made, key, make) {
      const url = urlOf(target)
      const known = `${target} ${key}`
      let request = made.get(known)
      if (request === undefined) {
        if (made.size >= maxMade) made.clear()
        const bytes = bytesOf(url, make())
        made.set(known, (request = { bytes, idsAt: idsIn(bytes) }))
      }
      const id = String(requests).padStart(freshId.length - 2, '0')
      for (const at of request.idsAt) request.bytes.write(id, at, 'latin1')
      return exchange(url, request.bytes)
    }
  }
}

function idsIn(bytes: Buffer): number[] {
  const found: number[] = []
  for (let at = bytes.indexOf(freshId); at !== -1; at = bytes.indexOf(freshId, at + 1)) found.push(at + 1)
  return found
}

function bytesOf({ host, pathname, search }: URL, { method = 'POST', headers = {}, body = '' }: Sent): Buffer {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}\r\n`)
  const length = method === 'POST' ? `content-length: ${Buffer.byteLength(body)}\r\n` : ''
  const head = `${method} ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\n${fields.join('')}${length}\r\n`
  return Buffer.from(head + String(body))
}

function heardOf(head: string, body: Buffer): Heard {
  const text = body.toString('latin1')
  return {
    status: Number(head.slice(9, 12)),
    head,
    text,
    last: () => {
      if (text === '') return undefined
      return (text.startsWith('{') ? JSON.parse(text) : eventsOf(text).at(-1)) as Json | undefined
    }
  }
}
