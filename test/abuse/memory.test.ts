// Attack: all callers and upstreams of one tenant fill the memory at once, in every way that there is, and begin again
// when they are refused. In 600 MiB and for some seconds; `ABUSE_MEMORY_MIB=2048 ABUSE_SECONDS=120 node
// test/abuse/memory.test.ts` is the long form.

import type { ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { legacyClient, open, send, type LegacyClient } from '../kit/client.ts'
import { httpSseClient } from '../kit/http-sse-client.ts'
import { modernMessage, modernRequest } from '../kit/modern-client.ts'
import { startModern } from '../kit/modern-server.ts'
import { dial } from '../kit/raw-http.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { attacked, keys, stdioServer, type Attacked } from './kit.ts'

const mebibyte = 1024 * 1024
const memoryBytes = Number(process.env['ABUSE_MEMORY_MIB'] ?? 600) * mebibyte
const attackMs = Number(process.env['ABUSE_SECONDS'] ?? 5) * 1_000
/** Attackers of each kind. */
const crowd = Math.round(memoryBytes / mebibyte / 60)

const huge = 'x'.repeat(15_000_000)
const text = 'x'.repeat(4_000_000)
// Nothing but brackets: many times their length in memory.
const dense = Array.from({ length: 120_000 }, () => [])
const callers = [keys.attacker, keys.colleague]

/** A tool list of nearly a million characters, as are those of the other kinds. */
const longList = Array.from({ length: 900 }, (_, at) => ({
  name: `tool-${at}`,
  description: 'x'.repeat(900),
  inputSchema: { type: 'object' }
}))

interface Attack {
  readonly gateway: Attacked
  readonly signal: AbortSignal
  /** Counts how requests of attackers ended. */
  readonly ended: Map<string, number>
  readonly sessions: LegacyClient[]
}

/** Sends a request on a connection of its own, of which it reads so many bytes now and then. */
async function unread({ gateway, signal }: Attack, headers: object, body: string, trickle = 0): Promise<void> {
  const { port, host } = new URL(gateway.url)
  const socket = dial(Number(port)).pause()
  const lines = Object.entries({ host, ...headers, 'content-length': Buffer.byteLength(body) })
  const head = lines.map(([name, value]) => `${name}: ${String(value)}\r\n`).join('')
  socket.write(`POST /t/acme/mcp HTTP/1.1\r\n${head}\r\n${body}`)
  for (let beats = 0; beats < 100 && !signal.aborted && !socket.closed; beats++) {
    await wait(50, undefined, { signal }).catch(() => {})
    if (trickle > 0) socket.read(trickle)
  }
  socket.destroy()
}

const call = (name: string, args: object, id: unknown = 1): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } })

function note({ ended }: Attack, outcome: string): void {
  ended.set(outcome, (ended.get(outcome) ?? 0) + 1)
}

async function client({ gateway, sessions }: Attack, key: string, capabilities = {}): Promise<LegacyClient> {
  const made = await legacyClient(gateway.url, key, '2025-11-25', capabilities)
  sessions.push(made)
  return made
}

/** What one attacker does once; it begins again as soon as that is over. */
const attacks: Readonly<Record<string, (attack: Attack, key: string, round: number) => Promise<void>>> = {
  async 'large arguments of calls that are never answered'(attack, key, round) {
    const own = await client(attack, key)
    const args = round % 2 === 0 ? { text } : { dense }
    const { signal } = attack
    await Promise.all(
      Array.from({ length: 5 }, async (_, id) => {
        const answer = await own.request('tools/call', { name: 'silent__hang', arguments: args }, { id, signal })
        note(attack, String(answer.json?.error?.data?.reason))
      })
    )
  },
  async 'answers of 2026-07-28 that nobody reads'(attack, key) {
    const params = { name: 'modern__big', arguments: { bytes: 15_000_000 } }
    const { headers, body } = modernMessage('tools/call', params, { token: key })
    await unread(attack, headers, body)
  },
  async 'answers to sessions that nobody reads, or a little at a time'(attack, key, round) {
    const { headers } = await client(attack, key)
    const accept = round % 2 === 0 ? 'application/json' : 'text/event-stream'
    await unread(
      attack,
      { ...headers, accept },
      call('legacy__big', { bytes: 12_000_000 }),
      round % 3 === 0 ? 4_096 : 0
    )
  },
  async 'sessions with subscriptions to long URIs'(attack, key) {
    const own = await client(attack, key)
    for (let at = 0; at < 1_000 && !attack.signal.aborted; at++) {
      const uri = `long://item/${at}${'x'.repeat(1_900)}`
      const { json } = await own.request('resources/subscribe', { uri }, { signal: attack.signal })
      if (json.error === undefined) continue
      note(attack, String(json.error.data?.reason))
      return
    }
  },
  async 'lists that nobody reads, for ever other capabilities'(attack, key, round) {
    const { headers } = await client(attack, key, { experimental: { [`x${round}`]: {} }, sampling: {} })
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} })
    await Promise.all(Array.from({ length: 5 }, () => unread(attack, headers, body)))
  },
  async 'upstreams whose answers do not end'(attack, key) {
    const own = await client(attack, key)
    const { json } = await own.request(
      'tools/call',
      { name: 'endless__slow', arguments: {} },
      { signal: attack.signal }
    )
    note(attack, String(json.error?.data?.reason))
  },
  async 'calls that wait for a person'(attack, key) {
    const { signal } = attack
    const params = { name: 'legacy__elicit', arguments: { text: text.slice(0, 1_000_000) } }
    const options = { token: key, capabilities: { elicitation: {} }, signal }
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => modernRequest(attack.gateway.url, 'tools/call', params, options))
    )
    for (const { json } of answers) note(attack, String(json.error?.data?.reason))
  },
  async 'streams that nobody reads, with large messages'(attack, key) {
    const own = await client(attack, key)
    await own.request('tools/call', { name: 'legacy__echo', arguments: {} })
    const headers = { ...own.headers, accept: 'text/event-stream' }
    const { signal } = attack
    const stream = await open(attack.gateway.url, { headers, signal })
    stream.pause()
    await wait(2_000, undefined, { signal }).catch(() => {})
    stream.destroy()
  },
  async 'HTTP+SSE that nobody reads'(attack, key) {
    const { signal } = attack
    const sse = await httpSseClient(attack.gateway.url, key)
    sse.response.pause()
    for (let id = 0; id < 4 && !signal.aborted; id++) {
      const params = { name: 'legacy__big', arguments: { bytes: 8_000_000 } }
      const { status } = await sse.post({ jsonrpc: '2.0', id, method: 'tools/call', params })
      if (status !== 202) note(attack, String(status))
    }
    await wait(2_000, undefined, { signal }).catch(() => {})
    sse.close()
  }
}

/** The upstreams of the attacking tenant. */
async function upstreams(t: Test, signal: AbortSignal): Promise<Record<string, unknown>> {
  const templates = [{ uriTemplate: 'long://item/{id}', name: 'long' }]
  const [modern, legacy] = [await startModern(), await startUpstream({ templates })]
  const endless = await startUpstream()
  for (const upstream of [modern, legacy, endless]) t.teardown(() => upstream.close())
  const stuck: ServerResponse[] = []
  endless.override(
    isCall('slow'),
    (response) => {
      const isJson = stuck.push(response) % 2 === 0
      response.writeHead(200, { 'content-type': isJson ? 'application/json' : 'text/event-stream' })
      response.write(isJson ? `{"jsonrpc":"2.0","result":{"text":"${huge}` : `data: {"text":"${huge}`)
    },
    Infinity
  )
  const params = { level: 'error', data: text }
  const broadcast = async (): Promise<void> => {
    while (!signal.aborted) {
      legacy.broadcast({ jsonrpc: '2.0', method: 'notifications/message', params })
      await wait(500, undefined, { signal }).catch(() => {})
    }
  }
  void broadcast()
  const hang = { tools: [{ name: 'hang', inputSchema: { type: 'object' } }], silent: ['tools/call'] }
  const long = { resources: [], prompts: [], templates: [], tools: longList }
  const lists = await Promise.all(Array.from({ length: 6 }, () => startUpstream(long)))
  for (const upstream of lists) t.teardown(() => upstream.close())
  return {
    silent: stdioServer(hang),
    modern: { type: 'http', url: modern.url },
    legacy: { type: 'http', url: legacy.url, isolation: 'session' },
    endless: { type: 'http', url: endless.url },
    ...Object.fromEntries(lists.map(({ url }, at) => [`list${at}`, { type: 'http', url }]))
  }
}

t.test('whatever one tenant sends, its neighbour is served and the memory stays below its limit', async (t) => {
  const stop = new AbortController()
  const { signal } = stop
  t.teardown(() => stop.abort())
  const gateway = await attacked(t, {
    upstreams: await upstreams(t, signal),
    limits: { memoryBytes },
    heapMiB: Math.round((memoryBytes / mebibyte) * 0.8)
  })
  const neighbour = await gateway.neighbour()
  const attack: Attack = { gateway, signal, ended: new Map(), sessions: [] }
  const attackers = Object.values(attacks).flatMap((run) =>
    Array.from({ length: crowd }, async (_, at) => {
      for (let round = at; !signal.aborted; round++) {
        const key = callers[round % callers.length] ?? keys.attacker
        // It is refused, or its connection is closed: it tries again.
        await run(attack, key, round).catch(() => wait(100, undefined, { signal }).catch(() => {}))
      }
    })
  )
  await wait(attackMs, undefined, { signal })
  await until('attackers are refused, over and over', () => (attack.ended.get('too_many') ?? 0) > 20)
  const { calls, failures, medianMs, p99Ms, longestMs } = await neighbour.stop()
  t.same(failures, [], 'the neighbour was served')
  t.ok(calls > 3, `${calls} calls: median ${medianMs} ms, p99 ${p99Ms} ms, longest ${longestMs} ms`)
  const peak = gateway.peakMemory()
  t.ok(peak < memoryBytes, `the resident set grew to ${Math.round(peak / mebibyte)} MiB`)
  t.comment(JSON.stringify({ peakMiB: Math.round(peak / mebibyte), calls, medianMs, p99Ms, longestMs }))
  t.comment(JSON.stringify(Object.fromEntries(attack.ended)))
  stop.abort()
  await Promise.all(attackers)
  // What they held is given back: one of them is served like anybody.
  for (const session of attack.sessions) await session.end()
  await until('an attacker is served', async () => {
    const headers = { ...modernMessage('tools/call', { name: 'calm__echo' }, { token: keys.attacker }) }
    const answer = await send(gateway.url, headers)
    return answer.status === 200 && answer.json.result !== undefined
  })
  const own = await legacyClient(gateway.url, keys.attacker)
  const large = { name: 'calm__echo', arguments: { text } }
  await until('also with a large call', async () => {
    // Refused, it may be closed before its body was sent.
    const answer = await own.request('tools/call', large).catch(() => undefined)
    return answer?.json?.result !== undefined
  })
  t.same((await gateway.stop()).code, 0)
})
