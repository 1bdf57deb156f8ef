// The scripted servers of both eras over Streamable HTTP, on bare sockets: they share a process with everybody who asks,
// and what they cost is not what a run is about.

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { createReader, headerOf } from '../../bench/load/wire.ts'
import { createMcpServer, type Json, type Peer, type Script } from '../kit/mcp-server.ts'
import type { ModernPeer } from '../kit/modern-peer.ts'
import { createModernServer, type ModernScript } from '../kit/modern-script.ts'
import type { Teardown } from '../kit/until.ts'

/** Takes the head and the body of each request. */
type Judge = (text: string) => void

interface Asked {
  readonly method: string
  readonly head: string
  readonly message: Json | undefined
}

type Answer = ReturnType<typeof answerOn>
type Handle = (asked: Asked, answer: Answer) => void

/** The one answer to a request: a body, or events until the last of them. */
function answerOn(socket: Socket) {
  let isStream = false
  let isOver = false
  const write = (text: string): void => {
    if (!socket.destroyed) socket.write(text)
  }
  return {
    /** Further header fields, each with its line break. */
    fields: '',
    /** Called where the other side is gone before the answer is whole. */
    gone: (): void => {},
    isOver: () => isOver,
    hasBegun: () => isStream,
    empty(status: string): void {
      isOver = true
      write(`HTTP/1.1 ${status}\r\n${this.fields}${status.startsWith('204') ? '' : 'Content-Length: 0\r\n'}\r\n`)
    },
    json(text: string, status = '200 OK'): void {
      isOver = true
      const length = Buffer.byteLength(text)
      write(
        `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\n${this.fields}Content-Length: ${length}\r\n\r\n${text}`
      )
    },
    /** Without a text: the head alone, where it was not sent. */
    event(text?: string, isLast = false): void {
      const fields = `Content-Type: text/event-stream\r\n${this.fields}Transfer-Encoding: chunked\r\n`
      const head = isStream ? '' : `HTTP/1.1 200 OK\r\n${fields}\r\n`
      isStream = true
      isOver ||= isLast
      const event = text === undefined ? '' : `data: ${text}\n\n`
      const chunk = event === '' ? '' : `${Buffer.byteLength(event).toString(16)}\r\n${event}\r\n`
      write(`${head}${chunk}${isLast ? '0\r\n\r\n' : ''}`)
    },
    drop: () => void socket.destroy()
  }
}

async function serve(t: Teardown, judge: Judge, handle: Handle): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    let last: Answer | undefined
    socket.on('error', () => socket.destroy()) // The gateway is gone, or has let go of it.
    socket.on('close', () => {
      sockets.delete(socket)
      if (last?.isOver() === false) last.gone()
    })
    socket.on(
      'data',
      createReader((head, bytes) => {
        const body = bytes.toString()
        judge(head)
        judge(body)
        const message = body === '' ? undefined : (JSON.parse(body) as Json)
        last = answerOn(socket)
        handle({ method: head.slice(0, head.indexOf(' ')), head, message }, last)
      })
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
}

/** Of the older era, with sessions; where `asEvents` says so, every answer is a stream. */
export async function startOld(t: Teardown, judge: Judge, script: Script & { readonly asEvents: boolean }) {
  const server = createMcpServer(script)
  const sessions = new Set<string>()
  const streams = new Map<Answer, string>()

  function peerOf(answer: Answer, session: string): Peer {
    return {
      reply(message) {
        const isFinal = message['method'] === undefined
        const text = JSON.stringify(message)
        if (isFinal && !script.asEvents && !answer.hasBegun()) answer.json(text)
        else answer.event(text, isFinal)
      },
      // A server request is for the session of the call; what changed concerns all.
      push(message) {
        for (const [stream, its] of streams)
          if (message['id'] === undefined || its === session) stream.event(JSON.stringify(message))
      },
      exit: answer.drop,
      raw: () => {}
    }
  }

  return await serve(t, judge, ({ method, head, message }, answer) => {
    const session = headerOf(head, 'mcp-session-id') ?? ''
    if (message?.['method'] === 'initialize') {
      const opened = randomUUID()
      sessions.add(opened)
      answer.fields = `Mcp-Session-Id: ${opened}\r\n`
    } else if (!sessions.has(session)) return answer.empty('404 Not Found')
    if (method === 'DELETE') {
      sessions.delete(session)
      return answer.empty('204 No Content')
    }
    if (method === 'GET') {
      streams.set(answer, session)
      answer.gone = () => void streams.delete(answer)
      return answer.event()
    }
    if (message === undefined) return answer.empty('405 Method Not Allowed')
    if (message['id'] === undefined || message['method'] === undefined) answer.empty('202 Accepted')
    server.received.length = 0 // Of a long run it would be all that was ever asked.
    server.receive(message, peerOf(answer, session))
  })
}

/** Of 2026-07-28. */
export async function startNew(t: Teardown, judge: Judge, script: ModernScript) {
  const server = createModernServer(script)

  return await serve(t, judge, ({ method, message }, answer) => {
    if (method !== 'POST' || message === undefined) return answer.empty('405 Method Not Allowed')
    const id = message['id'] as string | number | undefined
    if (id === undefined) answer.empty('202 Accepted')
    const peer: ModernPeer = {
      reply(reply, status = 200) {
        const isFinal = reply['method'] === undefined
        const text = JSON.stringify(reply)
        if (isFinal && !answer.hasBegun()) answer.json(text, status === 200 ? '200 OK' : `${status} Refused`)
        else answer.event(text, isFinal)
      },
      drop: answer.drop
    }
    if (id !== undefined) answer.gone = () => server.cancel(id, peer)
    server.received.length = 0
    server.receive(message, peer)
  })
}
