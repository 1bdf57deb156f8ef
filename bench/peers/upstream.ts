// Process of its own: MCP servers over Streamable HTTP, at /legacy/N and /modern/N with N tools each. On bare sockets:
// it shares its core with the load, and both together must cost less than what is measured.

import { randomUUID } from 'node:crypto'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { createReader, headerOf } from '../load/wire.ts'
import { progressEvents, progressMs } from '../messages.ts'
import { answerTo, type Era, type Message } from './mcp.ts'

const sessions = new Set<string>()

const server = createServer({ noDelay: true }, (socket) => {
  socket.on(
    'data',
    createReader((head, body) => answer(socket, head, body))
  )
  socket.on('error', () => socket.destroy()) // The other end is gone, and nobody is there to be answered.
})

function answer(socket: Socket, head: string, body: Buffer): void {
  const [, method, era, tools] = /^(\S+) \/(legacy|modern)\/(\d+) /.exec(head) ?? []
  if (era === undefined) return empty(socket, '404 Not Found')
  if (method === 'DELETE') {
    sessions.delete(headerOf(head, 'mcp-session-id') ?? '')
    return empty(socket, '204 No Content')
  }
  if (method !== 'POST') return empty(socket, '405 Method Not Allowed')
  const message = JSON.parse(body.toString()) as Message
  if (era === 'legacy') {
    if (message.method === 'initialize') {
      const session = randomUUID()
      sessions.add(session)
      return json(socket, answerTo(message, era, Number(tools)), `Mcp-Session-Id: ${session}\r\n`)
    }
    if (!sessions.has(headerOf(head, 'mcp-session-id') ?? '')) return empty(socket, '404 Not Found')
  }
  if (message.id === undefined) return empty(socket, '202 Accepted')
  const { params, method: called } = message
  if (called === 'tools/call' && params?.name === 'progress') return withProgress(socket, message, era as Era)
  json(socket, answerTo(message, era as Era, Number(tools)))
}

function empty(socket: Socket, status: string): void {
  socket.write(`HTTP/1.1 ${status}\r\n${status.startsWith('204') ? '' : 'Content-Length: 0\r\n'}\r\n`, 'latin1')
}

/** @param text ASCII */
function json(socket: Socket, text: string, fields = ''): void {
  socket.write(
    `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n${fields}Content-Length: ${text.length}\r\n\r\n${text}`,
    'latin1'
  )
}

const streamHead = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'

/** A stream: events at even intervals, then the answer. */
function withProgress(socket: Socket, message: Message, era: Era): void {
  const progressToken = message.params?._meta?.progressToken
  const write = (text: string, before = '', after = ''): void => {
    const event = `event: message\ndata: ${text}\n\n`
    socket.write(`${before}${event.length.toString(16)}\r\n${event}\r\n${after}`, 'latin1')
  }
  let progress = 0
  const timer = setInterval(() => {
    if (socket.destroyed) return clearInterval(timer)
    const params = { progressToken, progress: ++progress, total: progressEvents }
    const text = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params })
    if (progress < progressEvents) return write(text, progress === 1 ? streamHead : '')
    clearInterval(timer)
    write(text)
    write(answerTo(message, era, 0), '', '0\r\n\r\n')
  }, progressMs / progressEvents)
}

process.once('disconnect', () => process.exit())
server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
