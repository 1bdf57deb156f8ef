// What comes on a socket of an upstream, byte by byte: what is no response is refused, what ends a response well leaves
// the socket to the next request, and nothing that came ahead of a request is its answer.

import { createServer, type AddressInfo, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { createSocketPool } from '../../src/upstream/http/socket-pool.ts'
import { until } from '../kit/until.ts'

type Heard =
  | { readonly status: number; readonly body: string; readonly type?: string | undefined }
  | { readonly failed: string; readonly sent: boolean }

interface Scripted {
  /** One after the other. */
  readonly ask: (body?: string | null) => Promise<Heard>
  readonly sockets: Socket[]
  /** What came to the server. */
  readonly got: () => string
  /** Answers the next requests. */
  answer: (socket: Socket, request: number) => unknown
}

async function scripted(t: Test): Promise<Scripted> {
  const sockets: Socket[] = []
  const texts: Buffer[] = []
  let requests = 0
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    socket.on('data', (part) => {
      texts.push(part)
      if (!part.toString('latin1').includes('HTTP/1.1\r\n')) return
      script.answer(socket, ++requests)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const pool = createSocketPool(new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), 10_000)
  t.teardown(() => {
    pool.destroy()
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const script: Scripted = {
    sockets,
    got: () => Buffer.concat(texts).toString(),
    answer: (socket) => socket.write(ok('one')),
    ask: (body = null) =>
      new Promise((resolve) => {
        const parts: string[] = []
        let sent = false
        let begun: { status: number; type?: string } | undefined
        pool.send('POST / HTTP/1.1\r\n\r\n', {
          owner: { tenant: 'acme', caller: 'ada' },
          start: () => {
            sent = true
            return body
          },
          received({ status, complete, contentType }, part) {
            if (status > 0) begun ??= { status, ...(contentType !== undefined && { type: contentType }) }
            if (part !== undefined) parts.push(part.toString())
            if (complete) resolve({ status: 0, ...begun, body: parts.join('') })
          },
          failed: ({ message }) => resolve({ failed: message, sent })
        })
      })
  }
  return script
}

const ok = (body: string, headers = ''): string =>
  `HTTP/1.1 200 OK\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`
const head = (...lines: string[]): string => `HTTP/1.1 200 OK\r\n${lines.join('\r\n')}\r\n\r\n`

const malformed: Record<string, string> = {
  'two lengths': head('Content-Length: 2', 'Content-Length: 2') + 'ab',
  'two lengths that differ': head('Content-Length: 2', 'Content-Length: 3') + 'ab',
  'a list of lengths': head('Content-Length: 2, 2') + 'ab',
  'a length with a sign': head('Content-Length: +2') + 'ab',
  'a length and chunks': head('Content-Length: 2', 'Transfer-Encoding: chunked') + '2\r\nab\r\n0\r\n\r\n',
  'chunks and a length': head('Transfer-Encoding: chunked', 'Content-Length: 2') + '2\r\nab\r\n0\r\n\r\n',
  'chunked twice': head('Transfer-Encoding: chunked, chunked') + '2\r\nab\r\n0\r\n\r\n',
  'another coding': head('Transfer-Encoding: gzip') + 'ab',
  'a chunk with a size that is none': head('Transfer-Encoding: chunked') + '0x2\r\nab\r\n0\r\n\r\n',
  'a chunk with a negative size': head('Transfer-Encoding: chunked') + '-2\r\nab\r\n0\r\n\r\n',
  'a chunk with an enormous size': head('Transfer-Encoding: chunked') + 'fffffffffffffffff\r\nab',
  'a chunk that is longer than it says': head('Transfer-Encoding: chunked') + '2\r\nabc\r\n0\r\n\r\n',
  'a header over two lines': head('X-A: b', ' c', 'Content-Length: 2') + 'ab',
  'a line that ends with LF alone': 'HTTP/1.1 200 OK\nContent-Length: 2\n\nab',
  'a CR within a header': head('X-A: b\rContent-Length: 9', 'Content-Length: 2') + 'ab',
  'a NUL within a header': head('X-A: b\0c', 'Content-Length: 2') + 'ab',
  'a space before the colon': head('Content-Length : 2') + 'ab',
  'a header without a name': head(': b', 'Content-Length: 2') + 'ab',
  'another protocol': 'SSH-2.0-OpenSSH_9.9',
  'another version': 'HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nab',
  'another protocol after an upgrade': 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n',
  'a head that is too large': head(...Array.from({ length: 40 }, (_, n) => `X-${n}: ${'a'.repeat(900)}`)),
  'one header that does not end': `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(40_000)}`
}

for (const [what, text] of Object.entries(malformed)) {
  t.test(`${what}: refused, and the socket is closed`, async (t) => {
    const script = await scripted(t)
    script.answer = (socket) => socket.write(text, 'latin1')
    t.match(await script.ask(), { failed: /./, sent: true })
    await until('its socket is closed', () => script.sockets[0]?.closed === true)
    script.answer = (socket) => socket.write(ok('fine'))
    t.same(await script.ask(), { status: 200, body: 'fine' }, 'another request is answered')
    t.equal(script.sockets.length, 2)
  })
}

const wellFormed: Record<string, string> = {
  'a length': ok('ab'),
  chunks: head('Transfer-Encoding: Chunked') + '1\r\na\r\n001;name="v"\r\nb\r\n0\r\nX-Trailer: c\r\n\r\n',
  'interim responses': `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${ok('ab')}`,
  'headers as servers write them': ok('ab', 'Server:\r\nX-High: \xe4\r\nContent-TYPE: \ta b \t\r\n')
}

for (const [what, text] of Object.entries(wellFormed)) {
  t.test(`${what}: read, whole and byte by byte, over one socket`, async (t) => {
    const script = await scripted(t)
    script.answer = (socket) => socket.write(text, 'latin1')
    const whole = await script.ask()
    t.match(whole, { status: 200, body: 'ab', ...(text.includes('TYPE') && { type: 'a b' }) })
    script.answer = async (socket) => {
      for (const byte of Buffer.from(text, 'latin1')) {
        await new Promise((resolve) => socket.write(Buffer.of(byte), resolve))
        await new Promise(setImmediate)
      }
    }
    t.same(await script.ask(), whole, 'its head is told once it is complete')
    t.equal(script.sockets.length, 1)
  })
}

t.test('204 and 304 have no body, whatever they say', async (t) => {
  const script = await scripted(t)
  script.answer = (socket, request) =>
    socket.write(`HTTP/1.1 ${request === 1 ? 204 : 304} x\r\nContent-Length: ${request === 1 ? 0 : 5}\r\n\r\n`)
  t.same(
    [await script.ask(), await script.ask()],
    [
      { status: 204, body: '' },
      { status: 304, body: '' }
    ]
  )
  t.equal(script.sockets.length, 1)
})

t.test('without a length a body ends with the connection; with one, it must not end before', async (t) => {
  const script = await scripted(t)
  script.answer = (socket) => socket.end(`${head('X-A: b')}all of it`)
  t.same(await script.ask(), { status: 200, body: 'all of it' })
  script.answer = (socket) => socket.end(`${head('Content-Length: 20')}not all of it`)
  t.match(await script.ask(), { failed: /closed/, sent: true })
  script.answer = (socket) => socket.end(`${head('Transfer-Encoding: chunked', 'Connection: close')}2\r\nab\r\n`)
  t.match(await script.ask(), { failed: /closed/, sent: true })
})

for (const [what, text] of Object.entries({
  'Connection: close': ok('ab', 'Connection: Keep-Alive, Close\r\n'),
  'HTTP/1.0': ok('ab').replace('1.1', '1.0'),
  'a Keep-Alive that is over before we could be there': ok('ab', 'Keep-Alive: timeout=2\r\n'),
  'bytes after the end': `${ok('ab')}HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsmuggle`
})) {
  t.test(`${what}: the answer counts, and the next request goes over another socket`, async (t) => {
    const script = await scripted(t)
    script.answer = (socket) => socket.write(text)
    t.same(await script.ask(), { status: 200, body: 'ab' })
    t.same(await script.ask(), { status: 200, body: 'ab' })
    t.equal(script.sockets.length, 2)
  })
}

t.test('what comes on an idle socket is the answer to no request', async (t) => {
  const script = await scripted(t)
  await script.ask()
  const [socket] = script.sockets
  // The other side of the loopback has it before the next request is made.
  await new Promise((resolve) => socket?.write(ok('smuggle'), resolve))
  t.same(await script.ask(), { status: 200, body: 'one' })
  t.equal(script.sockets.length, 2)
})

t.test('a request for a socket that its server has closed is written on another one, once', async (t) => {
  const script = await scripted(t)
  await script.ask()
  script.sockets[0]?.destroy()
  t.same(await script.ask(), { status: 200, body: 'one' })
  t.equal(script.got().split('POST').length - 1, 2)
})

t.test('head and body arrive as one text, in UTF-8', async (t) => {
  const script = await scripted(t)
  for (const body of ['{"a":1}', '{"a":"\xe4 \u20ac \u{1f600}"}', 'x'.repeat(300_000)]) {
    const before = script.got().length
    await script.ask(body)
    t.ok(
      script
        .got()
        .slice(before)
        .startsWith(`POST / HTTP/1.1\r\n\r\n${body.slice(0, 30_000)}`)
    )
    await until('all of it came', () => script.got().length >= before + body.length)
  }
})
