// The reader of responses against Node's own parser (llhttp): what is valid reads alike however it is split, and what
// Node refuses is refused. Where ours is stricter stands in `stricter`.

import fc from 'fast-check'
import { createServer, type AddressInfo } from 'node:net'
import { request } from 'node:http'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { ResponseReader } from '../../src/upstream/http/response-reader.ts'

interface Read {
  readonly status: number
  readonly body: string
  readonly type: string | undefined
}

/** Whether the next request may go over the same socket. */
interface Own extends Read {
  readonly reusable: boolean
}

/** @param cuts where the bytes are split */
function read(text: string, cuts: readonly number[] = []): Own | string {
  const reader = new ResponseReader()
  reader.begin()
  const ends = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b)
  const parts: string[] = []
  let from = 0
  for (const end of [...ends, text.length]) {
    if (reader.complete || reader.fault !== undefined) break
    // As on a socket: what came before lies in the same memory.
    const bytes = Buffer.from(`${text.slice(from, end)}HTTP/1.1 200 OK\r\n`, 'latin1')
    let rest = bytes.subarray(0, end - from)
    while (rest.length > 0 && !reader.complete && reader.fault === undefined) {
      parts.push(reader.push(rest)?.toString('latin1') ?? '')
      rest = rest.subarray(reader.taken)
    }
    from = end
  }
  if (!reader.complete && reader.fault === undefined) reader.end()
  const { fault, status, contentType, reusable } = reader
  return fault ?? { status, body: parts.join(''), type: contentType, reusable: reusable && from === text.length }
}

/** Answers each connection with the bytes of its turn, and ends it. */
async function readByNode(texts: readonly string[]): Promise<Array<Read | string>> {
  let turn = 0
  const server = createServer((socket) => {
    socket.on('error', () => {})
    const text = texts[turn++] ?? ''
    socket.once('data', () => socket.end(text, 'latin1'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const results: Array<Read | string> = []
  for (const _ of texts) results.push(await nodeRead(port))
  await new Promise((resolve) => server.close(resolve))
  return results
}

function nodeRead(port: number): Promise<Read | string> {
  return new Promise((resolve) => {
    const asked = request({ port, host: '127.0.0.1', agent: false }, (answer) => {
      const parts: Buffer[] = []
      answer.on('data', (part: Buffer) => parts.push(part))
      answer.on('error', (error) => resolve(error.message))
      answer.on('end', () =>
        resolve({
          status: answer.statusCode ?? 0,
          body: Buffer.concat(parts).toString('latin1'),
          type: answer.headers['content-type']
        })
      )
    })
    asked.on('upgrade', (_answer, socket) => {
      socket.destroy()
      resolve('upgrade')
    })
    asked.on('error', (error) => resolve(error.message))
    asked.end()
  })
}

const body = fc.string({
  unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
  maxLength: 60
})
const chunked = (text: string, size: number): string => {
  let out = ''
  for (let at = 0; at < text.length; at += size) {
    const part = text.slice(at, at + size)
    out += `${part.length.toString(16)}\r\n${part}\r\n`
  }
  return `${out}0\r\n\r\n`
}
const header = fc.constantFrom(
  'Content-Type: application/json',
  'content-type:text/event-stream; charset=utf-8  ',
  'X-Empty:',
  'X-High: \xe4\xf6',
  'Date: Sun, 22 Nov 2026 17:00:00 GMT',
  'Connection: keep-alive',
  'Keep-Alive: timeout=5'
)
const valid = fc
  .record({
    status: fc.constantFrom('200 OK', '202 Accepted', '404', '500 Internal Server Error', '204 No Content'),
    interim: fc.constantFrom('', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n', 'HTTP/1.1 102 \r\n\r\n'),
    headers: fc.array(header, { maxLength: 5 }),
    body,
    framing: fc.constantFrom('length', 'chunked', 'close'),
    size: fc.integer({ min: 1, max: 20 })
  })
  .map(({ status, interim, headers, body, framing, size }) => {
    const empty = status.startsWith('204')
    const own = framing === 'length' ? [`Content-Length: ${empty ? 0 : body.length}`] : []
    if (framing === 'chunked' && !empty) own.push('Transfer-Encoding: chunked')
    const sent = empty ? '' : framing === 'chunked' ? chunked(body, size) : body
    return `${interim}HTTP/1.1 ${[status, ...headers, ...own].join('\r\n')}\r\n\r\n${sent}`
  })

const alike = (ours: Own | string, node: Read | string | undefined): boolean =>
  typeof ours === 'object' &&
  typeof node === 'object' &&
  ours.status === node.status &&
  ours.body === node.body &&
  ours.type === node.type

t.test('valid responses read as Node reads them, wherever they are split', async (t) => {
  const samples = fc.sample(fc.tuple(valid, fc.array(fc.nat(), { maxLength: 12 })), { numRuns: 200, seed: 7 })
  const expected = await readByNode(samples.map(([text]) => text))
  samples.forEach(([text, cuts], index) => {
    if (typeof expected[index] === 'string') t.fail(`Node refuses ${JSON.stringify(text)}: ${expected[index]}`)
    const bytewise = Array.from({ length: text.length }, (_, at) => at)
    for (const split of [[], cuts, bytewise]) {
      const ours = read(text, split)
      if (!alike(ours, expected[index])) t.same(ours, expected[index], JSON.stringify(text))
    }
  })
  t.equal(samples.length, 200)
})

/** What Node reads and ours does not. */
const stricter = new Set([
  'the connection ended before it was complete',
  'its Transfer-Encoding is not "chunked"',
  'its status line is malformed',
  'its Content-Length is not one number',
  'it does not begin with "HTTP/1."',
  'the size of a chunk is malformed',
  'a trailer is malformed',
  'a line ends without CR',
  'it changes the protocol, which was not asked for'
])

t.test('whatever Node refuses of a response that was tampered with, ours refuses', async (t) => {
  const piece = fc.constantFrom(
    '\r',
    '\n',
    '\0',
    ' ',
    ':',
    '\t',
    'x',
    '0',
    '-',
    '\r\n',
    'Content-Length: 3\r\n',
    '\x7f'
  )
  const tampered = fc
    .tuple(valid, fc.array(fc.record({ at: fc.nat(), cut: fc.nat(3), piece }), { minLength: 1, maxLength: 2 }))
    .map(([text, changes]) =>
      changes.reduce((now, { at, cut, piece }) => {
        // Where the framing is, not in the body.
        const place = at % Math.max(1, now.length)
        return now.slice(0, place) + piece + now.slice(place + cut)
      }, text)
    )
  const samples = fc.sample(tampered, { numRuns: 600, seed: 11 })
  const expected = await readByNode(samples)
  let refused = 0
  samples.forEach((text, index) => {
    const ours = read(text)
    const node = expected[index]
    const shown = `${JSON.stringify(text)}: ${JSON.stringify([ours, node])}`
    if (typeof node === 'string') {
      refused++
      // What follows the end of a response spoils the socket, not the response.
      if (typeof ours !== 'string' && ours.reusable) t.fail(`Node refuses ${shown}`)
    } else if (typeof ours === 'string') {
      if (!stricter.has(ours)) t.fail(`Node reads ${shown}`)
    } else if (!alike(ours, node)) t.fail(`they read in two ways ${shown}`)
  })
  t.ok(refused > 100, `${refused} were refused by both`)
})

t.test('what is kept of a head keeps nothing of the rest of it', async (t) => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const usedBytes = (): number => {
    gc()
    return process.memoryUsage().heapUsed
  }
  const value = 'v'.repeat(100)
  const long = `x-long: ${'x'.repeat(30_000)}`
  const count = 200
  const held: unknown[] = []
  const names = { sessionId: 'mcp-session-id', challenge: 'www-authenticate' } as const
  for (const [member, name] of Object.entries(names)) {
    const bytes = Buffer.from(`HTTP/1.1 200 OK\r\n${long}\r\n${name}: ${value}\r\ncontent-length: 0\r\n\r\n`)
    const kept = (): unknown => {
      const reader = new ResponseReader()
      reader.begin()
      let rest = Buffer.from(bytes)
      while (rest.length > 0) {
        reader.push(rest)
        rest = rest.subarray(reader.taken)
      }
      return reader[member as keyof typeof names]
    }
    t.equal(kept(), value, name)
    const before = usedBytes()
    held.push(...Array.from({ length: count }, kept))
    const each = (usedBytes() - before) / count
    t.ok(each < long.length / 4, `${Math.round(each)} bytes for each`)
  }
  t.equal(held.length, 2 * count)
})
