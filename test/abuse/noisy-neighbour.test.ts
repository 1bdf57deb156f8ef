// Attack: a tenant is noisy in all ways at once: ten times what its limit lets it call, a thousand streams that nobody
// reads, bodies that are too long, bodies that never end. It is refused what is beyond its part, and its neighbour is
// served. How much longer the neighbour waits depends on the machine: it is told, not judged (`npm run abuse` judges it).

import type { Socket } from 'node:net'
import t from 'tap'
import { legacyClient, send } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { dial } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'
import { attacked, keys } from './kit.ts'

const quota = 20
const streams = 1_000
const authorization = `Bearer ${keys.attacker}`
const echo = { name: 'calm__echo', arguments: {} }

/** How often each answer came. */
const counted = (answers: ReadonlyArray<string | number>): Record<string, number> =>
  Object.fromEntries([...Map.groupBy(answers, String)].map(([answer, all]) => [answer, all.length]))

t.test(
  'a tenant that is noisy in all ways at once is refused, and its neighbour has every call answered',
  async (t) => {
    const limits = { calls: { per: ['principal'], perSecond: quota } }
    const gateway = await attacked(t, { tenant: { limits } })
    const { host, port } = new URL(gateway.origin)
    const call = () => modernRequest(gateway.url, 'tools/call', echo, { token: keys.attacker })
    const calmly = await gateway.neighbour()
    // The control: within its limit the tenant is served as well.
    const session = await legacyClient(gateway.url, keys.attacker)
    for (let at = 0; at < 10; at++) t.match((await session.request('tools/call', echo)).json, { result: {} })
    const calm = await calmly.stop()

    const neighbour = await gateway.neighbour()
    const sockets: Array<{ readonly socket: Socket; text: string }> = []
    /** @param body what is sent of it */
    function open(method: string, length: number, body: string, extra: string): void {
      const one = { socket: dial(Number(port)), text: '' }
      one.socket.on('error', () => {})
      // The head of the answer is read, and nothing of the stream.
      one.socket.once('data', (part: Buffer) => {
        one.text = part.toString('latin1')
        one.socket.pause()
      })
      one.socket.write(
        `${method} /t/acme/mcp HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${authorization}\r\n` +
          `Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n${extra}` +
          `Content-Length: ${length}\r\n\r\n${body}`
      )
      sockets.push(one)
    }
    const listen = JSON.stringify({
      jsonrpc: '2.0',
      id: 'l',
      method: 'subscriptions/listen',
      params: {
        notifications: { toolsListChanged: true },
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': {}
        }
      }
    })
    const head = 'MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n'
    for (let at = 0; at < streams; at++) open('POST', listen.length, listen, head)
    const listening = sockets.slice()
    // Bodies whose rest never comes.
    for (let at = 0; at < 50; at++) open('POST', 1_000_000, '{', '')
    const calls: number[] = []
    const tooLong: number[] = []
    const long = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { x: 'x'.repeat(9_000_000) } })
    const headers = { authorization, 'content-type': 'application/json' }
    for (let round = 0; round < 5; round++) {
      const flood = Array.from({ length: quota * 10 }, async () => calls.push((await call()).status))
      const body = send(gateway.url, { headers, body: long }).then(
        ({ status }) => tooLong.push(status),
        // It is told before all is sent, and may not read that any more.
        () => tooLong.push(0)
      )
      await Promise.all([...flood, body])
    }
    const statusOf = ({ text }: { text: string }): string => text.split(' ', 2)[1] ?? ''
    await until('all streams are answered', () => listening.every((one) => one.text !== '' || one.socket.destroyed))
    const { meanwhile, failures, p99Ms } = await neighbour.stop()
    t.same(failures, [])
    t.ok(meanwhile > 0, 'calls of the neighbour are answered meanwhile')
    const [ofCalls, ofStreams] = [counted(calls), counted(listening.map(statusOf))]
    t.ok((ofCalls['200'] ?? 0) > 0 && (ofCalls['429'] ?? 0) > calls.length / 2, JSON.stringify(ofCalls))
    t.ok((ofStreams['200'] ?? 0) > 0 && (ofStreams['200'] ?? 0) < streams / 2, JSON.stringify(ofStreams))
    t.same(counted(tooLong.filter((status) => status === 200)), {}, JSON.stringify(counted(tooLong)))
    t.comment(`p99 of the neighbour: ${calm.p99Ms} ms before, ${p99Ms} ms meanwhile`)

    for (const { socket } of sockets) socket.destroy()
    await until('the control: with less to do the tenant is served again', async () => (await call()).status === 200)
  }
)
