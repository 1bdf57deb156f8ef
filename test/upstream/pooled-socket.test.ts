// The sockets to upstreams: TLS with its certificates, addresses of both families, their ends, and when a request counts
// as sent.

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { promisify } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import { createMemoryAccount } from '../../src/limits/memory.ts'
import { type LongText } from '../../src/protocol/json-text.ts'
import { upstreamName } from '../../src/protocol/messages.ts'
import { sendForStatus } from '../../src/upstream/http/post-queue.ts'
import { type Exchange, type PooledSocket } from '../../src/upstream/http/pooled-socket.ts'
import { type OpenRequest, sendRequest } from '../../src/upstream/http/request.ts'
import { createSocketPool } from '../../src/upstream/http/socket-pool.ts'
import { createReconnects } from '../../src/upstream/http/sessions/reconnects.ts'
import type { HttpTarget } from '../../src/upstream/http/target.ts'
import { handClock } from '../kit/connector.ts'
import { until } from '../kit/until.ts'

const tls = (name: string): string => join(import.meta.dirname, '../kit/tls', name)
const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

async function listening(t: Test, server: Server, host = '127.0.0.1'): Promise<{ port: number; sockets: Socket[] }> {
  const sockets: Socket[] = []
  server.on('connection', (socket: Socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { port: (server.address() as AddressInfo).port, sockets }
}

const answering = (): Server => createServer((socket) => socket.on('data', () => socket.write(answer)))

function ask({ send }: Pick<ReturnType<typeof createSocketPool>, 'send'>, more: Partial<Exchange> = {}) {
  const heard: { sent: boolean; got?: string; failed?: string | undefined; socket?: PooledSocket } = { sent: false }
  const over = new Promise<typeof heard>((resolve) =>
    send('GET / HTTP/1.1\r\n\r\n', {
      owner: { tenant: 'acme', caller: 'ada' },
      start(socket) {
        heard.socket = socket
        heard.sent = true
        return null
      },
      received(reader, body) {
        heard.got = (heard.got ?? '') + String(body ?? '')
        if (reader.complete) resolve(heard)
      },
      failed(cause) {
        heard.failed = (cause as NodeJS.ErrnoException).code ?? cause.message
        resolve(heard)
      },
      ...more
    })
  )
  return { heard, over }
}

t.test('a server with TLS is asked where its certificate is trusted, and not asked otherwise', async (t) => {
  const server = createTlsServer({ key: readFileSync(tls('localhost.key')), cert: readFileSync(tls('localhost.crt')) })
  const texts: string[] = []
  server.on('secureConnection', (socket) => {
    socket.on('error', () => {})
    socket.on('data', (part) => {
      texts.push(`${socket.servername} ${socket.alpnProtocol} ${part.toString().slice(0, 5)}`)
      socket.write(answer.slice(0, 30))
      socket.write(answer.slice(30))
    })
  })
  const { port } = await listening(t, server, 'localhost')
  const script = `
    const { createSocketPool } = await import(${JSON.stringify(new URL('../../src/upstream/http/socket-pool.ts', import.meta.url))})
    const pool = createSocketPool(new URL('https://localhost:${port}'), 60000)
    const ask = () => new Promise((resolve) => { let sent = false; let got = ''; pool.send('GET / HTTP/1.1\\r\\n\\r\\n', {
      start: () => { sent = true; return null },
      received({ complete }, body) { got += body ?? ''; if (complete) resolve({ got }) },
      failed: ({ code }) => resolve({ sent, code }),
      owner: { tenant: 'acme', caller: 'ada' }
    }) })
    console.log(JSON.stringify([await ask(), await ask()]))
    process.exit()`
  const run = async (env: Record<string, string>): Promise<unknown> => {
    const { NODE_EXTRA_CA_CERTS: _, ...rest } = process.env
    const options = { env: { ...rest, ...env } }
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], options)
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
  }
  t.same(await run({ NODE_EXTRA_CA_CERTS: tls('localhost.crt') }), [{ got: 'ok' }, { got: 'ok' }])
  t.same(texts, Array(2).fill('localhost false GET /'), 'under its name')
  t.match(await run({}), [{ sent: false, code: /SELF_SIGNED|UNABLE_TO/ }, { sent: false }])
  t.equal(texts.length, 2, 'nothing was written')
})

t.test(
  'with TLS, too, answers in tiny pieces that come at once are read to their end, and nothing beyond it',
  async (t) => {
    const text = 'abcdefghij'.repeat(4_000)
    const pieces = [...text].map((letter) => `1\r\n${letter}\r\n`).join('')
    const whole = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${pieces}0\r\n\r\n`
    const sent: Record<string, (socket: Socket) => unknown> = {
      '/stays': (socket) => socket.write(whole),
      '/ends': (socket) => socket.end(whole),
      '/untold': (socket) => socket.end(`HTTP/1.1 200 OK\r\n\r\n${text}`),
      '/more': (socket) => socket.write(`${whole}${answer}`),
      '/cut': (socket) => socket.end(whole.slice(0, -7))
    }
    const server = createTlsServer({
      key: readFileSync(tls('localhost.key')),
      cert: readFileSync(tls('localhost.crt'))
    })
    server.on('secureConnection', (socket) => {
      socket.on('error', () => {})
      socket.on('data', (part) => sent[part.toString().split(' ')[1] ?? '']?.(socket))
    })
    const { port, sockets } = await listening(t, server, 'localhost')
    const script = `
    const { createSocketPool } = await import(${JSON.stringify(new URL('../../src/upstream/http/socket-pool.ts', import.meta.url))})
    const pool = createSocketPool(new URL('https://localhost:${port}'), 60000)
    const ask = (path) => new Promise((resolve) => { let got = ''; pool.send('GET ' + path + ' HTTP/1.1\\r\\n\\r\\n', {
      owner: { tenant: 'acme', caller: 'ada' }, start: () => null,
      received({ complete }, body) { got += body ?? ''; if (complete) resolve(got === 'abcdefghij'.repeat(4000)) },
      failed: () => resolve('failed')
    }) })
    const all = {}
    for (const path of ${JSON.stringify(Object.keys(sent))})
      for (let round = 0; round < 2; round++)
        all[path] = [...new Set([...(all[path] ?? []), ...(await Promise.all(Array.from({ length: 20 }, () => ask(path))))])]
    console.log(JSON.stringify(all))
    process.exit()`
    const options = { env: { ...process.env, NODE_EXTRA_CA_CERTS: tls('localhost.crt') } }
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], options)
    t.same(JSON.parse(stdout.trim().split('\n').at(-1) ?? ''), {
      '/stays': [true],
      '/ends': [true],
      '/untold': [true],
      '/more': [true],
      '/cut': ['failed']
    })
    // Only those that stay open after their answer, and have brought nothing beyond it, are used again.
    t.ok(sockets.length >= 20 + 20 + 40 + 40 + 40, `${sockets.length} sockets`)
  }
)

t.test('an IPv6 address is reached', async (t) => {
  const { port } = await listening(t, answering(), '::1')
  const pool = createSocketPool(new URL(`http://[::1]:${port}`), 10_000)
  t.teardown(pool.destroy)
  t.match(await ask(pool).over, { got: 'ok' })
})

t.test('idle sockets are closed after four seconds, and one that is used is not', async (t) => {
  const { port, sockets } = await listening(t, answering())
  const clock = handClock()
  const pool = createSocketPool(new URL(`http://127.0.0.1:${port}`), 10_000, { clock })
  t.teardown(pool.destroy)
  await ask(pool).over
  clock.advance(3_999)
  await ask(pool).over
  clock.advance(3_999)
  await ask(pool).over
  t.equal(sockets.length, 1)
  clock.advance(8_000)
  await until('it is closed', () => sockets[0]?.closed === true)
})

/** As the servers of Node.js name it. Only 3 s of that are used. */
const answerFor5s = 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nok'

async function serverOf5s(t: Test, clock: ReturnType<typeof handClock>) {
  const server = createServer((socket) => socket.on('data', () => socket.write(answerFor5s)))
  const { port, sockets } = await listening(t, server)
  const pool = createSocketPool(new URL(`http://127.0.0.1:${port}`), 10_000, { clock })
  t.teardown(pool.destroy)
  return { pool, sockets }
}

t.test('a request that waited for its turn is not written to a socket that its server may close', async (t) => {
  for (const [passedMs, opened] of [
    [2_999, 1],
    [3_000, 2]
  ] as const) {
    const clock = handClock()
    const { pool, sockets } = await serverOf5s(t, clock)
    await ask(pool).over
    // In the turn in which the request is written, and after sockets were looked at.
    setImmediate(() =>
      setImmediate(() => {
        clock.advance(passedMs)
        if (passedMs === 3_000) sockets[0]?.destroy()
      })
    )
    t.match(await ask(pool).over, { got: 'ok', failed: undefined })
    t.equal(sockets.length, opened, `after ${passedMs} ms`)
  }
})

t.test('a socket waits from when its answer came, not from when it was read', async (t) => {
  for (const [passedMs, opened] of [
    [2_999, 1],
    [3_000, 2]
  ] as const) {
    const clock = handClock()
    const { pool, sockets } = await serverOf5s(t, clock)
    await new Promise<void>((resolve) => {
      ask(pool, {
        received({ complete }) {
          if (!complete) return
          // It came in one read, and its parsing took so long.
          clock.advance(passedMs)
          resolve()
        }
      })
    })
    t.match(await ask(pool).over, { got: 'ok' })
    t.equal(sockets.length, opened, `after ${passedMs} ms`)
  }
})

t.test('a request that was given up before it was written gives a socket no more time', async (t) => {
  const clock = handClock()
  const { pool, sockets } = await serverOf5s(t, clock)
  const giveUp = (): Promise<void> =>
    new Promise((resolve) => {
      ask(pool, {
        start() {
          resolve()
          return undefined
        }
      })
    })
  await ask(pool).over
  clock.advance(2_000)
  await giveUp()
  clock.advance(999)
  await ask(pool).over
  t.equal(sockets.length, 1)
  clock.advance(2_000)
  await giveUp()
  clock.advance(1_000)
  await ask(pool).over
  t.equal(sockets.length, 2)
})

t.test('a server that is not there, and one that does not let us connect in time, were sent nothing', async (t) => {
  const { port } = await listening(t, answering())
  const clock = handClock()
  const pool = createSocketPool(new URL(`http://127.0.0.1:${port}`), 500, { clock })
  t.teardown(pool.destroy)
  const late = ask(pool)
  clock.advance(500)
  t.match(await late.over, { sent: false, failed: 'ETIMEDOUT' })
  t.match(await ask(pool).over, { got: 'ok' })
  const closed = createSocketPool(new URL('http://127.0.0.1:1'), 10_000)
  t.match(await ask(closed).over, { sent: false, failed: 'ECONNREFUSED' })
})

t.test('what is no longer wanted before it was sent is not sent; afterwards its socket is closed', async (t) => {
  const texts: string[] = []
  const server = createServer((socket) => socket.on('data', (part) => texts.push(String(part))))
  const { port, sockets } = await listening(t, server)
  const pool = createSocketPool(new URL(`http://127.0.0.1:${port}`), 10_000)
  t.teardown(pool.destroy)
  await new Promise<void>((resolve) => {
    ask(pool, {
      start() {
        resolve()
        return undefined
      }
    })
  })
  const { heard } = ask(pool)
  await until('the second is there', () => texts.length > 0)
  t.equal(texts.join(''), 'GET / HTTP/1.1\r\n\r\n')
  t.equal(sockets.length, 1, 'over the socket that was not used')
  heard.socket?.abandon()
  await until('it is closed', () => sockets[0]?.closed === true)
  t.match(heard, { sent: true, failed: undefined }, 'and nothing is heard any more')
})

t.test('a paused answer waits at the server, and the socket is read again for the next request', async (t) => {
  const size = 32 * 1024 * 1024
  const whole = `HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n${'x'.repeat(size)}`
  const server = createServer((socket) => socket.on('data', () => socket.write(whole)))
  const { port, sockets } = await listening(t, server)
  const pool = createSocketPool(new URL(`http://127.0.0.1:${port}`), 10_000)
  t.teardown(pool.destroy)
  let got = 0
  let own: PooledSocket | undefined
  const done = Promise.withResolvers<void>()
  ask(pool, {
    start(socket) {
      own = socket
      return null
    },
    received({ complete }, body) {
      if (got === 0) own?.pause()
      got += body?.length ?? 0
      if (complete) done.resolve()
    }
  })
  await until('it has begun', () => got > 0)
  const before = got
  await until('the server cannot write', () => (sockets[0]?.writableLength ?? 0) > 0)
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  t.equal(got, before)
  own?.resume()
  await done.promise
  t.equal(got, size)
  const again = Promise.withResolvers<void>()
  ask(pool, {
    received({ complete }) {
      if (complete) again.resolve()
    }
  })
  await again.promise
  t.equal(sockets.length, 1)
})

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

t.test('of requests that are given up while their socket is connected nothing is held', async (t) => {
  // It takes the connection, and says nothing of TLS.
  const { port, sockets } = await listening(t, createServer())
  const { send, destroy } = createSocketPool(new URL(`https://127.0.0.1:${port}`), 60_000)
  t.teardown(destroy)
  const target: HttpTarget = {
    name: upstreamName('up'),
    origin: '',
    path: '/',
    maxBytes: 1_000,
    memory: createMemoryAccount().share('acme', 'ada'),
    headers: '',
    credential: undefined,
    reconnects: createReconnects(handClock()),
    send,
    take: () => () => {},
    release() {}
  }
  const requestOf = (body: LongText) => ({ method: 'POST', use: 'calls', headers: '', body }) as const
  const caller = new AbortController()
  const given = (one: (body: LongText) => void): WeakRef<LongText> => {
    const body = { parts: [Buffer.alloc(100_000)], length: 100_000 }
    one(body)
    return new WeakRef(body)
  }
  const open: OpenRequest[] = []
  const bodies = [
    given((body) => open.push(sendRequest(target, requestOf(body), { message() {}, end() {} }))),
    given((body) => void sendForStatus(target, requestOf(body), caller.signal))
  ]
  await until('both sockets are there', () => sockets.length === 2)
  const isHeld = (): boolean[] => {
    gc()
    return bodies.map((body) => body.deref() !== undefined)
  }
  await new Promise(setImmediate)
  t.same(isHeld(), [true, true], 'they wait for their sockets, the control')
  open[0]?.abort()
  caller.abort()
  await until('nothing is held', () => !isHeld().includes(true))
  t.notOk(
    sockets.some(({ closed }) => closed),
    'the sockets are still being connected'
  )
})
