// Attack: upstreams of one tenant send as much as they may, at once, and its callers do not read what they asked for.

import { readdirSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { legacyClient } from '../kit/client.ts'
import { listenEvents } from '../kit/events.ts'
import { modernMessage, modernRequest } from '../kit/modern-client.ts'
import { startModern } from '../kit/modern-server.ts'
import { dial } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'
import { startUpstream, isCall } from '../kit/upstream.ts'
import { attacked, keys, type Attacked } from './kit.ts'

const mebibyte = 1024 * 1024
const memoryBytes = 600 * mebibyte
const huge = 'x'.repeat(15_000_000)

const limited = (t: Test, upstreams: Record<string, unknown>): Promise<Attacked> =>
  attacked(t, { upstreams, limits: { memoryBytes }, heapMiB: 500 })

const refusals = ({ log }: Attacked): number =>
  log().filter(({ msg, outcome }) => msg === 'call' && outcome === 'too_many').length

/** What holds of every attack here. */
async function survived(t: Test, gateway: Attacked, neighbour: Awaited<ReturnType<Attacked['neighbour']>>) {
  const colleague = await legacyClient(gateway.url, keys.colleague)
  const call = { name: 'calm__echo', arguments: { text: 'x'.repeat(100_000) } }
  t.match((await colleague.request('tools/call', call)).json, { result: {} }, 'a colleague is served')
  t.same((await neighbour.stop()).failures, [])
  t.ok(gateway.peakMemory() < memoryBytes, `the resident set grew to ${gateway.peakMemory()} bytes`)
}

t.test('answers of 2026-07-28 that nobody reads', async (t) => {
  const upstream = await startModern()
  t.teardown(() => upstream.close())
  const gateway = await limited(t, { up: { type: 'http', url: upstream.url } })
  const neighbour = await gateway.neighbour()
  const { port } = new URL(gateway.url)
  const { headers, body } = modernMessage(
    'tools/call',
    { name: 'up__big', arguments: { bytes: 15_000_000 } },
    { token: keys.attacker }
  )
  const head = Object.entries({ ...headers, host: `127.0.0.1:${port}`, 'content-length': Buffer.byteLength(body) })
  const lines = head.map(([name, value]) => `${name}: ${String(value)}\r\n`).join('')
  for (let at = 0; at < 30; at++) {
    const socket = dial(Number(port)).pause()
    t.teardown(() => socket.destroy())
    socket.write(`POST /t/acme/mcp HTTP/1.1\r\n${lines}\r\n${body}`)
  }
  await until('calls are refused', () => refusals(gateway) > 5, 60_000)
  await survived(t, gateway, neighbour)
  const call = { name: 'calm__echo', arguments: {} }
  t.equal((await modernRequest(gateway.url, 'tools/call', call, { token: keys.colleague })).status, 200)
})

for (const answers of ['json', 'sse'] as const)
  t.test(`answers that come in pieces and do not end, as ${answers}`, async (t) => {
    const upstream = await startUpstream()
    t.teardown(() => upstream.close())
    const stuck: ServerResponse[] = []
    upstream.override(
      isCall('slow'),
      (response) => {
        response.writeHead(200, { 'content-type': answers === 'json' ? 'application/json' : 'text/event-stream' })
        response.write(answers === 'json' ? `{"jsonrpc":"2.0","result":{"text":"${huge}` : `data: {"text":"${huge}`)
        stuck.push(response)
      },
      Infinity
    )
    const gateway = await limited(t, { up: { type: 'http', url: upstream.url } })
    const neighbour = await gateway.neighbour()
    const client = await legacyClient(gateway.url, keys.attacker)
    const stop = new AbortController()
    const { signal } = stop
    const calls = Array.from({ length: 30 }, () =>
      client.request('tools/call', { name: 'up__slow', arguments: {} }, { signal }).catch(() => undefined)
    )
    await until('calls are refused', () => refusals(gateway) > 5, 60_000)
    // Those that still grow take what there is, until each is refused or whole.
    await until('an answer for which there is room comes through', async () => {
      const big = await client.request('tools/call', { name: 'up__big', arguments: { bytes: 1_000_000 } })
      return big.json.result !== undefined
    })
    await survived(t, gateway, neighbour)
    stop.abort()
    await Promise.all(calls)
  })

/** `node -e` of it, with a folder: a server that begins a long answer to its first call, and ends it with its second one. */
const drawlingServer = `
  const { writeFileSync } = require('node:fs')
  let isOpen = false
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line)
    const write = (text, done) => process.stdout.write(text, done)
    const say = (result) => write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
    if (id === undefined) return
    if (method === 'initialize')
      return say({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'd', version: '1' } })
    if (method === 'tools/list') return say({ tools: [{ name: 'drawl', inputSchema: { type: 'object' } }] })
    if (method !== 'tools/call') return say({})
    if (isOpen) {
      write('"}}\\n')
      return say({ content: [] })
    }
    isOpen = true
    const begun = '{"jsonrpc":"2.0","id":' + id + ',"result":{"content":[],"x":"' + 'x'.repeat(6e6)
    write(begun, () => writeFileSync(process.argv[1] + '/' + process.pid, ''))
  })`

t.test('lines of processes that do not end', async (t) => {
  const folder = t.testdir({})
  const command = { command: process.execPath, args: ['-e', drawlingServer, folder], era: 'legacy' }
  const names = ['one', 'two', 'three', 'four']
  const gateway = await limited(t, Object.fromEntries(names.map((name) => [name, command])))
  const neighbour = await gateway.neighbour()
  const clients = await Promise.all([keys.attacker, keys.colleague].map((key) => legacyClient(gateway.url, key)))
  const callAll = () =>
    clients.flatMap((client) =>
      names.map(async (name) => (await client.request('tools/call', { name: `${name}__drawl`, arguments: {} })).json)
    )
  const answers = callAll()
  // More than there is memory for, all at once: each process says so when its line is read but for the end.
  await until('all lines are begun', () => readdirSync(folder).length === answers.length)
  await survived(t, gateway, neighbour)
  for (const { result } of await Promise.all(callAll())) t.match(result, { content: [] }, 'the process is used further')
  const [whole, lost] = [[] as number[], [] as unknown[]]
  for (const { result, error } of await Promise.all(answers)) {
    if (error === undefined) whole.push(result.x.length)
    else lost.push(error)
  }
  t.ok(whole.length > 0 && whole.every((length) => length === 6e6), `${whole.length} came whole, the control`)
  t.ok(lost.length > 0, `${lost.length} were lost`)
  for (const error of lost)
    t.match(error, { message: /is lost: it would need more memory than is left/, data: { reason: 'too_many' } })
})

t.test('events that wait for readers who stay away', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const gateway = await limited(t, { up: { type: 'http', url: upstream.url, isolation: 'session' } })
  const neighbour = await gateway.neighbour()
  const clients = await Promise.all(Array.from({ length: 100 }, () => legacyClient(gateway.url, keys.attacker)))
  const lastIds: Array<string | undefined> = []
  for (const client of clients) {
    await client.request('tools/call', { name: 'up__echo', arguments: {} })
    const stream = await listenEvents(gateway.url, client)
    lastIds.push(await until('it can be come back to', () => stream.lastId()))
    stream.cut()
  }
  await until('the upstream can be heard', () => upstream.allListening())
  const say = (data: string): void =>
    upstream.broadcast({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'error', data } })
  const sent = 8
  for (let at = 0; at < sent; at++) say('x'.repeat(1_000_000))
  await clients[0]?.request('tools/call', { name: 'up__echo', arguments: {} })
  await survived(t, gateway, neighbour)

  // They come back one after the other: what one of them has read makes no room for what is lost already.
  let told = 0
  for (const [at, client] of clients.entries()) {
    const stream = await listenEvents(gateway.url, client, lastIds[at])
    await until('it is there', () => stream.text() !== '')
    // What there was no memory for has ended the streams of the upstream on which it came: they are opened again.
    await until('the upstream can be heard again', () => upstream.allListening())
    say('the last')
    await stream.next('the last', ({ params }) => params?.data === 'the last')
    told += stream.messages().filter(({ params }) => params?.data?.length === 1_000_000).length
    stream.cut()
  }
  t.ok(told > 0 && told < clients.length * sent, `${told} of ${clients.length * sent} were kept for them`)
})
