// Every outgoing connection is opened in one place, which knows no proxies and follows no redirects, whoever asks for it.

import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import { createServer as createTcpServer, type AddressInfo, type LookupFunction } from 'node:net'
import { once } from 'node:events'
import { promisify } from 'node:util'
import t from 'tap'
import { createFetch, createOperatorFetch } from '../../src/egress/fetch.ts'
import { createEgressGuard } from '../../src/egress/guard.ts'
import { listen } from '../kit/listen.ts'

const moduleAt = (name: string): string => JSON.stringify(new URL(`../../src/egress/${name}.ts`, import.meta.url).href)

t.test('no way goes through a proxy, also where Node is told to use the one of the environment', async (t) => {
  const reached: string[] = []
  const url = await listen(
    t,
    createServer((request, response) => {
      reached.push(request.url ?? '')
      response.end('{}')
    })
  )
  let proxied = 0
  const proxy = createServer((_request, response) => void response.writeHead(502).end())
  const proxyUrl = await listen(t, proxy)
  proxy.on('connection', () => proxied++)
  const script = `
    import { request } from 'node:http'
    import { createFetch, createOperatorFetch } from ${moduleAt('fetch')}
    import { agentTo, openRequest } from ${moduleAt('requests')}
    const at = (path) => new URL(path, process.argv[1])
    const ended = (sent) => new Promise((resolve, reject) =>
      sent.on('error', reject).on('response', (answer) => answer.resume().on('end', resolve)).end())
    if (process.argv[2] === 'control') await fetch(at('/control'), { signal: AbortSignal.timeout(5_000) }).catch(() => {})
    else {
      await createFetch()(at('/fetch').href)
      await createFetch({ keepsConnections: true })(at('/kept').href)
      await (await createOperatorFetch()(at('/operator'), {})).text()
      await ended(openRequest(at('/request'), {}))
      await ended(request(at('/agent'), { agent: agentTo(at('/')) }))
    }
    process.exit()`
  const env = { PATH: process.env['PATH'], NODE_USE_ENV_PROXY: '1', HTTP_PROXY: proxyUrl, http_proxy: proxyUrl }
  const run = (...more: string[]) =>
    promisify(execFile)(process.execPath, ['--input-type=module', '-e', script, url, ...more], { env })
  await run()
  t.same(reached, ['/fetch', '/kept', '/operator', '/request', '/agent'])
  t.equal(proxied, 0)
  await run('control')
  t.ok(proxied > 0, 'the control: Node by itself goes there')
})

t.test('a command follows no redirect', async (t) => {
  const paths: string[] = []
  const url = await listen(
    t,
    createServer(({ url: path = '' }, response) => {
      paths.push(path)
      if (path === '/away') response.writeHead(307, { location: '/elsewhere' }).end()
      else response.end('here')
    })
  )
  const fetch = createOperatorFetch()
  await t.rejects(fetch(`${url}/away`, { method: 'DELETE' }))
  t.equal(await (await fetch(`${url}/here`, {})).text(), 'here')
  t.same(paths, ['/away', '/here'])
})

/** Its names lie: they lead to 127.0.0.1 without being judged. */
const lying = (allow: readonly string[]) => ({
  check: createEgressGuard({ allow }).check,
  lookup: (): LookupFunction => (_name, options, callback) =>
    options.all === true ? callback(null, [{ address: '127.0.0.1', family: 4 }]) : callback(null, '127.0.0.1', 4)
})

t.test(
  'a connection that has led where it may not, whatever its name said, ends before anything is sent',
  async (t) => {
    let received = ''
    const server = createTcpServer((socket) => {
      socket
        .on('error', () => {})
        .on('data', (part) => {
          received += part.toString('latin1')
          socket.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n')
        })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const url = `http://as.example:${(server.address() as AddressInfo).port}/`
    await t.rejects(createFetch({ guard: lying([]) })(url), { code: 'EGRESS_REFUSED' })
    t.equal(received, '')
    t.equal((await createFetch({ guard: lying(['127.0.0.1/32']) })(url)).status, 204, 'the control')
    t.match(received, /^GET /)
  }
)

t.test('the same over TLS, whose first message is something sent', async (t) => {
  let received = Buffer.alloc(0)
  let connections = 0
  const server = createTcpServer((socket) => {
    connections++
    socket
      .on('error', () => {})
      .on('data', (part: Buffer) => {
        received = Buffer.concat([received, part])
        socket.destroy()
      })
      .on('close', () => server.emit('over'))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const url = `https://as.example:${(server.address() as AddressInfo).port}/`
  const over = once(server, 'over')
  await t.rejects(createFetch({ guard: lying([]) })(url), { code: 'EGRESS_REFUSED' })
  await over
  t.equal(connections, 1)
  t.equal(received.length, 0)
  await t.rejects(createFetch({ guard: lying(['127.0.0.1/32']) })(url))
  t.equal(received[0], 22, 'the control: a handshake (RFC 8446 section 5.1)')
})
