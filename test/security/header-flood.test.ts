// Attack: too many or too long headers, characters that headers cannot have, and thousands of pipelined requests.

import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { dial } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'

const pingOf = (id: number): string => JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' })
const ping = pingOf(1)

t.test('too many, too long and malformed headers are refused', async (t) => {
  const acme = await acmeGateway(t)
  const { sessionId } = await legacyClient(acme.url(), keyOf.ada)
  const as = async (headers: string) =>
    (await acme.exchange(acme.post(ping, `Mcp-Session-Id: ${sessionId}\r\n${headers}`))).status
  t.equal(await as(Array.from({ length: 100 }, (_, n) => `X-${n}: ${n}\r\n`).join('')), 200, 'a hundred pass')
  t.equal(await as(`X-Long: ${'x'.repeat(8_000)}\r\n`), 200)
  t.equal(await as(Array.from({ length: 2_000 }, (_, n) => `X-${n}: ${n}\r\n`).join('')), 431)
  t.equal(await as(Array.from({ length: 5_000 }, () => 'a:\r\n').join('')), 431)
  t.equal(await as(`X-Long: ${'x'.repeat(30_000)}\r\n`), 200, 'a long URI in Mcp-Name fits')
  t.equal(await as(`X-Long: ${'x'.repeat(33_000)}\r\n`), 431)
  t.equal(await as(`${'x'.repeat(33_000)}: 1\r\n`), 431)
  t.equal(await as(`Accept: ${'text/html,'.repeat(1_500)}*/*\r\n`), 200, 'a long Accept costs little')
  t.equal(await as(`Origin: ${'x'.repeat(9_000)}\r\n`), 403)
  for (const character of ['\0', '\x01', '\x7f', '\n', '\r'])
    t.equal(await as(`X-A: a${character}b\r\n`), 400, JSON.stringify(character))
  for (const name of ['X A', 'X\tA', 'X(A)', 'X"A', 'Ü', ''])
    t.equal(await as(`${name}: b\r\n`), 400, JSON.stringify(name))
  t.equal(
    (await acme.exchange(acme.post(ping, `Expect: 100-continue\r\nMcp-Session-Id: ${sessionId}\r\n`))).text.slice(
      0,
      21
    ),
    'HTTP/1.1 100 Continue'
  )
  t.equal(await as('Expect: everything\r\n'), 417)
})

t.test('of requests on one connection a thousand are served, and no more', async (t) => {
  const acme = await acmeGateway(t)
  const { sessionId } = await legacyClient(acme.url(), keyOf.ada)
  // Each has an id of its own: one that is in flight is refused for another request.
  const one = (id: number): string =>
    acme.post(pingOf(id), `Mcp-Session-Id: ${sessionId}\r\n`).replace('Connection: close\r\n', '')
  const socket = dial(acme.port)
  let text = ''
  socket.setEncoding('utf8')
  socket.on('data', (part: string) => {
    text += part
  })
  const statuses = (): Array<string | undefined> => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
  for (let sent = 20; sent <= 1_020; sent += 20) {
    // Pipelined: they are answered in their order.
    socket.write(Array.from({ length: 20 }, (_, n) => one(sent + n)).join(''))
    await until('all are answered', () => statuses().length === sent)
  }
  socket.destroy()
  t.same(
    statuses(),
    [...Array<string>(1_000).fill('200'), ...Array<string>(20).fill('503')],
    'a thousand, and then none'
  )
})
