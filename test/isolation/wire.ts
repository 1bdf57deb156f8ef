// Requests of everybody, over a few connections that whoever comes next uses again, as behind a proxy: what stays behind
// on a connection would reach somebody of another tenant. Bare sockets, so that a long run is one of the gateway.

import type { OutgoingHttpHeaders } from 'node:http'
import { openConnection, type Connection } from '../../bench/load/connection.ts'
import { eventsOf, type Sent } from '../kit/client.ts'
import type { Json } from '../kit/server-request.ts'
import type { Teardown } from '../kit/until.ts'

export interface Heard {
  readonly status: number
  /** Status line and header fields. */
  readonly head: string
  readonly text: string
  /** Of JSON or of a stream: the last message; undefined where there is none. */
  readonly last: () => Json | undefined
}

export interface Wire {
  /** @throws where the connection ends without an answer */
  ask(url: string, sent: Sent): Promise<Heard>
  /** How many requests were sent so far. */
  readonly requests: number
}

/** A server closes a connection that was idle for longer, perhaps just when the next request comes. */
const maxIdleMs = 1_000

interface Line {
  readonly connection: Connection
  usedAt: number
  answer: PromiseWithResolvers<Heard>
}

export function createWire(t: Teardown): Wire {
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

  return {
    get requests() {
      return requests
    },
    async ask(target, { method = 'POST', headers = {}, body = '' }) {
      const url = new URL(target)
      const free = idle.get(url.host) ?? []
      idle.set(url.host, free)
      while (free[0] !== undefined && performance.now() - free[0].usedAt > maxIdleMs) drop(free.shift())
      // Whoever had it last is left to chance.
      const line = free.shift() ?? openLine(url)
      line.answer = Promise.withResolvers()
      requests++
      line.connection.send(Buffer.from(requestText(url, method, headers, String(body))))
      const heard = await line.answer.promise
      line.usedAt = performance.now()
      free.push(line)
      return heard
    }
  }
}

function requestText({ host, pathname, search }: URL, method: string, headers: OutgoingHttpHeaders, body: string) {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}\r\n`)
  const length = method === 'GET' ? '' : `content-length: ${Buffer.byteLength(body)}\r\n`
  return `${method} ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\n${fields.join('')}${length}\r\n${body}`
}

function heardOf(head: string, body: Buffer): Heard {
  const text = body.toString()
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
