// The tools of the scripted modern server. Those that a test steers the server with work over stdio as well, where the
// test is another process.

import type { Id, Json } from './mcp-server.ts'
import { declared, refuse, type ModernPeer } from './modern-peer.ts'
import type { ModernServer } from './modern-script.ts'
import { tasksExtension } from './modern-tasks.ts'

const tool = (name: string, properties: Json = {}): Json => ({
  name,
  description: `the ${name} tool`,
  inputSchema: { type: 'object', properties },
  'x-unknown': { kept: true }
})
const header = (type: string, name: string): Json => ({ type, 'x-mcp-header': name })

export const modernTools: readonly Json[] = [
  ...[
    'echo',
    'progress',
    'log',
    'fail',
    'rpcerror',
    'result',
    'slow',
    'release',
    'ask',
    'sample',
    'roots',
    'needs',
    'task',
    'confirm',
    'finish',
    'rounds',
    'grow',
    'touch',
    'unlisten',
    'received',
    'cancelled',
    'pid',
    'crash',
    'big'
  ].map((name) => tool(name)),
  tool('routed', {
    region: header('string', 'Region'),
    count: header('integer', 'Count'),
    dry: header('boolean', 'Dry'),
    deep: { type: 'object', properties: { zone: header('string', 'Zone') } },
    plain: { type: 'string' }
  }),
  // Annotations that the specification forbids: on a number, and on what an array holds.
  tool('misrouted', { amount: header('number', 'Amount') }),
  tool('misplaced', { list: { type: 'array', items: header('string', 'Item') } })
]

const serverRequests = {
  ask: {
    capability: 'elicitation',
    request: {
      method: 'elicitation/create',
      params: {
        mode: 'form',
        message: 'who?',
        requestedSchema: { type: 'object', properties: { name: { type: 'string' } } }
      }
    }
  },
  sample: {
    capability: 'sampling',
    request: {
      method: 'sampling/createMessage',
      params: { messages: [{ role: 'user', content: { type: 'text', text: 'hello' } }], maxTokens: 10 }
    }
  },
  roots: { capability: 'roots', request: { method: 'roots/list' } }
} as const

const text = (value: unknown): Json => ({
  content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }]
})

/** Two rounds at most: what a server request's `requestState` says of the round. */
const stateOf = (round: number): string => `state of round ${round}`

/** @returns the result; undefined where the call is answered otherwise or later */
export function callTool(server: ModernServer, id: Id, params: Json, peer: ModernPeer): Json | undefined {
  const args = (params['arguments'] ?? {}) as Json
  const meta = (params['_meta'] ?? {}) as Json
  const token = meta['progressToken']
  const progress = (progress: number, total: number): void => {
    if (token !== undefined)
      peer.reply({
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken: token, progress, total, message: `step ${progress}` }
      })
  }
  const name = params['name']
  switch (name) {
    case 'echo':
    case 'routed':
    case 'misrouted':
    case 'misplaced':
      return { ...text(args), structuredContent: { arguments: args, meta }, _meta: { 'test/kept': true } }
    case 'progress': {
      const steps = Number(args['steps'] ?? 3)
      for (let step = 1; step <= steps; step++) progress(step, steps)
      return text('all steps done')
    }
    case 'log':
      // With `always` also where nobody asked for it, which is against the specification.
      for (let n = 1; n <= Number(args['count'] ?? 1); n++) {
        if (args['always'] !== true && meta['io.modelcontextprotocol/logLevel'] === undefined) break
        peer.reply({
          jsonrpc: '2.0',
          method: 'notifications/message',
          params: { level: args['level'] ?? 'info', logger: 'modern', data: `line ${n}` }
        })
      }
      return text('logged')
    case 'fail':
      return { ...text('it went wrong'), isError: true }
    case 'rpcerror':
      return refuse(
        id,
        peer,
        Number(args['code'] ?? -32050),
        String(args['message'] ?? 'refused by the tool'),
        args['data'] ?? { kept: true }
      )
    case 'result':
      // Exactly what the arguments say, without resultType where they have none.
      peer.reply({ jsonrpc: '2.0', id, result: args['result'] })
      return undefined
    case 'rounds':
      return rounds(params, args, progress)
    case 'slow':
      server.waiting.set(id, () =>
        peer.reply({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...text('slow is done') } })
      )
      progress(0, 1)
      return undefined
    case 'release':
      server.release()
      return text('released')
    case 'ask':
    case 'sample':
    case 'roots':
      return ask(name, id, params, args, peer)
    case 'needs':
      if (declared(params)['sampling'] !== undefined) return text('sampling is declared')
      return refuse(id, peer, -32021, 'this tool needs sampling', { requiredCapabilities: { sampling: {} } })
    case 'task':
    case 'confirm':
      if (declared(params)['extensions']?.[tasksExtension] === undefined) {
        return name === 'task'
          ? text('done at once')
          : refuse(id, peer, -32021, 'this tool needs tasks', {
              requiredCapabilities: { extensions: { [tasksExtension]: {} } }
            })
      }
      return server.tasks.create(name === 'task' ? undefined : { who: serverRequests.ask.request })
    case 'finish':
      server.tasks.finish({ ...text('made'), isError: false })
      return text('finished')
    case 'grow':
      server.script.tools.push(tool(String(args['name'] ?? 'grown')))
      server.listChanged('tools')
      return text('grown')
    case 'touch':
      server.updated(String(args['uri'] ?? 'test://one'))
      return text('touched')
    case 'unlisten':
      server.endListens('gracefully')
      return text('ended')
    case 'received':
      return text(server.received.map(({ message }) => message))
    case 'cancelled':
      return text(server.cancelled)
    case 'pid':
      return text(String(process.pid))
    case 'crash':
      peer.drop()
      return undefined
    case 'say':
      return text(String(args['text'] ?? ''))
    case 'big':
      return text('x'.repeat(Number(args['bytes'] ?? 1_000_000)))
    default:
      return refuse(id, peer, -32602, `Unknown tool: ${String(name)}`)
  }
}

/**
 * Sends `results` one after the other, each with a state that leads to the next one, then what it was told in the last
 * round. Each round counts its progress anew.
 */
function rounds(params: Json, args: Json, progress: (progress: number, total: number) => void): Json {
  const { inputResponses, requestState } = params
  const round = requestState === undefined ? 0 : Number(/^rounds: (\d+)$/.exec(String(requestState))?.[1])
  const results = args['results'] as Json[]
  progress(1, 2)
  progress(2, 2)
  const result = results[round]
  return result === undefined
    ? text({ inputResponses: inputResponses ?? null, requestState: requestState ?? null })
    : { resultType: 'input_required', requestState: `rounds: ${round + 1}`, ...result }
}

/**
 * Asks for `rounds` (1) rounds, then answers with what it was told in the last; `state: false` asks without
 * requestState, `only: 'state'` gives a requestState and asks nothing, `count` asks that many things at once.
 */
function ask(kind: keyof typeof serverRequests, id: Id, params: Json, args: Json, peer: ModernPeer): Json | undefined {
  const { capability, request } = serverRequests[kind]
  if (declared(params)[capability] === undefined)
    return refuse(id, peer, -32021, `this tool needs ${capability}`, { requiredCapabilities: { [capability]: {} } })
  const state = params['requestState']
  const round = state === undefined ? 0 : [1, 2, 3].find((round) => stateOf(round) === state)
  if (round === undefined) return refuse(id, peer, -32602, 'requestState is not one of mine')
  const answered =
    args['state'] === false ? params['inputResponses'] !== undefined : round >= Number(args['rounds'] ?? 1)
  if (answered) return text({ inputResponses: params['inputResponses'] ?? null, requestState: state ?? null })
  const keys = Array.from({ length: Number(args['count'] ?? 1) }, (_, n) =>
    n === 0 ? 'user_name' : `user_name_${n + 1}`
  )
  return {
    resultType: 'input_required',
    ...(args['only'] === 'state' ? {} : { inputRequests: Object.fromEntries(keys.map((key) => [key, request])) }),
    ...(args['state'] === false ? {} : { requestState: stateOf(round + 1) })
  }
}
