// Attack: one caller sends long bodies, or opens sessions, without a pause.

import t from 'tap'
import { legacyClient, send, type Answer, type LegacyClient } from '../kit/client.ts'
import { dial, readRawResponse, untilClosed } from '../kit/raw-http.ts'
import { attacked, keys } from './kit.ts'

const bodiesOfCaller = 'bodyBytesPerSecondPerPrincipal'
const bodiesOfTenant = 'bodyBytesPerSecondPerTenant'
const sessionsOfCaller = 'sessionsPerSecondPerPrincipal'
const sessionsOfTenant = 'sessionsPerSecondPerTenant'
const longText = 'x'.repeat(65_536)
/** More than a minute for each long body. */
const slowest = 1_024
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
  const gateway = await attacked(t, { limits: { [bodiesOfCaller]: slowest, queueMs: 300_000 } })
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
  const { host, port } = new URL(gateway.origin)
  const sendChunked = async (text: string) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { text } })
    const fields = Object.entries({ ...headers, host, 'transfer-encoding': 'chunked', connection: 'close' })
    const socket = dial(Number(port))
    socket.write(
      `POST /t/acme/mcp HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n` +
        `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
    )
    return readRawResponse(await untilClosed(socket))
  }
  t.match(await sendChunked('short'), { status: 200 })
  t.match(await sendChunked(longText), { status: 200 })
  t.match(await sendChunked(longText), { status: 429 })
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
