// A server whose tools say back what they were told, in their own time, so that answers and notifications can be
// matched with those who asked: over HTTP inside the test, or over stdio as `node canary-server.ts`.

import { type Teardown } from './until.ts'
import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import type { ServerResponse } from 'node:http'
import { createMcpServer, type Json, type Peer } from './mcp-server.ts'
import { isMethod, startUpstream, type HttpUpstream, type Seen } from './upstream.ts'

export interface CanaryArguments {
  readonly canary: string
  /** How long the call takes. */
  readonly delayMs?: number
  /** Progress and log messages on the way, each with the canary. */
  readonly steps?: number
}

export interface CanaryServer extends HttpUpstream {
  /** How often a call with this canary was executed. */
  readonly executed: ReadonlyMap<string, number>
  /** Canaries by the upstream session that they came in. */
  readonly bySession: ReadonlyMap<string, ReadonlySet<string>>
  /** Canaries of the calls of `hold` that are open. */
  held(): string[]
  /** Lets the calls of `hold` that are open finish. */
  release(): void
  /** Canaries of the calls that were cancelled here, in order. */
  readonly cancelled: readonly string[]
}

const tools = ['mirror', 'hold'].map((name) => ({ name, inputSchema: { type: 'object' } }))
const resultOf = (id: unknown, canary: string): Json => ({
  jsonrpc: '2.0',
  id,
  result: { content: [{ type: 'text', text: canary }] }
})
const paramsOf = (message: Json | undefined): Json => (message?.['params'] ?? {}) as Json
const argumentsOf = (message: Json | undefined): CanaryArguments => paramsOf(message)['arguments'] as CanaryArguments

/** `mirror`: progress and log messages with the canary on the way, then the canary. */
async function mirrored(message: Json, send: (message: Json) => void): Promise<void> {
  const { canary, delayMs = 0, steps = 0 } = argumentsOf(message)
  const { progressToken } = (paramsOf(message)['_meta'] ?? {}) as Json
  for (let step = 1; step <= steps; step++) {
    send({
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken, progress: step, message: canary }
    })
    send({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: canary } })
    await wait(delayMs / (steps + 1), undefined, { ref: false })
  }
  await wait(delayMs / (steps + 1), undefined, { ref: false })
  send(resultOf(message['id'], canary))
}

/** Over Streamable HTTP, with sessions and a GET stream. */
export async function canaryServer(t: Teardown): Promise<CanaryServer> {
  const upstream = await startUpstream({ tools })
  t.teardown(() => upstream.close())
  const executed = new Map<string, number>()
  const bySession = new Map<string, Set<string>>()
  const cancelled: string[] = []
  const held = new Map<string, { canary: string; finish: () => void }>()
  const sessionOf = ({ headers }: Seen): string => String(headers['mcp-session-id'])

  function call(response: ServerResponse, seen: Seen): void {
    const { message } = seen
    if (message === undefined) return
    const { canary } = argumentsOf(message)
    executed.set(canary, (executed.get(canary) ?? 0) + 1)
    const session = sessionOf(seen)
    bySession.set(session, (bySession.get(session) ?? new Set()).add(canary))
    const send = (outgoing: Json): void => {
      const final = outgoing['method'] === undefined
      if (final && !response.headersSent) {
        response.setHeader('Content-Type', 'application/json').end(JSON.stringify(outgoing))
        return
      }
      if (!response.headersSent) response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      response.write(`data: ${JSON.stringify(outgoing)}\n\n`)
      if (final) response.end()
    }
    if (paramsOf(message)['name'] === 'hold')
      held.set(`${session} ${String(message['id'])}`, { canary, finish: () => send(resultOf(message['id'], canary)) })
    else void mirrored(message, send)
  }

  upstream.override(isMethod('tools/call'), call, Infinity)
  upstream.override(
    isMethod('notifications/cancelled'),
    (response, seen) => {
      response.writeHead(202).end()
      const key = `${sessionOf(seen)} ${String(paramsOf(seen.message)['requestId'])}`
      const entry = held.get(key)
      cancelled.push(entry?.canary ?? `unknown: ${key}`)
      held.delete(key)
    },
    Infinity
  )

  return {
    ...upstream,
    executed,
    bySession,
    cancelled,
    held: () => [...held.values()].map(({ canary }) => canary),
    release() {
      const all = [...held.values()]
      held.clear()
      for (const { finish } of all) finish()
    }
  }
}

/**
 * What an upstream entry of a configuration needs to run it over stdio. Canaries of executed calls are written to the
 * file in MIRROR_JOURNAL.
 */
export const stdioCanaryServer = { command: process.execPath, args: [new URL(import.meta.url).pathname] }

if (import.meta.main) {
  const server = createMcpServer({ tools })
  const write = (message: Json): void => {
    process.stdout.write(`${JSON.stringify(message)}\n`)
  }
  const peer: Peer = { reply: write, push: write, exit: (code) => process.exit(code), raw: () => {} }
  createInterface({ input: process.stdin })
    .on('line', (line) => {
      const message = JSON.parse(line) as Json
      if (message['method'] !== 'tools/call') server.receive(message, peer)
      else {
        if (process.env['MIRROR_JOURNAL'] !== undefined)
          appendFileSync(process.env['MIRROR_JOURNAL'], `${argumentsOf(message).canary}\n`)
        // A call of `hold` over stdio is never answered.
        if (paramsOf(message)['name'] === 'mirror') void mirrored(message, write)
      }
    })
    .on('close', () => process.exit(0))
}
