// What fills the memory of the gateway: all that callers and upstreams can send, or leave unread, as much as they may.

import type { ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { legacyClient, open, type LegacyClient } from '../kit/client.ts'
import { httpSseClient } from '../kit/http-sse-client.ts'
import { modernMessage, modernRequest } from '../kit/modern-client.ts'
import { startModern } from '../kit/modern-server.ts'
import { dial } from '../kit/raw-http.ts'
import type { Teardown } from '../kit/until.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'
import { stdioServer } from './kit.ts'

const huge = 'x'.repeat(15_000_000)
const text = 'x'.repeat(4_000_000)
// Nothing but brackets: many times their length in memory.
const dense = Array.from({ length: 120_000 }, () => [])

/** A tool list of nearly a million characters, as are those of the other kinds. */
const longList = Array.from({ length: 900 }, (_, at) => ({
  name: `tool-${at}`,
  description: 'x'.repeat(900),
  inputSchema: { type: 'object' }
}))

export interface Attack {
  /** Endpoint of the attacking tenant. */
  readonly url: string
  readonly signal: AbortSignal
  /** Counts how requests of attackers ended. */
  readonly ended: Map<string, number>
  readonly sessions: LegacyClient[]
}

/** Sends a request on a connection of its own, of which it reads so many bytes now and then. */
async function unread({ url, signal }: Attack, headers: object, body: string, trickle = 0): Promise<void> {
  const { port, host } = new URL(url)
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

export function note({ ended }: Pick<Attack, 'ended'>, outcome: string): void {
  ended.set(outcome, (ended.get(outcome) ?? 0) + 1)
}

async function client({ url, sessions }: Attack, key: string, capabilities = {}): Promise<LegacyClient> {
  const made = await legacyClient(url, key, '2025-11-25', capabilities)
  sessions.push(made)
  return made
}

/** What one attacker does once; it begins again as soon as that is over. */
export const memoryAttacks: Readonly<Record<string, (attack: Attack, key: string, round: number) => Promise<void>>> = {
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
      Array.from({ length: 5 }, () => modernRequest(attack.url, 'tools/call', params, options))
    )
    for (const { json } of answers) note(attack, String(json.error?.data?.reason))
  },
  async 'streams that nobody reads, with large messages'(attack, key) {
    const own = await client(attack, key)
    await own.request('tools/call', { name: 'legacy__echo', arguments: {} })
    const headers = { ...own.headers, accept: 'text/event-stream' }
    const { signal } = attack
    const stream = await open(attack.url, { headers, signal })
    stream.pause()
    await wait(2_000, undefined, { signal }).catch(() => {})
    stream.destroy()
  },
  async 'HTTP+SSE that nobody reads'(attack, key) {
    const { signal } = attack
    const sse = await httpSseClient(attack.url, key)
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

/** The upstreams that these attacks need, for their tenant. */
export async function memoryUpstreams(t: Teardown) {
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
  /** To all who listen, until the signal. */
  async function broadcast(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      legacy.broadcast({ jsonrpc: '2.0', method: 'notifications/message', params })
      await wait(500, undefined, { signal }).catch(() => {})
    }
  }
  const hang = { tools: [{ name: 'hang', inputSchema: { type: 'object' } }], silent: ['tools/call'] }
  const long = { resources: [], prompts: [], templates: [], tools: longList }
  const lists = await Promise.all(Array.from({ length: 6 }, () => startUpstream(long)))
  for (const upstream of lists) t.teardown(() => upstream.close())
  const upstreams: Record<string, unknown> = {
    silent: stdioServer(hang),
    modern: { type: 'http', url: modern.url },
    legacy: { type: 'http', url: legacy.url, isolation: 'session' },
    endless: { type: 'http', url: endless.url },
    ...Object.fromEntries(lists.map(({ url }, at) => [`list${at}`, { type: 'http', url }]))
  }
  return { upstreams, broadcast }
}
