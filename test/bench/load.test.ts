// What the figures of the benches rest on: the load reads answers as they were sent, and an open loop hides no stall.

import { once } from 'node:events'
import { fork } from 'node:child_process'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import type { Job, Load } from '../../bench/load/load.ts'
import { createReader } from '../../bench/load/wire.ts'
import { answerTo, type Message } from '../../bench/peers/mcp.ts'

t.test('messages are read alike, however their bytes are cut', async (t) => {
  const wire = Buffer.from(
    'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello' +
      'HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n' +
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n' +
      'HTTP/1.1 204 No Content\r\n\r\n'
  )
  for (let size = 1; size <= wire.length; size++) {
    const seen: string[] = []
    const read = createReader((head, body) => seen.push(`${head.slice(9, 12)} ${body.toString()}`))
    for (let at = 0; at < wire.length; at += size) read(wire.subarray(at, at + size))
    t.same(seen, ['200 hello', '202 ', '200 abc0123456789abcdef', '204 '], `pieces of ${size} bytes`)
  }
})

/** Answers tools/list at once; every call waits until the server goes on after a pause, and none after it. */
async function stallingServer(stallMs: number): Promise<{ url: string; close(): void }> {
  let openAt = 0
  const server = createServer((socket) => {
    const read = createReader((_head, body) => {
      const message = JSON.parse(body.toString()) as Message
      const text = answerTo(message, 'modern', 4)
      const reply = (): void => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`)
      }
      if (message.method === 'tools/call' && openAt === 0) openAt = performance.now() + stallMs
      const leftMs = message.method === 'tools/call' ? openAt - performance.now() : 0
      if (leftMs > 0) setTimeout(reply, leftMs)
      else reply()
    })
    socket.on('data', read).on('error', () => socket.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/modern/4`, close: () => server.close() }
}

async function measured(t: { teardown(run: () => void): void }, rate: number | undefined): Promise<Load> {
  const { url, close } = await stallingServer(600)
  const child = fork(join(import.meta.dirname, '../../bench/load/load.ts'))
  t.teardown(() => {
    child.kill()
    close()
  })
  const target = { url, token: 'x', kind: 'modern-call', tool: 'echo', sessions: 1 } as const
  const job: Job = { target, connections: 1, warmMs: 0, ms: 1_000, rate, middle: [], servers: [] }
  child.send(job)
  const [{ load, error }] = (await once(child, 'message')) as [{ load?: Load; error?: string }]
  if (load === undefined) throw new Error(error)
  return load
}

t.test('a stall counts once in a closed loop, and for all whom it kept waiting in an open one', async (t) => {
  // A machine that stops one of the two processes leaves nothing of a run beside the stall: such a run says nothing.
  const shown = async (rate: number | undefined, isShown: (load: Load) => boolean): Promise<Load> => {
    let load = await measured(t, rate)
    for (let runs = 1; runs < 4 && !isShown(load); runs++) load = await measured(t, rate)
    return load
  }
  const closed = await shown(undefined, ({ operations, p50Ms }) => operations > 10 && p50Ms < 100)
  t.ok(closed.operations > 10, 'the server answers quickly but for the stall')
  t.ok(closed.p50Ms < 100, `half of the answers came in ${closed.p50Ms} ms`)
  const open = await shown(100, ({ p50Ms }) => p50Ms > 60)
  t.ok(open.p50Ms > 60, `half of the answers were awaited ${open.p50Ms} ms`)
})
