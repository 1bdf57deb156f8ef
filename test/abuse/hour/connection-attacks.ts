// Attacks by callers on connections: what is wrong, slow or too much as HTTP, whatever is said in it.

import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { rawBytes } from '../../fuzz/clients.ts'
import { brokenText, type Random } from '../../fuzz/random.ts'
import { jsonHeaders, legacyClient, open, send } from '../../kit/client.ts'
import { openSse } from '../../kit/http-sse-client.ts'
import { modernMessage } from '../../kit/modern-client.ts'
import { dial } from '../../kit/raw-http.ts'
import { type Attack, note } from '../memory-attacks.ts'

export interface HourAttack extends Attack {
  readonly chance: Random
}

/** What one attacker does once, in at most a few seconds; it begins again as soon as that is over. */
export type CallerAttack = (attack: HourAttack, key: string, round: number) => Promise<void>

/** For what is not waited for any longer. */
export const soon = ({ signal }: Attack, ms = 2_500): AbortSignal => AbortSignal.any([signal, AbortSignal.timeout(ms)])

export const pause = (attack: Attack, ms: number): Promise<unknown> =>
  wait(ms, undefined, { signal: attack.signal }).catch(() => {})

/** Until it is closed, or the time is over; then it is closed. */
async function gone(attack: Attack, socket: Socket, ms: number): Promise<void> {
  if (!socket.closed) await Promise.race([new Promise((resolve) => socket.once('close', resolve)), pause(attack, ms)])
  socket.destroy()
}

function headOf({ url }: Attack, headers: object, method = 'POST'): string {
  const { host, pathname } = new URL(url)
  const lines = Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${pathname} HTTP/1.1\r\n${lines.join('')}`
}

const dialled = ({ url }: Attack): Socket => dial(Number(new URL(url).port))

function modernRequestText(attack: HourAttack, key: string, method: string, params = {}): string {
  const { headers, body } = modernMessage(method, params, { token: key })
  return `${headOf(attack, { ...headers, 'content-length': Buffer.byteLength(body) })}\r\n${body}`
}

const many = <T>(count: number, one: (at: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, at) => one(at)))

export const connectionAttacks: Readonly<Record<string, CallerAttack>> = {
  async 'floods of headers'(attack, key) {
    const { chance } = attack
    const socket = dialled(attack)
    const name = chance.pick(['x', 'cookie', 'mcp-param-x', 'accept', 'traceparent', 'authorization'])
    const size = chance.pick([1, 200, 7_000])
    const flood = Array.from(
      { length: chance.pick([50, 1_000, 5_000]) },
      (_, at) => `${name}${at}: ${'y'.repeat(size)}`
    )
    socket.write(headOf(attack, { ...jsonHeaders, authorization: `Bearer ${key}` }) + flood.join('\r\n'))
    await gone(attack, socket.resume(), 500)
  },
  async 'half of a request, and silence'(attack, key) {
    const text = modernRequestText(attack, key, 'tools/list')
    const sockets = Array.from({ length: 40 }, () => {
      const socket = dialled(attack).resume()
      socket.write(text.slice(0, attack.chance.below(text.length)))
      return socket
    })
    await pause(attack, 1_000)
    for (const socket of sockets) if (attack.chance.chance(0.5)) socket.end()
    await Promise.all(sockets.map((socket) => gone(attack, socket, 500)))
  },
  async 'requests whose side is closed at once, with nobody reading'(attack, key) {
    const text = modernRequestText(attack, key, 'tools/call', {
      name: 'calm__echo',
      arguments: { x: 'x'.repeat(9_000) }
    })
    await many(30, async () => {
      const socket = dialled(attack).pause()
      socket.end(text)
      await gone(attack, socket, 800)
    })
  },
  async 'pipelines of thousands'(attack, key) {
    const { chance } = attack
    const socket = dialled(attack).resume()
    const get = `${headOf(attack, {}, 'GET')}\r\n`
    const one = chance.pick([
      get,
      modernRequestText(attack, key, 'tools/list'),
      'GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n'
    ])
    socket.write(one.repeat(chance.pick([50, 900, 3_000])))
    await gone(attack, socket, 1_500)
  },
  async 'bodies in tiny chunks'(attack, key) {
    const { chance } = attack
    const socket = dialled(attack).resume()
    const headers = { ...jsonHeaders, authorization: `Bearer ${key}`, 'transfer-encoding': 'chunked' }
    socket.write(`${headOf(attack, headers)}\r\n`)
    const size = chance.pick([1, 3, 40])
    const chunk = `${size.toString(16)}${chance.chance(0.3) ? ';x=y' : ''}\r\n${' '.repeat(size)}\r\n`
    if (chance.chance(0.5)) socket.write(chunk.repeat(chance.pick([900, 20_000, 100_000])))
    else for (let at = 0; at < 200 && !socket.closed; at++, await pause(attack, 5)) socket.write(chunk)
    await gone(attack, socket, 800)
  },
  async 'bytes that are hardly HTTP'({ chance, url }, key) {
    await many(10, () => rawBytes(chance, { url, key }))
  },
  async 'connections that are opened and closed'(attack) {
    await many(60, async () => {
      const socket = dialled(attack)
      await Promise.race([new Promise((resolve) => socket.once('connect', resolve)), pause(attack, 500)])
      if (attack.chance.chance(0.5)) socket.resetAndDestroy()
      else socket.destroy()
    })
  },
  async 'credentials that are none'(attack) {
    const { chance, url } = attack
    const part = (size: number): string => randomBytes(size).toString('base64url')
    const header = Buffer.from(JSON.stringify({ alg: chance.pick(['RS256', 'none', 'ES256']), kid: part(4) })).toString(
      'base64url'
    )
    const token = chance.pick([
      part(6_000),
      `${header}.${part(chance.pick([20, 5_000]))}.${part(64)}`,
      `gh_${part(20)}`,
      ''
    ])
    await many(20, async () => {
      const headers = { ...jsonHeaders, authorization: `Bearer ${token}` }
      note(attack, String((await send(url, { headers, body: '{}', signal: soon(attack) })).status))
    })
  },
  async 'preflights and paths that are none'(attack) {
    const { chance, url } = attack
    await many(20, async () => {
      const path = chance.pick([
        '/t/acme/mcp',
        '/t/none/mcp',
        `/${'x'.repeat(9_000)}`,
        '/t/acme/%2e%2e/mcp',
        '/.well-known/x'
      ])
      const method = chance.pick(['OPTIONS', 'PUT', 'GET', 'HEAD'])
      const headers = { origin: 'https://attacker.example', 'access-control-request-method': 'POST' }
      await send(new URL(path, url).href, { method, headers, signal: soon(attack) })
    })
  },
  async 'streams that are opened and dropped, again and again'(attack, key) {
    const { chance, url } = attack
    const client = await legacyClient(url, key)
    await client.request('tools/list', {}, { signal: soon(attack) })
    const headers = { ...client.headers, accept: 'text/event-stream' }
    for (let at = 0; at < 40 && !attack.signal.aborted; at++) {
      const response = await open(url, { headers, signal: soon(attack) })
      if (chance.chance(0.3)) await pause(attack, 10)
      response.destroy()
    }
    if (chance.chance(0.5)) await client.end()
  },
  async 'streams of HTTP+SSE that come and go'(attack, key) {
    await many(10, async () => {
      const client = await openSse(attack.url.replace(/mcp$/, 'sse'), key)
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
      if (attack.chance.chance(0.5)) await client.post(attack.chance.chance(0.5) ? message : [[[]]])
      client.close()
    })
  },
  async 'event ids that nobody gave out'(attack, key) {
    const { chance, url } = attack
    const client = await legacyClient(url, key)
    const made = [
      '0',
      '-1',
      '1'.repeat(400),
      `${client.sessionId}-1`,
      `${client.sessionId}_0`,
      '__proto__',
      '\u00ff'.repeat(90)
    ]
    for (let at = 0; at < 40 && !attack.signal.aborted; at++) {
      const id = chance.chance(0.3)
        ? randomBytes(chance.pick([6, 200, 3_000])).toString('base64url')
        : chance.pick(made)
      const headers = { ...client.headers, accept: 'text/event-stream', 'last-event-id': id }
      const response = await open(url, { headers, signal: soon(attack) })
      note(attack, String(response.statusCode))
      response.destroy()
    }
  },
  async 'sessions that are ended as soon as they are there'(attack, key) {
    await many(12, async () => {
      const client = await legacyClient(attack.url, key)
      const end = attack.chance.below(4) + 1
      await many(end, () => client.end())
    })
  },
  async 'JSON that is broken'(attack, key) {
    const { chance, url } = attack
    const client = await legacyClient(url, key)
    await many(12, async (id) => {
      const call = { jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'calm__echo', arguments: { id } } }
      const body = brokenText(chance, JSON.stringify(call), chance.pick([1_000, 1_000_000]))
      note(attack, String((await send(url, { headers: client.headers, body, signal: soon(attack) })).status))
    })
    await client.end()
  }
}
