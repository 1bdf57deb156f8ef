// The login front under strangers, who may ask it without a token: what they can make it keep, fetch and hold, and what
// they and hosts hear while its store is away.

import { moveClock } from '../kit/moving-clock.ts'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { createMemoryAccount } from '../../src/limits/memory.ts'
import { unavailable } from '../../src/store/port.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { browser } from '../kit/browser.ts'
import { heldTimers } from '../kit/held-time.ts'
import { nameServer } from '../kit/name-server.ts'
import { dial, rawExchange, untilClosed } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'
import { quiet } from '../store/kit.ts'
import { begin, logIn, loginGateway, redirectUri, refresh, register, tokens } from './kit.ts'

t.test('no other spelling of a path gets around the limits of strangers', async (t) => {
  const front = await loginGateway(t, { login: { registrationsPerHour: 1, authorizationsPerMinute: 3 } })
  const registerAt = async (path: string): Promise<number> => {
    const body = JSON.stringify({ redirect_uris: [redirectUri], token_endpoint_auth_method: 'none' })
    const headers = { 'content-type': 'application/json' }
    return (await fetch(front.issuer + path, { method: 'POST', headers, body })).status
  }
  t.equal(await registerAt('/reg'), 201)
  t.equal(await registerAt('/reg'), 429)
  for (const path of ['/REG', '/reg/', '/Reg', '/%72eg', '//reg', '/reg//']) t.equal(await registerAt(path), 404, path)
  const get = async (path: string): Promise<number> => (await fetch(front.issuer + path, { redirect: 'manual' })).status
  t.equal(await get('/auth?client_id=nobody'), 400, 'it begins nothing, and is not counted')
  for (const path of ['/AUTH?client_id=nobody', '/auth/?client_id=nobody', '/Session/end'])
    t.equal(await get(path), 404)
  t.equal(await get('/session/end'), 200, 'it leaves a session in the store')
  for (let n = 0; n < 2; n++) t.equal(await get('/session/end'), 200)
  t.equal(await get('/session/end'), 429, 'and is counted with what is begun')
})

t.test('a path that is no URL is not found, and no fault of the gateway that has a line with a stack', async (t) => {
  const front = await loginGateway(t)
  const get = async (path: string): Promise<number> => {
    const head = `GET /login/acme${path} HTTP/1.1\r\nHost: 127.0.0.1:${front.port}\r\nConnection: close\r\n\r\n`
    return (await rawExchange(front.port, head)).status
  }
  for (const path of ['//[', '//x:99999/auth', '//%zz']) t.equal(await get(path), 404, path)
  t.equal(await get('/jwks'), 200)
  t.notOk(front.log.some(({ level }) => Number(level) >= 50))
})

t.test('what a stranger says is kept only where it is short', async (t) => {
  const front = await loginGateway(t)
  t.equal((await register(front, { client_name: 'x'.repeat(4_000) })).status, 201)
  const long = await register(front, { client_name: 'x'.repeat(10_000) })
  t.match(long, { status: 400, body: { error_description: /more than 8192 characters/ } })
  const { clientId } = await register(front)
  const person = browser()
  t.match((await person.go(begin(front, clientId, { state: 'x'.repeat(4_000) }), redirectUri)).html, /Allow A Host\?/)
  const stopped = await browser().go(begin(front, clientId, { state: 'x'.repeat(9_000) }), redirectUri)
  t.equal(stopped.url.searchParams.get('error'), 'invalid_request')
})

t.test('requests for tokens make the gateway fetch no more metadata documents than sign-ins may begin', async (t) => {
  const file = join(t.testdir(), 'audit.jsonl')
  const front = await loginGateway(t, {
    login: { authorizationsPerMinute: 2 },
    top: { audit: { store: false, file } }
  })
  for (let n = 1; n <= 3; n++) {
    const parameters = { client_id: `https://localhost:9/${n}`, grant_type: 'refresh_token' }
    t.equal((await tokens(front, parameters)).status, 400)
  }
  await front.close()
  const outcomes = (await readFile(file, 'utf8')).match(/"outcome":"[^"]*/g)
  t.match(outcomes, [/no public address/, /no public address/, /invalid_client"?$/])
  const said = front.log.filter(({ msg }) => msg === 'the login front refused')
  t.match(said, [{ level: 20, action: 'token', reason: /no public address/ }, {}, {}], 'and in the log')
})

t.test('names of metadata documents that are slow keep nobody else from having names looked up', async (t) => {
  // Lookups and connections are given up no sooner than the test likes: a busy machine takes as long for a hundred.
  const letTimersRunOut = heldTimers(t, 4_000, 5_000)
  const server = await nameServer(t, (name) => (name.startsWith('slow') ? undefined : ['192.0.2.7']))
  const file = join(t.testdir(), 'audit.jsonl')
  const front = await loginGateway(t, {
    login: { authorizationsPerMinute: 10_000 },
    overrides: { nameServers: [server.address] },
    top: { audit: { store: false, file } }
  })
  const { tenants } = front.config
  front.reload({ ...front.config, tenants: { ...tenants, other: tenants['acme'] } })
  const ask = (tenant: string, name: string) =>
    tokens(
      { issuer: `${front.origin}/login/${tenant}` },
      { client_id: `https://${name}.example/`, grant_type: 'refresh_token' }
    )
  const outcomes = async (): Promise<string> => await readFile(file, 'utf8').catch(() => '')
  const slow: Array<ReturnType<typeof ask>> = []
  // The resolver itself gives up four of them every seven seconds, so that no number of them is always enough.
  await until('the 101st name at once is refused', async () => {
    for (let n = 0; n < 10; n++) slow.push(ask('acme', `slow-${slow.length}`))
    return (await outcomes()).includes('100 names of acme are already')
  })
  t.ok(slow.length > 100)
  t.ok(new Set(server.asked).size >= 4, 'four of them are asked for')
  t.equal((await ask('other', 'known')).status, 400)
  await until('another tenant was kept waiting by nobody', async () =>
    (await outcomes()).includes('known.example (192.0.2.7) is no public address')
  )
  letTimersRunOut()
  for (const { status } of await Promise.all(slow)) t.equal(status, 400, 'and each of them is answered')
})

t.test('bodies of strangers that do not end are counted, and given back', async (t) => {
  const said: unknown[] = []
  const { error } = console
  console.error = (...words) => said.push(words)
  t.teardown(() => (console.error = error))
  const memory = createMemoryAccount(32 * 1024 * 1024)
  const front = await loginGateway(t, { overrides: { memory } })
  const { status } = await register(front)
  t.equal(status, 201)
  await until('what it took is given back', () => memory.held === 0)
  const answers: string[] = []
  const sockets = Array.from({ length: 60 }, () => {
    const socket = dial(front.port)
    socket.on('data', (chunk: Buffer) => answers.push(chunk.toString('latin1')))
    socket.write(
      `POST /login/acme/token HTTP/1.1\r\nhost: 127.0.0.1:${front.port}\r\ncontent-length: 57000\r\n` +
        `content-type: application/x-www-form-urlencoded\r\n\r\n${'x'.repeat(40_000)}`
    )
    return socket
  })
  t.teardown(() => sockets.forEach((socket) => socket.destroy()))
  await until('those beyond the share of strangers are refused', () => answers.length > 15)
  t.ok(answers.every((answer) => answer.startsWith('HTTP/1.1 429 ') && answer.includes('limits.memoryBytes')))
  t.ok(memory.held <= memory.budgetBytes / 4)
  for (const socket of sockets) socket.destroy()
  await until('all of it is given back', () => memory.held === 0)
  await until('they broke off', () => front.log.some(({ msg }) => /came to no end/.test(String(msg))))
  t.same(said, [], 'of which nobody is told')
  t.same(
    front.log.filter(({ level }) => Number(level) >= 50),
    []
  )
  t.equal((await register(front)).status, 201)
})

t.test('who has begun once cannot have ways to the provider without end', async (t) => {
  const front = await loginGateway(t, { login: { authorizationsPerMinute: 3 } })
  const { clientId } = await register(front)
  const person = browser()
  const { url } = await person.go(begin(front, clientId), `${front.issuer}/interaction/`)
  const again = () => person.go(url.href, front.provider.url)
  for (let n = 0; n < 3; n++) t.equal((await again()).url.origin, front.provider.url)
  const refused = await again()
  t.match(refused, { status: 429, html: /Too many apps register or sign in here/ })
  t.ok(Number(refused.headers.get('retry-after')) > 0)
})

t.test('one stranger keeps nobody out who comes from elsewhere', async (t) => {
  // As from behind a proxy, which says where a request comes from.
  const front = await loginGateway(t, {
    login: { registrationsPerHour: 3, authorizationsPerMinute: 2 },
    top: { trustedProxies: ['127.0.0.0/8'] }
  })
  const from = (address: string) => ({ 'x-forwarded-for': address })
  const [stranger, neighbour] = [from('2001:db8:0:7::1'), from('2001:db8:0:7:ffff::2')]
  const statusOf = async (headers: Record<string, string>) => (await register(front, {}, headers)).status
  for (let n = 0; n < 20; n++) t.equal((await register(front, { redirect_uris: [] }, stranger)).status, 400)
  for (let n = 0; n < 3; n++) t.equal(await statusOf(stranger), 201, 'what was refused was not counted')
  const refused = await register(front, {}, neighbour)
  t.match(refused, { status: 429, body: { error: 'temporarily_unavailable', error_description: /60 minutes/ } })
  const seconds = Number(refused.headers.get('retry-after'))
  t.ok(seconds > 60 && seconds <= 3_600, 'as long as it takes')
  const { status, clientId } = await register(front, {}, from('198.51.100.7'))
  t.equal(status, 201, 'elsewhere it goes on')

  const go = (address: string, url: string) =>
    browser().go(url, `${front.issuer}/interaction/`, { headers: from(address) })
  const nobody = `${front.issuer}/auth?client_id=nobody`
  for (let n = 0; n < 20; n++) t.equal((await go('203.0.113.7', nobody)).status, 400)
  const silent = begin(front, clientId, { prompt: 'none' })
  for (let n = 0; n < 5; n++) {
    const answer = await fetch(silent, { headers: from('203.0.113.7'), redirect: 'manual' })
    t.match(answer.headers.get('location'), /error=login_required/)
  }
  for (let n = 0; n < 2; n++) t.equal((await go('203.0.113.7', begin(front, clientId))).html, '', 'it begins')
  const page = await go('203.0.113.7', begin(front, clientId))
  t.match(page, { status: 429, html: /<h1>This sign-in cannot go on<[^]*Try again in \d+ seconds/ })
  t.match(page.headers.get('content-security-policy'), /default-src 'none'/)
  t.equal((await go('198.51.100.7', begin(front, clientId))).html, '', 'others sign in meanwhile')

  for (let n = 0; n < 2; n++) t.equal(await statusOf(from('198.51.100.7')), 201)
  t.equal(await statusOf(from('192.0.2.1')), 429, 'twice as many from all')
  const said = front.log.filter(({ msg }) => msg === 'the login front is asked too often')
  t.match(said, [
    { limit: 'registrationsPerHour', address: '2001:db8:0:7::/64' },
    { limit: 'authorizationsPerMinute', address: '203.0.113.7' },
    { limit: 'registrationsPerHour', address: undefined }
  ])
})

t.test('what is given back late takes nothing off the window that has begun since', async (t) => {
  let counted = 0
  const store = new Proxy(await createSqliteStore({ path: ':memory:', clock: Date, log: quiet }), {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (name !== 'count') return member
      return async (...args: unknown[]): Promise<unknown> => {
        const count: unknown = await (member as (...given: unknown[]) => unknown).apply(target, args)
        if (args[1] === 1) counted += 1
        return count
      }
    }
  })
  const front = await loginGateway(t, { login: { registrationsPerHour: 1 }, overrides: { store } })
  t.teardown(() => moveClock(0))
  const body = JSON.stringify({ redirect_uris: [] })
  const slow = dial(front.port)
  slow.write(
    `POST /login/acme/reg HTTP/1.1\r\nHost: 127.0.0.1:${front.port}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n`
  )
  await until('it is counted for its address and for all', () => counted === 2)
  moveClock(61 * 60_000)
  t.equal((await register(front)).status, 201, 'a window has begun anew')
  slow.write(body)
  t.match(await untilClosed(slow), /^HTTP\/1\.1 400/)
  t.equal((await register(front)).status, 429)
})

t.test('while the store is away hosts are told to come back, and nothing is used up', async (t) => {
  let isAway = false
  const store = new Proxy(await createSqliteStore({ path: ':memory:', clock: Date, log: quiet }), {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (...args: unknown[]): unknown => {
        if (isAway && ['get', 'set', 'count', 'entries', 'append', 'touch', 'delete'].includes(String(name)))
          return Promise.reject(unavailable('The store cannot be reached.'))
        return (member as (...given: unknown[]) => unknown).apply(target, args)
      }
    }
  })
  const front = await loginGateway(t, { overrides: { store } })
  const before = await logIn(front, front.url())
  t.teardown(() => moveClock(0))
  for (const ms of [0, 120_000]) {
    moveClock(ms)
    isAway = true
    const refused = await refresh(front, before)
    t.match(refused.body, { error: 'temporarily_unavailable' }, 'with keys that are known and without')
    isAway = false
  }
  t.equal((await refresh(front, before)).status, 200)
  t.notOk(front.log.some(({ msg }) => msg === 'the login front failed'))
})
