// What the tools of the strict servers do, the same in both eras: only how a server request reaches the client differs.

import { tinyImage, type Json } from '../kit/mcp-server.ts'
import { asking, has, type MatrixServer } from './matrix-server.ts'

/** The way from a request of any kind to a server request. */
export interface Asker {
  /** The capabilities that the client declared. */
  readonly declared: Json
  /** All at once. @returns the client's results in the same order; what it throws ends the request in its own way */
  ask(...questions: Question[]): Promise<Json[]>
  /** Ends the request because the client does not offer this. */
  lacks(capabilities: Json): never
}

export interface Question {
  readonly method: string
  readonly params?: Json
}

export interface ToolCall extends Asker {
  readonly name: string
  readonly args: Json
  readonly progressToken: unknown
  /** On the stream of the call, where there is one. */
  notify(method: string, params: Json): void
  /** Ends the call with a JSON-RPC error. */
  refuse(code: number, message: string, data?: unknown): never
  /** Does the client want log messages? */
  readonly logs: boolean
}

export const text = (value: unknown): Json => ({
  content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }]
})
export const url = 'https://example.com/consent'

export const form = { type: 'object', properties: { name: { type: 'string', title: 'Name' } }, required: ['name'] }
export const sampling = { messages: [{ role: 'user', content: { type: 'text', text: 'a haiku' } }], maxTokens: 10 }

const askRoots: Question = { method: 'roots/list' }
const askModel: Question = { method: 'sampling/createMessage', params: sampling }

async function once(state: MatrixServer, asker: Asker, question: Question): Promise<Json> {
  const [answer = {}] = await asker.ask(question)
  state.answers.push(answer)
  return text(answer)
}

/** Does what the tool does. @returns its result */
export async function callTool(state: MatrixServer, call: ToolCall): Promise<Json> {
  const { revision } = state
  const { name, args, declared } = call
  if (!has(revision, name)) call.refuse(-32_602, `Unknown tool: ${name}`)
  const elicitation = declared['elicitation'] as Json | undefined
  switch (name) {
    case 'echo':
      return { ...text(args), _meta: { 'example.com/kept': true } }
    case 'content':
      return { content: contents(state) }
    case 'structured':
      return { ...text({ answer: 42 }), structuredContent: { answer: 42 } }
    case 'structured_list':
      return { ...text([1, 2, 3]), structuredContent: [1, 2, 3] }
    case 'fail':
      return { ...text('it went wrong'), isError: true }
    case 'rpcerror':
      return call.refuse(-31_000, 'refused by the tool', { kept: true })
    case 'progress':
      for (const step of [1, 2, 3]) {
        if (call.progressToken !== undefined)
          call.notify('notifications/progress', {
            progressToken: call.progressToken,
            progress: step,
            total: 3,
            ...(revision >= '2025-03-26' && { message: `step ${step}` })
          })
      }
      return text('all steps done')
    case 'log':
      if (call.logs) call.notify('notifications/message', { level: 'info', logger: 'matrix', data: args['token'] })
      return text('logged')
    case 'slow':
      if (call.progressToken !== undefined)
        call.notify('notifications/progress', { progressToken: call.progressToken, progress: 1 })
      return await new Promise<never>(() => {})
    case 'meet':
      await state.meet(args['token'])
      return text(args['mine'])
    case 'big':
      return text('x'.repeat(1_000_000))
    case 'sample':
      if (declared['sampling'] === undefined) call.lacks({ sampling: {} })
      return await once(state, call, askModel)
    case 'sample_tools':
      if ((declared['sampling'] as Json | undefined)?.['tools'] === undefined) call.lacks({ sampling: { tools: {} } })
      return await once(state, call, askModel)
    case 'roots':
      if (declared['roots'] === undefined) call.lacks({ roots: {} })
      return await once(state, call, askRoots)
    case 'several': {
      const first = await call.ask(askModel, askRoots)
      const last = await call.ask(askRoots, askModel)
      state.answers.push(...first, ...last)
      return text([...first, ...last])
    }
    case 'elicit':
      // An empty object means form mode (2025-11-25 client/elicitation).
      if (elicitation === undefined || (elicitation['form'] === undefined && elicitation['url'] !== undefined))
        call.lacks({ elicitation: { form: {} } })
      return await once(state, call, {
        method: 'elicitation/create',
        params: { ...(revision >= '2025-11-25' && { mode: 'form' }), message: 'who?', requestedSchema: form }
      })
    case 'elicit_url':
      if (elicitation?.['url'] === undefined) call.lacks({ elicitation: { url: {} } })
      return await once(state, call, {
        method: 'elicitation/create',
        params: {
          mode: 'url',
          message: 'agree',
          url,
          ...(revision === '2025-11-25' && { elicitationId: String(args['token']) })
        }
      })
    default:
      throw new Error(`the tool ${name} does nothing`)
  }
}

/** One block of each kind that the revision knows. */
export function contents({ revision }: MatrixServer): Json[] {
  return [
    { type: 'text', text: 'text', annotations: { audience: ['user'], priority: 0.5 } },
    { type: 'image', data: tinyImage, mimeType: 'image/png' },
    { type: 'resource', resource: { uri: 'test://embedded', mimeType: 'text/plain', text: 'embedded' } },
    ...(revision >= '2025-03-26' ? [{ type: 'audio', data: 'YXVkaW8=', mimeType: 'audio/wav' }] : []),
    ...(revision >= '2025-06-18' ? [{ type: 'resource_link', uri: 'test://linked', name: 'linked' }] : [])
  ]
}

/** A prompt, or the contents of a resource, after a server request. */
export async function asked(
  method: 'prompts/get' | 'resources/read',
  state: MatrixServer,
  asker: Asker
): Promise<Json> {
  const answer = (await once(state, asker, askRoots))['content'] as [Json]
  return method === 'prompts/get'
    ? { messages: [{ role: 'user', content: answer[0] }] }
    : { contents: [{ uri: asking, mimeType: 'text/plain', text: answer[0]['text'] }] }
}

export function prompt({ revision }: MatrixServer, args: unknown): Json {
  return {
    description: 'a greeting',
    messages: [
      { role: 'user', content: { type: 'text', text: `hello ${JSON.stringify(args)}` } },
      ...(revision >= '2025-06-18'
        ? [{ role: 'assistant', content: { type: 'resource_link', uri: 'test://linked', name: 'linked' } }]
        : [])
    ]
  }
}

export const completion = { completion: { values: ['alpha', 'beta'], hasMore: false } }
