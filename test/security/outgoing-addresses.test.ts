// Server-side request forgery: what upstreams and authorization servers name leads to no machine that only the gateway
// can reach. Stand-ins on loopback play those machines and count who connects; names are resolved as the test says.

import { randomBytes } from 'node:crypto'
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http'
import { createServer, isIP, type AddressInfo, type Server } from 'node:net'
import { once } from 'node:events'
import t from 'tap'
import { createEgressGuard } from '../../src/egress/guard.ts'
import { createFetch } from '../../src/egress/fetch.ts'
import type { ResolveName } from '../../src/egress/guarded-names.ts'
import { keyOf } from '../kit/acme-gateway.ts'
import { authorizationServer } from '../kit/authorization-server.ts'
import { signedIn, submit } from '../kit/connect-page.ts'
import { gateway } from '../kit/gateway.ts'
import { freePort } from '../kit/free-port.ts'
import { listen, type Teardown } from '../kit/listen.ts'
import { nameServer } from '../kit/name-server.ts'
import { protectedUpstream } from '../kit/protected-upstream.ts'

/** Names have these addresses, each time the next ones. */
function resolver(...answers: ReadonlyArray<readonly string[]>): { resolve: ResolveName; asked(): number } {
  let turn = 0
  const resolve: ResolveName = (_name, _owner) => {
    const addresses = answers[turn++ % answers.length] ?? []
    return Promise.resolve(addresses.map((address) => ({ address, family: isIP(address) })))
  }
  return { resolve, asked: () => turn }
}

async function at(t: Teardown, server: Server | HttpServer, host: string, port = 0): Promise<number> {
  server.listen(port, host)
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

/** A server that may be reached, at 127.0.0.2, and one that may not, at 127.0.0.1, at the same port. */
async function twoServers(t: Teardown) {
  const reached = { good: 0, bad: 0 }
  const good = createHttpServer((_request, response) => {
    reached.good++
    response.end('{}')
  })
  const port = await freePort()
  await at(t, good, '127.0.0.2', port)
  const bad = createServer((socket) => {
    reached.bad++
    socket.destroy()
  })
  await at(t, bad, '127.0.0.1', port)
  return { reached, url: `http://as.example:${port}/` }
}

const allow = ['127.0.0.2/32']

t.test('proxies that the environment names are not used behind the back of those who run the gateway', async (t) => {
  const { reached, url } = await twoServers(t)
  const before = { ...process.env }
  t.teardown(() => {
    process.env = before
  })
  const proxy = `http://127.0.0.1:${new URL(url).port}`
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'])
    Object.assign(process.env, { [name]: proxy, [name.toLowerCase()]: proxy })
  const { resolve } = resolver(['127.0.0.2'])
  t.equal((await createFetch({ guard: createEgressGuard({ allow }, resolve) })(url)).status, 200)
  t.equal((await createFetch()(url.replace('as.example', '127.0.0.2'))).status, 200)
  t.same(reached, { good: 2, bad: 0 })
})

t.test('a name that leads elsewhere the next time (DNS rebinding) leads nowhere', async (t) => {
  const { reached, url } = await twoServers(t)
  const { resolve, asked } = resolver(['127.0.0.2'], ['127.0.0.1'])
  const fetch = createFetch({ guard: createEgressGuard({ allow }, resolve) })
  for (let n = 0; n < 6; n++)
    if (n % 2 === 0) t.equal((await fetch(url)).status, 200)
    else await t.rejects(fetch(url), { message: /is no public address/ })
  t.equal(asked(), 6, 'resolved once for each connection: what was judged is what is connected to')
  t.same(reached, { good: 3, bad: 0 })
})

t.test(
  'of a name with good and bad addresses the bad ones are not tried, not even when the good ones fail',
  async (t) => {
    const { reached, url } = await twoServers(t)
    const both = resolver(['127.0.0.1', '127.0.0.2', '::1'])
    t.equal((await createFetch({ guard: createEgressGuard({ allow }, both.resolve) })(url)).status, 200)
    const dead = resolver(['127.0.0.3', '127.0.0.1'])
    const guard = createEgressGuard({ allow: ['127.0.0.3/32'] }, dead.resolve)
    await t.rejects(createFetch({ guard })(url), { code: 'ECONNREFUSED' })
    t.same(reached, { good: 1, bad: 0 })
  }
)

t.test('a name that is another name of a machine inside (CNAME) leads nowhere', async (t) => {
  const { reached, url } = await twoServers(t)
  const addresses: Record<string, string[]> = {
    'metadata.internal.example': ['127.0.0.1'],
    'good.example': ['127.0.0.2'],
    'both.internal.example': ['127.0.0.1', '127.0.0.2']
  }
  let alias = ''
  const names = await nameServer(t, (name) => addresses[name] ?? [], { aliasOf: () => alias })
  const fetch = createFetch({ guard: createEgressGuard({ allow, servers: [names.address] }) })
  alias = 'metadata.internal.example'
  await t.rejects(fetch(url), { message: /as\.example \(127\.0\.0\.1\) is no public address/ })
  alias = 'both.internal.example'
  t.equal((await fetch(url)).status, 200, 'of several the good one is tried')
  alias = 'good.example'
  t.equal((await fetch(url)).status, 200)
  t.same(names.asked, ['as.example', 'as.example', 'as.example'])
  t.same(reached, { good: 2, bad: 0 })
})

t.test('a name that leads to a metadata service, in whatever form, is refused before a socket is opened', async (t) => {
  const { reached, url } = await twoServers(t)
  const addresses = [
    ...['169.254.169.254', '169.254.170.2', '100.100.100.200', '168.63.129.16', '192.0.0.192', 'fd00:ec2::254'],
    ...['::ffff:169.254.169.254', '::ffff:a9fe:a9fe', '::a9fe:a9fe', '64:ff9b::a9fe:a9fe', '64:ff9b:1::a9fe:a9fe'],
    ...['2002:a9fe:a9fe::1', '2001:0:a9fe:a9fe::', 'fe80::1', 'fec0::1', '::1', '::', '0.0.0.0', '10.0.0.1'],
    ...['::ffff:127.0.0.1', '64:ff9b::7f00:1', '::ffff:0:127.0.0.1'],
    ...['192.0.2.1', '198.51.100.1', '203.0.113.1', '192.88.99.1', '::ffff:192.88.99.1']
  ]
  for (const address of addresses) {
    const { resolve } = resolver([address])
    await t.rejects(
      createFetch({ guard: createEgressGuard({ allow }, resolve) })(url),
      { message: /is no public/ },
      address
    )
  }
  const { resolve } = resolver(['127.0.0.2'])
  t.equal((await createFetch({ guard: createEgressGuard({ allow }, resolve) })(url)).status, 200)
  t.same(reached, { good: 1, bad: 0 })
})

const spellings = [
  ...[
    '127.0.0.1',
    '127.1',
    '0x7f.1',
    '2130706433',
    '017700000001',
    '\u2460\u2461\u2466.\u24ea.\u24ea.\u2460',
    '127.0.0.1.',
    '0',
    'localhost',
    'localhost.'
  ],
  ...['[::1]', '[::ffff:7f00:1]', '[::ffff:127.0.0.1]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]', '[::7f00:1]']
]
/** Of the port where the stand-in listens, with parts that some take for the host and others do not. */
const ambiguous = (port: number): string[] => [
  `https://user@127.0.0.1:${port}`,
  `https://as.example@127.0.0.1:${port}`,
  `https://user:word@127.0.0.1:${port}`,
  `https:\\\\127.0.0.1:${port}`,
  `https://as.example\\@127.0.0.1:${port}`,
  `https://127.0.0.1\t:${port}`,
  `https://127.0.\t0.1:${port}`,
  `https://127.0.0.1:${port}\n`,
  `\thttps://127.0.0.1:${port}`
]
const schemes = [
  'file:///etc/passwd',
  'gopher://127.0.0.1/',
  'ftp://127.0.0.1/',
  'data:,x',
  'unix:/run/redis.sock',
  'http:///x',
  '//127.0.0.1/'
]

async function setup(t: Teardown, allowed: readonly string[]) {
  const server = await authorizationServer(t, { registration: true })
  const upstream = await protectedUpstream(t, server)
  const names = await nameServer(t, (_name, family) => (family === 4 ? ['127.0.0.1'] : []))
  const made = await gateway(t, {
    overrides: { nameServers: [names.address] },
    upstreams: { up: { type: 'http', url: upstream.url, auth: { type: 'user' } } },
    auth: {
      keys: [
        { name: 'ada', key: keyOf.ada },
        { name: 'bob', key: keyOf.bob }
      ]
    },
    top: {
      vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] },
      egress: { allow: allowed }
    }
  })
  /** @returns the page after the button was pressed, without what differs from page to page */
  const connect = async (key: string): Promise<string> => {
    const { tab, page } = await signedIn(`${made.publicUrl}/t/acme/connections`, key)
    return (await submit(tab, page, 'connect')).html.replace(/value="[^"]*"/g, '')
  }
  return { upstream, server, made, connect }
}

t.test(
  'an authorization server that an upstream names is asked at public addresses only, however it is spelt',
  async (t) => {
    const { upstream, connect } = await setup(t, [])
    let connections = 0
    const standIn = createServer((socket) => {
      connections++
      socket.destroy()
    })
    const port = await at(t, standIn, '127.0.0.1')
    const named = (issuer: string): void => {
      upstream.metadata = { resource: upstream.url, authorization_servers: [issuer] }
    }
    const pages = new Set<string>()
    // Each person may begin thirty connections in ten minutes.
    const places = [...spellings.map((host) => `https://${host}:${port}`), ...ambiguous(port), ...schemes]
    for (const [n, issuer] of places.entries()) {
      named(issuer)
      const page = await connect(n % 2 === 0 ? keyOf.ada : keyOf.bob)
      t.match(page, /Not connected/, issuer)
      t.notMatch(page, /href="(?!\/t\/acme\/)/, 'nobody is sent anywhere')
      pages.add(page)
    }
    t.equal(connections, 0)
    t.equal(pages.size, 1, 'and the page tells nobody which of them is there')
    const open = await setup(t, ['127.0.0.0/8'])
    const [first = ''] = pages
    const pageFor = async (issuer: string): Promise<string> => {
      open.upstream.metadata = { resource: open.upstream.url, authorization_servers: [issuer] }
      return await open.connect(keyOf.ada)
    }
    t.equal(await pageFor(`http://127.0.0.1:${port}`), first, 'nor whether something answers there')
    t.equal(connections, 1, 'where the range is listed, it is asked')
    t.equal(await pageFor(`http://as.example:${port}`), first)
    t.equal(connections, 1, 'without TLS nobody is, but this machine')
    t.match(JSON.stringify(open.made.log), /its authorization server is plain http/)
    t.equal(await pageFor(`https://as.example:${port}`), first)
    t.equal(connections, 2, 'and with it they are')

    t.equal(await pageFor(`http://127.0.0.1:${await freePort()}`), first, 'a closed port says no more')
    let hung = 0
    const silent = createServer((socket) => {
      hung++
      socket.on('error', () => {})
    })
    t.equal(await pageFor(`http://127.0.0.1:${await at(t, silent, '127.0.0.1')}`), first, 'nor does one that hangs')
    t.equal(hung, 1)
  }
)

t.test('what the metadata of an authorization server names is held to the same', async (t) => {
  const [first, second] = ['127.0.0.1', '127.0.0.2']
  let asked = 0
  const inner = createHttpServer((_request, response) => {
    asked++
    response.end('{}')
  })
  const port = await at(t, inner, second)
  const { upstream, made, connect } = await setup(t, [`${first}/32`])
  const url: string = await listen(
    t,
    createHttpServer((_request, response) => {
      const inside = `http://${second}:${port}`
      response.setHeader('content-type', 'application/json')
      response.end(
        JSON.stringify({
          issuer: url,
          authorization_endpoint: `${url}/authorize`,
          token_endpoint: `${inside}/token`,
          registration_endpoint: `${inside}/register`,
          response_types_supported: ['code'],
          code_challenge_methods_supported: ['S256']
        })
      )
    })
  )
  upstream.metadata = { resource: upstream.url, authorization_servers: [url] }
  t.match(await connect(keyOf.ada), /Not connected/)
  t.ok(made.log.some(({ err }) => JSON.stringify(err ?? '').includes('is no public address')))
  t.equal(asked, 0)
})
