// Attack: bodies in chunks of one byte each, with and without a key. Each chunk is an event of its own, and takes more
// than a hundred bytes of memory.

import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import t from 'tap'
import { initializeBody } from '../kit/acme-gateway.ts'
import { dial, readRawResponse, untilClosed } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'
import { attacked, keys } from './kit.ts'

const chunked = (text: string, size: number): string =>
  (text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [])
    .map((part) => `${part.length.toString(16)}\r\n${part}\r\n`)
    .join('')

function head(origin: string, key: string | undefined): string {
  return (
    `POST /t/acme/mcp HTTP/1.1\r\nHost: ${new URL(origin).host}\r\nContent-Type: application/json\r\n` +
    'Accept: application/json, text/event-stream\r\n' +
    (key === undefined ? '' : `Authorization: Bearer ${key}\r\n`) +
    'Transfer-Encoding: chunked\r\n\r\n'
  )
}

function open(origin: string, key: string | undefined) {
  const socket: Socket = dial(Number(new URL(origin).port))
  let text = ''
  socket.on('data', (part: Buffer) => (text += part.toString()))
  socket.on('error', () => {})
  socket.write(head(origin, key))
  return { socket, text: () => text }
}

for (const [who, key, statuses] of [
  ['a caller', keys.attacker, [413]],
  // Where the pieces came together with the head, they are counted first.
  ['somebody without a key', undefined, [401, 413]]
] satisfies Array<[string, string | undefined, number[]]>)
  t.test(`the connection of ${who} who sends a body in thousands of tiny pieces is closed`, async (t) => {
    const gateway = await attacked(t)
    const { socket } = open(gateway.origin, key)
    socket.write('1\r\nx\r\n'.repeat(5_000))
    const answer = readRawResponse(await untilClosed(socket))
    t.ok(statuses.includes(answer.status), answer.head)
    if (key !== undefined) t.match(answer.text, /pieces.*Send it in larger ones/)
  })

t.test('a body in a few tiny pieces, and in many larger ones, is read', async (t) => {
  const gateway = await attacked(t)
  const initialize = initializeBody()
  const long = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { pad: 'x'.repeat(1_000_000) } })
  for (const [body, size, status] of [
    [initialize, 1, 200],
    [long, 1_000, 400]
  ] as const) {
    const { socket, text } = open(gateway.origin, keys.attacker)
    socket.write(`${chunked(body, size)}0\r\n\r\n`)
    await until('the answer', () => text().includes('\r\n\r\n'))
    // Read and understood: a ping of no session.
    t.equal(readRawResponse(text()).status, status, text())
    if (status === 400) t.match(text(), 'session_required')
    socket.destroy()
  }
})

for (const [who, key] of [
  ['a caller', keys.attacker],
  ['somebody without a key', undefined]
] as const)
  t.test(`what two hundred connections of ${who} send at once in tiny pieces is hardly worked on`, async (t) => {
    const gateway = await attacked(t)
    const cpuMs = (): number => {
      const fields = readFileSync(`/proc/${gateway.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
      return (Number(fields[11]) + Number(fields[12])) * 10
    }
    const pieces = '1\r\nx\r\n'.repeat(20_000)
    const before = cpuMs()
    await Promise.all(
      Array.from({ length: 200 }, () => {
        const { socket } = open(gateway.origin, key)
        socket.write(pieces)
        return new Promise((resolve) => socket.once('close', resolve))
      })
    )
    const spentMs = cpuMs() - before
    t.ok(spentMs < 1_800, `${spentMs} ms of CPU`)
    // Node's parsers are used again: they still read bodies.
    for (let n = 0; n < 20; n++) {
      const { socket, text } = open(gateway.origin, keys.attacker)
      socket.write(`${chunked(initializeBody(), 20)}0\r\n\r\n`)
      await until('the answer', () => text().includes('\r\n\r\n'))
      t.equal(readRawResponse(text()).status, 200)
      socket.destroy()
    }
  })

t.test('a neighbour does not notice a flood of them', async (t) => {
  const gateway = await attacked(t)
  const pieces = '1\r\nx\r\n'.repeat(200_000)
  const flood = () =>
    Promise.all(
      [keys.attacker, undefined, keys.attacker, undefined].map(async (key) => {
        const { socket } = open(gateway.origin, key)
        socket.write(pieces)
        await untilClosed(socket)
      })
    )
  // A machine that stops a process for a moment lets a call wait that nothing else has kept waiting.
  let longestMs = Infinity
  for (let runs = 0; runs < 3 && longestMs >= 3_000; runs++) {
    const neighbour = await gateway.neighbour()
    for (let round = 0; round < 5; round++) await flood()
    const measured = await neighbour.stop()
    t.same(measured.failures, [])
    longestMs = measured.longestMs
  }
  t.ok(longestMs < 3_000, `the longest call took ${longestMs} ms`)
})
