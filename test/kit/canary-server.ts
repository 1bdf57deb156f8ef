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
  /** What the questions of `ask` were answered with, by the canaries of their calls. */
  readonly answered: ReadonlyMap<string, readonly string[]>
}

const tools = ['mirror', 'hold', 'ask', 'tell'].map((name) => ({ name, inputSchema: { type: 'object' } }))
const resultOf = (id: unknown, canary: string, ...more: string[]): Json => ({
  jsonrpc: '2.0',
  id,
  result: { content: [canary, ...more].map((text) => ({ type: 'text', text })) }
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

/** In place of the word, where the client gave none, or the gateway says that it will not. */
export const noWord = '-'

/**
 * `ask`: asks the client with the canary for a word, and answers with the canary and that word.
 * @param onAnswer hears every response that comes to a question
 */
function questions(onAnswer: (canary: string, word: string) => void) {
  const open = new Map<string, (word: string) => void>()
  return {
    ask(message: Json, send: (message: Json) => void): void {
      const { canary } = argumentsOf(message)
      const requestedSchema = { type: 'object', properties: { word: { type: 'string' } } }
      open.set(canary, (word) => send(resultOf(message['id'], canary, word)))
      const params = { message: canary, requestedSchema }
      send({ jsonrpc: '2.0', id: `ask ${canary}`, method: 'elicitation/create', params })
    },
    /** @returns whether the message is a response to a question */
    settle(message: Json | undefined): boolean {
      const canary = /^ask (.+)$/.exec(String(message?.['id']))?.[1]
      if (message === undefined || message['method'] !== undefined || canary === undefined) return false
      const { content } = (message['result'] ?? {}) as { readonly content?: Json }
      const word = String(content?.['word'] ?? noWord)
      onAnswer(canary, word)
      open.get(canary)?.(word)
      open.delete(canary)
      return true
    }
  }
}

/** What `tell` says to those who have subscribed to it. */
const toldUri = 'test://one'

/** Over Streamable HTTP, with sessions and a GET stream. It tells nothing. */
export async function canaryServer(t: Teardown): Promise<CanaryServer> {
  const upstream = await startUpstream({ tools })
  t.teardown(() => upstream.close())
  const executed = new Map<string, number>()
  const bySession = new Map<string, Set<string>>()
  const cancelled: string[] = []
  const answered = new Map<string, string[]>()
  const { ask, settle } = questions((canary, word) => {
    answered.set(canary, [...(answered.get(canary) ?? []), word])
  })
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
    else if (paramsOf(message)['name'] === 'ask') ask(message, send)
    else void mirrored(message, send)
  }

  upstream.override(isMethod('tools/call'), call, Infinity)
  upstream.override(
    ({ message }) => settle(message),
    (response) => void response.writeHead(202).end(),
    Infinity
  )
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
    answered,
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
 * file in MIRROR_JOURNAL, and `answer`, canary and word of each answered question. Its tool `tell` says that `test://one`
 * was updated, with the canary, to who has subscribed to it, and then answers with the canary and whether it did so.
 */
export const stdioCanaryServer = { command: process.execPath, args: [new URL(import.meta.url).pathname] }

if (import.meta.main) {
  const server = createMcpServer({ tools })
  const write = (message: Json): void => {
    process.stdout.write(`${JSON.stringify(message)}\n`)
  }
  const note = (line: string): void => {
    if (process.env['MIRROR_JOURNAL'] !== undefined) appendFileSync(process.env['MIRROR_JOURNAL'], `${line}\n`)
  }
  const { ask, settle } = questions((canary, word) => note(`answer ${canary} ${word}`))
  const peer: Peer = { reply: write, push: write, exit: (code) => process.exit(code), raw: () => {} }
  let isSubscribed = false
  const tell = (message: Json): void => {
    const { canary } = argumentsOf(message)
    const params = { uri: toldUri, _meta: { canary } }
    if (isSubscribed) write({ jsonrpc: '2.0', method: 'notifications/resources/updated', params })
    write(resultOf(message['id'], canary, isSubscribed ? 'told' : 'nobody listens'))
  }
  createInterface({ input: process.stdin })
    .on('line', (line) => {
      const message = JSON.parse(line) as Json
      if (settle(message)) return
      if (message['method'] === 'resources/subscribe') isSubscribed = true
      if (message['method'] !== 'tools/call') return server.receive(message, peer)
      note(argumentsOf(message).canary)
      // A call of `hold` over stdio is never answered.
      const { name } = paramsOf(message)
      if (name === 'mirror') void mirrored(message, write)
      if (name === 'ask') ask(message, write)
      if (name === 'tell') tell(message)
    })
    .on('close', () => process.exit(0))
}
