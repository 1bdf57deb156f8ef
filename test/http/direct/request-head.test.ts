// The reader of heads against Node's own parser (llhttp): whatever it takes, Node reads alike; and it takes what
// clients send.

import fc from 'fast-check'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { readRequestHead } from '../../../src/http/direct/request-head.ts'
import { dial, untilClosed } from '../../kit/raw-http.ts'

const usual = [
  'POST /t/acme/mcp HTTP/1.1',
  'Host: 127.0.0.1:1',
  'Authorization: Bearer abc.def-ghi_jkl',
  'Content-Type: application/json',
  'Accept: application/json, text/event-stream',
  'Content-Length: 2'
]

/** What Node reads of a whole request on a connection of its own; undefined where it refuses it. */
async function readByNode(
  heads: readonly string[]
): Promise<Array<Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders'> | undefined>> {
  let seen: Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders'>[] = []
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      seen.push({ method: request.method ?? '', url: request.url ?? '', rawHeaders: request.rawHeaders })
      response.writeHead(200, { Connection: 'close' }).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const results = []
  for (const head of heads) {
    seen = []
    const socket = dial(port)
    const closed = untilClosed(socket)
    socket.write(`${head}\r\n\r\n${head.startsWith('POST') ? '{}' : ''}`, 'latin1')
    await closed
    results.push(seen.length === 1 ? seen[0] : undefined)
  }
  await new Promise((resolve) => server.close(resolve))
  return results
}

t.test('a usual request is read, with names in lower case and values without the blanks around them', async (t) => {
  const head = readRequestHead([...usual, 'Mcp-Name: \t a b\t ', 'X-Empty:'].join('\r\n'))
  t.match(head, { method: 'POST', url: '/t/acme/mcp', bodyLength: 2, keepAlive: true })
  t.equal(head?.headers['mcp-name'], 'a b')
  t.equal(head?.headers['x-empty'], '')
  t.equal(head?.headers.authorization, 'Bearer abc.def-ghi_jkl')
  t.same(head?.rawHeaders.slice(0, 4), ['Host', '127.0.0.1:1', 'Authorization', 'Bearer abc.def-ghi_jkl'])
  t.equal(readRequestHead([...usual, 'Connection: close'].join('\r\n'))?.keepAlive, false)
})

/** The same without a body. */
const remove = usual.map((line) => line.replace('POST', 'DELETE')).filter((line) => !line.startsWith('Content-Length'))

t.test('a DELETE without a body is read', async (t) => {
  t.match(readRequestHead(remove.join('\r\n')), {
    method: 'DELETE',
    url: '/t/acme/mcp',
    bodyLength: 0,
    keepAlive: true
  })
})

t.test('what leaves a doubt is left to Node', async (t) => {
  t.ok(readRequestHead(usual.join('\r\n')), 'the same without it is read')
  const without = (name: string): string[] => usual.filter((line) => !line.startsWith(name))
  const doubtful: ReadonlyArray<readonly string[]> = [
    ['GET /t/acme/mcp HTTP/1.1', ...usual.slice(1)],
    [...remove, 'Content-Length: 2'],
    [...remove, 'Content-Length: 0'],
    [...remove, 'Transfer-Encoding: chunked'],
    ['POST http://x/t/acme/mcp HTTP/1.1', ...usual.slice(1)],
    ['POST /t/acme/mcp HTTP/1.0', ...usual.slice(1)],
    ['POST  /t/acme/mcp HTTP/1.1', ...usual.slice(1)],
    without('Host'),
    without('Content-Length'),
    [...usual, 'Content-Length: 2'],
    [...usual, 'content-length: 3'],
    [...without('Content-Length'), 'Content-Length: +2'],
    [...without('Content-Length'), 'Content-Length: 2, 2'],
    [...without('Content-Length'), 'Content-Length: 02'],
    [...without('Content-Length'), 'Content-Length: 0x2'],
    [...usual, 'Transfer-Encoding: chunked'],
    [...without('Content-Length'), 'Transfer-Encoding: chunked'],
    [...usual, 'Transfer-Encoding : chunked'],
    [...usual, 'Expect: 100-continue'],
    [...usual, 'Upgrade: h2c'],
    [...usual, 'Proxy-Connection: close'],
    [...usual, ...Array.from({ length: 100 }, (_, at) => `X-${at}: x`)],
    [...usual, 'Connection: keep-alive, upgrade'],
    [...usual, ' folded: line'],
    [...usual, 'X-A: b\nTransfer-Encoding: chunked'],
    [...usual, 'X-A: b\rTransfer-Encoding: chunked'],
    [...usual, 'X-A: b\0'],
    [...usual, 'no colon'],
    [...usual, ': no name'],
    [...usual, 'X A: b']
  ]
  for (const lines of doubtful) t.equal(readRequestHead(lines.join('\r\n')), undefined, lines.join(' | '))
})

t.test('whatever is taken, Node reads alike', async (t) => {
  const char = fc.oneof(
    fc.constantFrom(...':\r\n\t ,;="\0\x7f\x80\xff-_aZ09/'),
    fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code))
  )
  const line = fc.constantFrom(
    'X-Any: value',
    'Connection: keep-alive',
    'connection:close',
    'Mcp-Name:  a ',
    '__proto__: x'
  )
  const edit = fc.record({ at: fc.nat(), cut: fc.nat({ max: 3 }), put: fc.array(char, { maxLength: 3 }) })
  const heads = fc.sample(
    fc
      .record({
        base: fc.constantFrom(usual, usual, remove),
        lines: fc.array(line, { maxLength: 3 }),
        edits: fc.array(edit, { maxLength: 2 })
      })
      .map(({ base, lines, edits }) => {
        let text = [...base, ...lines].join('\r\n')
        for (const { at, cut, put } of edits) {
          const place = at % text.length
          text = text.slice(0, place) + put.join('') + text.slice(place + cut)
        }
        return text
      }),
    600
  )
  const taken = heads.flatMap((text) => {
    const head = text.includes('\r\n\r\n') ? undefined : readRequestHead(text)
    return head?.bodyLength === (head?.method === 'DELETE' ? 0 : 2) ? [{ text, head }] : []
  })
  t.ok(taken.length > 100, `${taken.length} are taken`)
  t.ok(taken.length < heads.length, 'and some are not')
  const byNode = await readByNode(taken.map(({ text }) => text))
  for (const [at, { text, head }] of taken.entries())
    t.same({ method: head.method, url: head.url, rawHeaders: head.rawHeaders }, byNode[at], JSON.stringify(text))
})
