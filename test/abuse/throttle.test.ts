// Attack: one caller sends long bodies, or opens sessions, without a pause.

import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { request, type IncomingMessage } from 'node:http'
import t from 'tap'
import { legacyClient, open, send, type Answer, type LegacyClient } from '../kit/client.ts'
import { dial, readRawResponse, untilClosed } from '../kit/raw-http.ts'
import { attacked, keys } from './kit.ts'

const bodiesOfCaller = 'bodyBytesPerSecondPerPrincipal'
const bodiesOfTenant = 'bodyBytesPerSecondPerTenant'
const sessionsOfCaller = 'sessionsPerSecondPerPrincipal'
const sessionsOfTenant = 'sessionsPerSecondPerTenant'
const longText = 'x'.repeat(65_536)
/** More than a minute for each long body. */
const slowest = 1_024
/** Seven seconds of waiting for the second long body, eight more for each that follows. */
const slow = 8_192
const refused = (limit: string): object => ({
  status: 429,
  headers: {
    'retry-after': /^\d+$/,
    'ratelimit-policy': new RegExp(`^"${limit}";q=\\d+;w=1`),
    ratelimit: new RegExp(`^"${limit}";r=0;t=\\d+$`)
  },
  json: {
    error: { data: { reason: 'rate_limited', limit, retryAfterMs: Number }, message: new RegExp(`limits\\.${limit}`) }
  }
})
const sendLong = (client: LegacyClient): Promise<Answer> => client.request('ping', { text: longText })

t.test('long bodies of a caller wait for those before them, and hold up nothing else', async (t) => {
  const gateway = await attacked(t, { limits: { [bodiesOfCaller]: slow } })
  const attacker = await legacyClient(gateway.url, keys.attacker)
  const colleague = await legacyClient(gateway.url, keys.colleague)
  const neighbour = await legacyClient(gateway.neighbourUrl, keys.neighbour)
  t.match(await sendLong(attacker), { status: 200 }, 'what comes at once after a pause is answered')
  let isAnswered = false
  const waiting = new AbortController()
  const { headers } = attacker
  const body = JSON.stringify({ jsonrpc: '2.0', id: 'waits', method: 'ping', params: { text: longText } })
  const second = send(gateway.url, { headers, body, signal: waiting.signal }).then(
    () => (isAnswered = true),
    () => {}
  )
  t.match(await attacker.request('ping'), { status: 200 }, 'short bodies do not wait')
  t.match(await sendLong(colleague), { status: 200 }, 'nor do those of another caller of the tenant')
  t.match(await sendLong(neighbour), { status: 200 }, 'nor do those of another tenant')
  t.notOk(isAnswered)
  waiting.abort()
  await second
})

t.test('those that wait are read as the limit allows', async (t) => {
  const gateway = await attacked(t, { limits: { [bodiesOfCaller]: 1_048_576 } })
  const attacker = await legacyClient(gateway.url, keys.attacker)
  const answers = await Promise.all(Array.from({ length: 24 }, () => sendLong(attacker)))
  t.ok(
    answers.every(({ status }) => status === 200),
    'one and a half of what may come at once are answered'
  )
})

t.test('where one would wait for longer than queueMs, it is refused', async (t) => {
  const gateway = await attacked(t, {
    limits: { [bodiesOfCaller]: slowest, [bodiesOfTenant]: slowest * 2, queueMs: 1_000 }
  })
  const attacker = await legacyClient(gateway.url, keys.attacker)
  t.match(await sendLong(attacker), { status: 200 })
  t.match(await sendLong(attacker), refused(bodiesOfCaller))
  t.match(await attacker.request('ping'), { status: 200 })
  const colleague = await legacyClient(gateway.url, keys.colleague)
  t.match(await sendLong(colleague), refused(bodiesOfTenant))
  const neighbour = await legacyClient(gateway.neighbourUrl, keys.neighbour)
  t.match(await sendLong(neighbour), { status: 200 })
})

t.test('one without a length counts when it was read', async (t) => {
  const gateway = await attacked(t, { limits: { [bodiesOfCaller]: slowest, queueMs: 1_000 } })
  const { headers } = await legacyClient(gateway.url, keys.attacker)
  const colleague = await legacyClient(gateway.url, keys.colleague)
  const { host, port } = new URL(gateway.origin)
  const pingOf = (text: string): string => JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { text } })
  const sendChunked = async (body: string, headers: object) => {
    const fields = Object.entries({ ...headers, host, 'transfer-encoding': 'chunked', connection: 'close' })
    const socket = dial(Number(port))
    socket.write(
      `POST /t/acme/mcp HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n` +
        `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
    )
    return readRawResponse(await untilClosed(socket))
  }
  t.match(await sendChunked(pingOf('short'), headers), { status: 200 })
  t.match(await sendChunked(pingOf(longText), headers), { status: 200 })
  t.match(await sendChunked(pingOf(longText), headers), { status: 429 })
  t.match(await sendChunked(`${pingOf(longText)} no JSON`, colleague.headers), { status: 400 })
  t.match(await sendChunked(pingOf('short'), colleague.headers), { status: 429 }, 'also where it is refused')
})

t.test('one that says it is longer than any may be takes nothing from its colleagues', async (t) => {
  const gateway = await attacked(t, { limits: { [bodiesOfTenant]: 16_777_216 } })
  const attacker = await legacyClient(gateway.url, keys.attacker)
  const colleague = await legacyClient(gateway.url, keys.colleague)
  const lie = { ...attacker.headers, 'content-length': 1e15, expect: '100-continue' }
  t.match(await send(gateway.url, { headers: lie }), { status: 413 })
  t.match(await sendLong(colleague), { status: 200 })
})

/** Sends a long body, which waits. @returns how it is answered */
async function sendWaiting(
  url: string,
  { headers }: LegacyClient
): Promise<() => Promise<{ status: number; text: string }>> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 'waits', method: 'ping', params: { text: longText } })
  const length = { expect: '100-continue', 'content-length': body.length }
  const outgoing = request(url, { method: 'POST', agent: false, headers: { ...headers, ...length } })
  const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>
  outgoing.flushHeaders()
  // Node says so when it begins the request.
  await once(outgoing, 'continue')
  outgoing.end(body)
  return async () => {
    const [response] = await answered
    return { status: response.statusCode ?? 0, text: Buffer.concat(await response.toArray()).toString() }
  }
}

t.test('after the wait a caller is checked again, and the gateway may be stopping', async (t) => {
  const gateway = await attacked(t, {
    limits: { [bodiesOfCaller]: slow, [sessionsOfCaller]: 1, queueMs: 60_000 }
  })
  const attacker = await legacyClient(gateway.url, keys.attacker)
  const colleague = await legacyClient(gateway.url, keys.colleague)
  for (const client of [attacker, colleague]) t.match(await sendLong(client), { status: 200 })
  const ofAttacker = await sendWaiting(gateway.url, attacker)
  const ofColleague = await sendWaiting(gateway.url, colleague)
  const openStream = ({ headers }: LegacyClient) =>
    open(`${gateway.origin}/t/acme/sse`, { headers: { ...headers, accept: 'text/event-stream' } })
  // The first has come with the session.
  const streams = Array.from({ length: 8 }, () => openStream(attacker))
  const config = JSON.parse(await readFile(gateway.configFile, 'utf8')) as { tenants: { acme: { auth: unknown } } }
  config.tenants.acme.auth = { keys: [{ name: 'colleague', key: keys.colleague }] }
  await writeFile(gateway.configFile, JSON.stringify(config))
  gateway.signal('SIGHUP')
  t.match(await ofAttacker(), { status: 401 }, 'its key was taken away while it waited')
  const statuses = await Promise.all(streams.map(async (stream) => (await stream).destroy().statusCode))
  t.equal(statuses.at(-1), 401, 'nor is a stream opened')
  t.match(await ofColleague(), { status: 200 }, 'the control')
  const last = await sendWaiting(gateway.url, colleague)
  gateway.signal('SIGTERM')
  t.match(await last(), { status: 503, text: /shutting_down/ })
})

t.test('sessions of a caller wait for those before them, and are refused beyond queueMs', async (t) => {
  const gateway = await attacked(t, { limits: { [sessionsOfCaller]: 2, [sessionsOfTenant]: 3, queueMs: 1_500 } })
  const open = (key: string, url = gateway.url) => legacyClient(url, key)
  const opened = await Promise.all(Array.from({ length: 4 }, () => open(keys.attacker)))
  t.equal(opened.length, 4, 'two come at once, two a second later')
  const openings = (key: string, count: number): Promise<Answer[]> =>
    Promise.all(
      Array.from({ length: count }, (_, id) =>
        send(gateway.url, {
          headers: { ...opened[0]?.headers, authorization: `Bearer ${key}`, 'mcp-session-id': '' },
          body: JSON.stringify({
            jsonrpc: '2.0',
            id,
            method: 'initialize',
            params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'flood', version: '1' } }
          })
        })
      )
    )
  const answers = await openings(keys.attacker, 20)
  const beyond = answers.filter(({ status }) => status !== 200)
  t.ok(beyond.length >= 10, 'those beyond are refused')
  for (const answer of beyond) t.match(answer, refused(sessionsOfCaller))
  const neighbour = await open(keys.neighbour, gateway.neighbourUrl)
  t.match(await neighbour.request('ping'), { status: 200 }, 'another tenant opens one')
  t.match(await opened[0]?.request('ping'), { status: 200 }, 'an open one goes on')
})
