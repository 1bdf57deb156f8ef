// Attack: more requests than the gateway can serve. Those that would wait too long are refused at once with what to do,
// the others are answered, and probes hear that it lives.

import type { Socket } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { recordsIn } from '../audit/kit.ts'
import { legacyClient } from '../kit/client.ts'
import { dial } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'
import { attacked, keys } from './kit.ts'

const connections = 1_500

t.test(
  'requests that wait longer than limits.queueMs are refused with 503, and the next ones are served',
  async (t) => {
    const file = join(t.testdir(), 'audit.jsonl')
    const rates = { requestsPerSecondPerPrincipal: 100_000, requestsPerSecondPerTenant: 100_000 }
    const gateway = await attacked(t, { limits: { ...rates, queueMs: 50 }, top: { audit: { store: false, file } } })
    const { host, port } = new URL(gateway.origin)
    const session = await legacyClient(gateway.url, keys.attacker)
    const all: Array<{ readonly socket: Socket; text: string }> = []

    async function open(): Promise<void> {
      const one = { socket: dial(Number(port)), text: '' }
      one.socket.on('data', (part: Buffer) => (one.text += part.toString('latin1'))).on('error', () => {})
      await new Promise((resolve) => one.socket.once('connect', resolve))
      all.push(one)
    }
    while (all.length < connections) await Promise.all(Array.from({ length: 100 }, open))
    const headers = Object.entries(session.headers).map(([name, value]) => `${name}: ${value}\r\n`)
    await gateway.pause()
    for (const [id, { socket }] of all.entries()) {
      const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/list' })
      const length = `Content-Length: ${body.length}\r\n`
      socket.write(`POST /t/acme/mcp HTTP/1.1\r\nHost: ${host}\r\n${length}${headers.join('')}\r\n${body}`)
    }
    const probe = fetch(`${gateway.origin}/health/live`)
    gateway.signal('SIGCONT')
    await until('all are answered', () => all.every(({ text }) => text.includes('\r\n\r\n')), 60_000)
    const served = all.filter(({ text }) => text.startsWith('HTTP/1.1 200'))
    const refused = all.filter(({ text }) => text.startsWith('HTTP/1.1 503'))
    t.equal(served.length + refused.length, connections)
    t.ok(served.length > 0, `${served.length} are answered`)
    t.ok(refused.length > 0, `${refused.length} are refused`)
    const says = /retry-after: 1\r\n[^]*"reason":"overloaded"/i
    t.ok(
      refused.every(({ text }) => says.test(text)),
      'they are told why, and when to come again'
    )
    const ids = refused.map(({ text }) => /x-request-id: (\S+)\r\n[^]*"requestId":"(\S+?)"/i.exec(text)?.slice(1))
    t.ok(
      ids.every((pair) => pair !== undefined && pair[0] === pair[1]),
      'each has an id'
    )
    t.equal(new Set(ids.map((pair) => pair?.[0])).size, refused.length)
    t.equal((await probe).status, 200, 'a probe hears that it lives, however long it waits')

    for (const { socket } of all) socket.destroy()
    const servesAgain = async (): Promise<boolean> => (await session.request('tools/list', {})).status === 200
    await until('the control: with less to do it serves again', servesAgain)
    const lines = () => gateway.log().filter(({ msg }) => String(msg).startsWith('overloaded'))
    await until('the log says it', () => lines().length > 0)
    t.match(lines()[0], { queueMs: 50, level: 40 })
    const recorded = async () => (await recordsIn(file)).filter(({ kind }) => kind === 'refused')
    await until('refusals are recorded', async () => (await recorded()).length > 0)
    t.match((await recorded())[0], { endpoint: 'default', outcome: 'overloaded', http: 'POST', chain: /^acme\// })
    t.ok((await recorded()).length < 100, 'and not each of them')
    t.ok(lines().length <= 2, 'the log says it once at level info, not for each')
  }
)
