// Attack: no file descriptor is left, at a real gateway, when everything wants one: keys of issuers, the provider of a
// login front, answers about opaque tokens, tokens for upstreams, the audit log, a collector, Redis, the configuration
// and its files, a thread, a worker, a connection to accept. Each is a failed attempt like any other, and works as soon
// as there are some. The file of the embedded store needs none.

import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { recordsIn } from '../audit/kit.ts'
import { allGone, gatehouse, signalAll } from '../e2e/kit/process.ts'
import { adminKeys, adminSection } from '../kit/admin.ts'
import { authorizationServer, robot } from '../kit/authorization-server.ts'
import { jsonHeaders, legacyClient, send, type Sent } from '../kit/client.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'
import { key } from '../kit/gateway.ts'
import { identityProvider, providerClient } from '../kit/identity-provider.ts'
import { issuer } from '../kit/issuer.ts'
import { modernMessage } from '../kit/modern-client.ts'
import { protectedUpstream } from '../kit/protected-upstream.ts'
import { dial, untilClosed } from '../kit/raw-http.ts'
import { redis } from '../kit/redis.ts'
import { until } from '../kit/until.ts'
import { collector } from '../observe/collector.ts'
import { ownProcess, workers } from '../workers/kit.ts'
import { descriptorTable, heldConnection, type Held, type HeldAnswer } from './descriptor-table.ts'
import { attacked, keys, registeredClient, stdioServer, type Attacked } from './kit.ts'

const path = '/t/acme/mcp'
const publicUrl = 'http://localhost:9'
const noneLeft = 'no file descriptor left'

const linesOf = (gateway: Attacked, text: string): number =>
  gateway.log().filter(({ msg }) => String(msg).includes(text)).length

const modern = (method: string, params: Record<string, unknown>, token: string): Sent => ({
  method: 'POST',
  ...modernMessage(method, params, { token })
})
const initialize: Sent = {
  method: 'POST',
  headers: { ...jsonHeaders, authorization: `Bearer ${keys.attacker}` },
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } }
  })
}

type Ask = (held: Held) => Promise<HeldAnswer>
type Told = readonly [status: number, text: RegExp]

/** @returns the status, and where it leads to or what it says */
async function answerTo(ask: Ask, held: Held | undefined): Promise<{ readonly status: number; readonly told: string }> {
  if (held === undefined) throw new Error('there is no connection')
  const { status, headers, text } = await ask(held)
  return { status, told: String(headers['location'] ?? text) }
}

/** A syslog server, and all that it was told. */
async function syslogServer(t: Test) {
  const told = { text: '' }
  const server = createServer((socket) => {
    socket.on('error', () => {}).on('data', (part: Buffer) => (told.text += part.toString()))
    t.teardown(() => socket.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return Object.assign(told, { to: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}` })
}

t.test('whatever needs a descriptor fails by itself while there is none, and works as soon as there is', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-full-'))
  const auditFile = join(folder, 'audit.jsonl')
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const resource = `${publicUrl}${path}`
  const forging = () => forgingIssuer(t, { resource, now: Date.now() })
  const [named, found] = [await forging(), await forging()]
  const asked = await issuer(t)
  const granting = await authorizationServer(t)
  const granted = await protectedUpstream(t, granting)
  const auth = { type: 'clientCredentials', issuer: granting.url, clientId: 'robot', clientSecret: robot.client_secret }
  const provider = await identityProvider(t, `${publicUrl}/login/acme/callback`)
  const [syslog, collected] = [await syslogServer(t), await collector(t)]
  const gateway = await attacked(t, {
    descriptors: 400,
    upstreams: {
      granted: { url: granted.url, auth },
      boxed: { ...stdioServer(), sandbox: 'preferred', sandboxRead: [join(import.meta.dirname, '..', '..')] }
    },
    tenant: {
      auth: {
        keys: [{ name: 'attacker', key: keys.attacker }],
        issuers: [
          { issuer: named.issuer, jwksUri: named.jwksUri },
          { issuer: found.issuer },
          { issuer: asked.url, introspection: asked.introspection }
        ],
        login: { provider: { issuer: provider.url, ...providerClient } }
      }
    },
    top: {
      publicUrl,
      admin: adminSection,
      egress: { allow: ['127.0.0.0/8'] },
      audit: { store: false, file: auditFile, syslog: { to: syslog.to } },
      telemetry: { otlp: { endpoint: collected.endpoint }, metricsEverySeconds: 1 }
    }
  })
  const adminUrl = String((await gateway.logged('the admin API', (line) => 'adminUrl' in line))['adminUrl'])
  const neighbour = await gateway.neighbour()
  const [signInPath, signIn] = await (await registeredClient(gateway)).begun()
  const opaque = await asked.token({ resource, opaque: true })
  const tokens = { named: await named.sign(), found: await found.sign(), opaque }
  const json = { authorization: `Bearer ${adminKeys.platform}`, 'content-type': 'application/json' }
  const made = JSON.stringify({ tenants: { made: { auth: {}, upstreams: {} } } })
  /** What is asked, where, and the status and text that are answered while there is none, and afterwards. */
  const attempts: Record<string, { ask: Ask; at?: string; fails: Told; works: Told }> = {
    'keys of an issuer': {
      ask: (held) => held(path, modern('tools/list', {}, tokens.named)),
      fails: [503, /keys of the token's issuer cannot be fetched/],
      works: [200, /calm__echo/]
    },
    'an issuer whose metadata name its keys': {
      ask: (held) => held(path, modern('tools/list', {}, tokens.found)),
      fails: [503, /keys of the token's issuer cannot be fetched/],
      works: [200, /calm__echo/]
    },
    'an issuer that is asked about an opaque token': {
      ask: (held) => held(path, modern('tools/list', {}, tokens.opaque)),
      fails: [503, /issuer cannot be asked about it at the moment/],
      works: [200, /calm__echo/]
    },
    'a token for an upstream': {
      ask: (held) => held(path, modern('tools/call', { name: 'granted__echo', arguments: {} }, keys.attacker)),
      fails: [200, /"error":.*Upstream granted is away/],
      works: [200, /"result":/]
    },
    'the provider of a login front': {
      ask: (held) => held(signInPath, signIn),
      fails: [503, /This sign-in cannot go on/],
      works: [303, new RegExp(`^${provider.url}/auth`)]
    },
    'a process in a sandbox': {
      ask: (held) => held(path, modern('tools/call', { name: 'boxed__echo', arguments: {} }, keys.attacker)),
      fails: [200, /"error":.*Upstream boxed/],
      works: [200, /"result":/]
    },
    'a file of the console': {
      at: adminUrl,
      ask: (held) => held('/console/main.js'),
      fails: [500, /The log of the gateway says why/],
      works: [200, /import/]
    },
    'a session, which needs none': {
      ask: (held) => held(path, initialize),
      fails: [200, /"result":/],
      works: [200, /"result":/]
    },
    'a plan, which needs none': {
      at: adminUrl,
      ask: (held) => held('/v1/plan', { method: 'POST', headers: json, body: made }),
      fails: [200, /made/],
      works: [200, /made/]
    },
    readiness: {
      ask: (held) => held('/health/ready'),
      fails: [503, new RegExp(noneLeft)],
      works: [200, /ready/]
    }
  }
  const held = new Map<string, Held>()
  for (const [name, { at = gateway.origin }] of Object.entries(attempts)) held.set(name, await heldConnection(t, at))
  const table = descriptorTable(gateway.pid)
  table.fill()
  for (const [name, { ask, fails }] of Object.entries(attempts)) {
    const { status, told } = await answerTo(ask, held.get(name))
    t.match([status, told], fails, name)
  }
  t.same([asked.introspectionRequests(), granting.tokenRequests.length], [0, 0])
  t.equal(linesOf(gateway, 'an issuer cannot be asked about a token'), 1)
  t.match(
    gateway.log().find(({ msg }) => msg === 'no token can be had for an upstream'),
    { upstream: 'granted', err: { code: 'EMFILE' } }
  )
  await until('records wait', () => linesOf(gateway, 'audit records cannot be written') > 0)
  await until('telemetry waits', () => linesOf(gateway, 'telemetry does not reach the collector') > 0)
  table.empty()
  for (const [name, { ask, works, at = gateway.origin }] of Object.entries(attempts))
    await until(name, async () => {
      const { status, told } = await answerTo(ask, await heldConnection(t, at))
      return status === works[0] && works[1].test(told)
    })
  await until('the log says that it is over', () => linesOf(gateway, 'there are file descriptors again') === 1)
  t.equal(linesOf(gateway, noneLeft), 1, 'the log says it once')
  const recorded = async () => (await recordsIn(auditFile)).some(({ kind }) => kind === 'session')
  await until('records are in the file', recorded)
  await until('and at the syslog server', () => syslog.text.includes('"kind":"session"'))
  await until('the collector is told', () => linesOf(gateway, 'telemetry reaches the collector again') > 0)
  const bare = gateway.log().filter(({ msg }) => String(msg).includes('runs without a sandbox'))
  t.notMatch(JSON.stringify(bare), /EMFILE/, 'that a sandbox could not be tried is no finding')
  t.same((await neighbour.stop()).failures, [])
})

t.test(
  'a changed configuration that cannot be read for want of a descriptor is taken as soon as there is one',
  async (t) => {
    const folder = t.testdir({ key: 'gh_key_of_the_first_0123456789' })
    const file = join(folder, 'key')
    const keyOf = (name: string): string => `gh_key_of_the_${name}_0123456789`
    const gateway = await attacked(t, {
      tenant: { auth: { keys: [{ name: 'rotated', key: '${file:' + file + '}' }] } },
      top: { logLevel: 'debug' }
    })
    const use = async (name: string): Promise<number> =>
      (await send(gateway.url, { ...modern('tools/list', {}, keyOf(name)) })).status
    t.equal(await use('first'), 200)
    const table = descriptorTable(gateway.pid)
    // Enough to see that the file has changed, and too few for the thread in which the configuration is read.
    table.leave(2)
    await writeFile(file, keyOf('second'))
    await until('it is tried', () => linesOf(gateway, 'cannot be read now; it is tried again') > 0)
    t.equal(linesOf(gateway, 'configuration taken'), 0)
    // None at all: not even a change would be seen.
    table.fill()
    gateway.signal('SIGHUP')
    // The first of them may have been tried before.
    const tried = linesOf(gateway, 'still cannot be read')
    await until('it is tried again', () => linesOf(gateway, 'still cannot be read') >= tried + 2)
    t.equal(linesOf(gateway, 'configuration taken'), 0)
    table.empty()
    await until('it is taken', () => linesOf(gateway, 'configuration taken') > 0)
    t.same([await use('first'), await use('second')], [401, 200])
    t.equal(linesOf(gateway, 'cannot be read now; it is tried again'), 1, 'the log says it once')
    t.equal(linesOf(gateway, 'is refused'), 0)
  }
)

t.test('connections that cannot be accepted are closed, and those that come later are served', async (t) => {
  const gateway = await attacked(t, { descriptors: 400 })
  const port = Number(new URL(gateway.origin).port)
  const neighbour = await gateway.neighbour()
  const table = descriptorTable(gateway.pid)
  table.fill()
  const sockets = Array.from({ length: 50 }, () => dial(port))
  await Promise.all(sockets.map((socket) => untilClosed(socket)))
  table.empty()
  t.equal((await send(`${gateway.origin}/health/live`, { method: 'GET' })).status, 200)
  t.same((await neighbour.stop()).failures, [])
})

t.test('Redis that is away while there is no descriptor is connected to again', async (t) => {
  const store = await redis(t)
  const gateway = await attacked(t, { descriptors: 400, top: { store: store.url } })
  const held = [await heldConnection(t, gateway.origin), await heldConnection(t, gateway.origin)]
  const client = await legacyClient(gateway.url, keys.attacker)
  const table = descriptorTable(gateway.pid)
  table.fill()
  await store.stop()
  await until('Redis is missed', () => linesOf(gateway, 'Redis cannot be reached') > 0)
  await store.restart()
  const { status, told } = await answerTo((on) => on(path, initialize), held[0])
  t.match([status, told], [503, /unavailable/])
  t.equal((await answerTo((on) => on('/health/ready'), held[1])).status, 503)
  table.empty()
  await until('sessions are opened', async () => (await send(gateway.url, initialize)).status === 200)
  await until(
    'it is ready',
    async () => (await send(`${gateway.origin}/health/ready`, { method: 'GET' })).status === 200
  )
  t.equal((await client.request('ping')).status, 404, 'the control: it had forgotten all')
  t.ok(linesOf(gateway, 'Redis cannot be reached') <= 3, 'the log says it once of each connection')
})

t.test('the embedded store takes what it is given while there is no descriptor', async (t) => {
  const gateway = await attacked(t, { descriptors: 400 })
  const held = [await heldConnection(t, gateway.origin), await heldConnection(t, gateway.origin)]
  const table = descriptorTable(gateway.pid)
  table.fill()
  const [opened, other] = held
  const answer = await opened?.(path, initialize)
  t.equal(answer?.status, 200)
  t.match(await other?.('/health/ready'), { status: 503, text: new RegExp(noneLeft) }, 'the control: it is full')
  gateway.signal('SIGKILL')
  await gateway.ended
  const next = gatehouse(t, ['serve', '--config', gateway.configFile, '--port', '0'])
  const ping = async (sessionId: unknown): Promise<number> => {
    const headers = { ...initialize.headers, 'mcp-session-id': String(sessionId), 'mcp-protocol-version': '2025-11-25' }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'ping' })
    return (await send(`${await next.ready}${path}`, { headers, body })).status
  }
  const sessionId = String(answer?.headers['mcp-session-id'])
  t.equal(await ping(sessionId), 200, 'a process after it knows the session')
  t.equal(await ping(`${sessionId}x`), 404, 'the control')
})

t.test('a worker that ends while its primary has no descriptor is replaced as soon as there is one', async (t) => {
  const gateway = await workers(t, ownProcess)
  // The primary accepts connections, and gives them to its workers in turn.
  const connections: Held[] = []
  while (connections.length < 8) connections.push(await heldConnection(t, gateway.url))
  const [victim = 0, ...others] = await gateway.pidsOfWorkers()
  const table = descriptorTable(gateway.pid)
  table.fill()
  signalAll([victim], 'SIGKILL')
  await allGone([victim])
  const failed = await gateway.logged('it is tried', ({ msg }) => msg === 'a worker could not start')
  t.match(failed, { level: 50, err: { code: 'EMFILE' } })
  t.same(await gateway.pidsOfWorkers(), others)
  const list = modern('tools/list', {}, key)
  const answers = await Promise.allSettled(connections.map((held) => held(path, list)))
  const served = answers.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
  t.ok(served.length > 0, 'the other one has connections')
  for (const answer of served) t.match(answer, { status: 200, text: /"tools":/ }, 'and serves them')
  table.empty()
  await until('there are two again', () => gateway.log().filter(({ msg }) => msg === 'listening').length === 3)
  t.equal((await gateway.pidsOfWorkers()).length, 2)
  t.equal((await send(gateway.mcp, { ...list })).status, 200)
  t.same(await gateway.stop(), { code: 0, signal: null })
})
