// The strict server of 2026-07-28: the scripted one of the kit, with everything that reaches it checked, and the tools
// of the matrix.

import type { Id, Json } from '../kit/mcp-server.ts'
import { refuse, type ModernPeer } from '../kit/modern-peer.ts'
import { createModernServer, type ModernScript, type ModernServer } from '../kit/modern-script.ts'
import { startModern } from '../kit/modern-server.ts'
import { tasksExtension } from '../kit/modern-tasks.ts'
import { overStdio, type RunningServer } from './transports.ts'
import { asked, callTool, prompt, text, type Asker, type Question } from './tools.ts'
import { asking, pageSize, type MatrixServer } from './matrix-server.ts'

const key = (name: string): string => `io.modelcontextprotocol/${name}`
const lastingMs = 30

/** Ends the call: it was answered already. */
class Answered extends Error {}
/** Ends the request with server requests. */
class Asking extends Error {
  readonly questions: readonly Question[]
  readonly round: number
  constructor(questions: readonly Question[], round: number) {
    super('asking')
    this.questions = questions
    this.round = round
  }
}

function scriptOf(state: MatrixServer): ModernScript {
  return {
    name: 'strict',
    instructions: 'Be strict.',
    pageSize,
    tools: state.list('tools'),
    prompts: state.list('prompts'),
    resources: state.list('resources'),
    templates: state.list('templates')
  }
}

/** Puts the checks in front of the server. */
function checked(server: ModernServer, state: MatrixServer): void {
  const running = new Map<Id, unknown>()
  const { receive, cancel } = server
  state.listeners.add((event) => {
    if ('updated' in event) return server.updated(event.updated)
    server.script[event.changed] = [...state.list(event.changed)]
    server.listChanged(event.changed)
  })
  server.cancel = (id) => {
    if (running.has(id)) state.cancelled.add(running.get(id))
    running.delete(id)
    cancel(id)
  }
  server.receive = (message, peer, headers) => {
    const { id, method } = message as { id?: Id; method: string }
    const params = (message['params'] ?? {}) as Json
    // A legacy client finds out that way (basic/versioning), and is told so.
    if (method !== 'initialize') state.report(...state.validator.fromClient(message))
    if (id !== undefined && method === 'resources/read' && String(params['uri']).startsWith('test://none')) {
      return refuse(id, peer, -32_602, 'Resource not found', { uri: params['uri'] })
    }
    const own =
      method === 'tools/call' || method === 'prompts/get' || (method === 'resources/read' && params['uri'] === asking)
    if (id === undefined || !own) return receive(message, peer, headers)
    const answer = (result: Json): void => {
      const cache =
        method === 'resources/read' && result['resultType'] === undefined ? { ttlMs: 0, cacheScope: 'private' } : {}
      peer.reply({
        jsonrpc: '2.0',
        id,
        result: {
          resultType: 'complete',
          ...cache,
          ...result,
          _meta: { ...(result['_meta'] as Json | undefined), [key('serverInfo')]: { name: 'strict', version: '1' } }
        }
      })
    }
    running.set(id, ((params['arguments'] ?? {}) as Json)['token'])
    respond(server, state, id, method, params, peer)
      .then(answer, (error: unknown) => {
        if (error instanceof Asking) {
          const inputRequests = Object.fromEntries(
            error.questions.map((question, n) => [`question ${error.round}.${n}`, question])
          )
          answer({ resultType: 'input_required', inputRequests, requestState: states.put(params, error.round) })
        } else if (!(error instanceof Answered)) state.report(`the server failed: ${String(error)}`)
      })
      .finally(() => running.delete(id))
  }
}

/** What was answered in earlier rounds goes around in the state, as the specification wants it. */
const states = {
  put: ({ inputResponses, requestState }: Json, round: number): string =>
    JSON.stringify({
      round,
      answers: { ...states.get(requestState).answers, ...(inputResponses as Json | undefined) }
    }),
  get: (state: unknown): { round: number; answers: Json } =>
    state === undefined ? { round: 0, answers: {} } : (JSON.parse(String(state)) as { round: number; answers: Json })
}

async function respond(
  server: ModernServer,
  state: MatrixServer,
  id: Id,
  method: string,
  params: Json,
  peer: ModernPeer
): Promise<Json> {
  const meta = params['_meta'] as Json
  const declared = meta[key('clientCapabilities')] as Json
  const { name } = params
  const { round, answers } = states.get(params['requestState'])
  const known: Json = { ...answers, ...(params['inputResponses'] as Json | undefined) }
  let asks = 0
  const asker: Asker = {
    declared,
    async ask(...questions) {
      const at = ++asks
      const got = questions.map((_question, n) => known[`question ${at}.${n}`] as Json | undefined)
      if (got.includes(undefined)) {
        if (at <= round) state.report(`question ${at} of ${String(name ?? params['uri'])} was not answered`)
        throw new Asking(questions, at)
      }
      for (const [n, { method: question }] of questions.entries())
        state.report(
          ...state.validator
            .result(question, { resultType: 'complete', ...got[n] })
            .filter((fault) => !fault.includes('resultType'))
        )
      return got as Json[]
    },
    lacks(requiredCapabilities) {
      refuse(id, peer, -32_021, 'a capability is missing', { requiredCapabilities })
      throw new Answered()
    }
  }
  if (method === 'resources/read' || (method === 'prompts/get' && name === 'asking'))
    return await asked(method, state, asker)
  if (method === 'prompts/get' && name === 'greet') return prompt(state, params['arguments'])
  const refuseWith = (code: number, message: string, data?: unknown): never => {
    refuse(id, peer, code, message, data)
    throw new Answered()
  }
  if (method === 'prompts/get') return refuseWith(-32_602, 'no such prompt')
  if (name === 'task') {
    if ((declared['extensions'] as Json | undefined)?.[tasksExtension] === undefined) return text('made')
    state.tasks++
    setTimeout(() => server.tasks.finish({ ...text('made'), isError: false }), lastingMs)
    return server.tasks.create()
  }
  return await callTool(state, {
    ...asker,
    name: String(name),
    args: (params['arguments'] ?? {}) as Json,
    progressToken: meta['progressToken'],
    logs: meta[key('logLevel')] !== undefined,
    notify: (method, members) => peer.reply({ jsonrpc: '2.0', method, params: members }),
    refuse: refuseWith
  })
}

/** @returns with it, what finds requests that were refused before they reached the server */
export async function modernOverHttp(state: MatrixServer): Promise<RunningServer> {
  const upstream = await startModern(scriptOf(state))
  checked(upstream.server, state)
  const { server, seen, url } = upstream
  const inner = server.receive
  const reached = new Set<unknown>()
  server.receive = (message, peer, headers) => {
    reached.add(message)
    inner(message, peer, headers)
  }
  return {
    config: { type: 'http', url },
    async close() {
      // Header faults are refused before anybody looks at the message.
      for (const { message } of seen) {
        if (message !== undefined && !reached.has(message))
          state.report(`refused for its headers: ${JSON.stringify(message).slice(0, 300)}`)
      }
      await upstream.close()
    }
  }
}

export function modernOverStdio(state: MatrixServer): Promise<RunningServer> {
  return overStdio((write, socket) => {
    const server = createModernServer(scriptOf(state))
    checked(server, state)
    return {
      receive: (message) => server.receive(message, { reply: write, drop: () => socket.destroy() }),
      end: () => {
        server.endListens('gracefully')
      }
    }
  })
}
