// A strict server of a legacy revision, on one connection: whatever the client should not have sent is reported.

import { randomUUID } from 'node:crypto'
import { revisionValidator } from './revision-validator.ts'
import type { Id, Json } from '../kit/mcp-server.ts'
import type { LegacyRevision } from '../../src/protocol/messages.ts'
import { asked, type Asker, callTool, completion, prompt, text, url } from './tools.ts'
import { asking, type MatrixServer, pageSize } from './matrix-server.ts'

export interface LegacySession {
  /** @param reply writes on the stream of the message, where there is one */
  receive(message: Json, reply: (message: Json) => void): void
  end(): void
}

/** Ends a request with a JSON-RPC error. */
class Refusal extends Error {
  readonly error: Json
  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.error = { code, message, ...(data !== undefined && { data }) }
  }
}

interface Task {
  readonly task: Json
  readonly result: Promise<Json>
}
const lastingMs = 30

/** @param push writes on the channel that belongs to no request */
export function createLegacySession(state: MatrixServer, push: (message: Json) => void): LegacySession {
  const { revision, validator, report } = state
  const open = new Map<Id, { method: string; answered: (result: Json) => void; failed: (error: Error) => void }>()
  const running = new Map<unknown, unknown>()
  const subscribed = new Set<unknown>()
  const tasks = new Map<unknown, Task>()
  let phase: 'new' | 'greeted' | 'ready' = 'new'
  let declared: Json = {}
  let level: unknown
  let lastId = 0

  const notify = (event: Parameters<Parameters<MatrixServer['listeners']['add']>[0]>[0]): void => {
    if (phase !== 'ready') return
    if ('changed' in event) push({ jsonrpc: '2.0', method: `notifications/${event.changed}/list_changed` })
    else if (subscribed.has(event.updated))
      push({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: event.updated } })
  }
  state.listeners.add(notify)

  function page(member: string, items: Json[], { cursor }: Json): Json {
    const at = cursor === undefined ? 0 : Number(cursor)
    if (!Number.isSafeInteger(at)) throw new Refusal(-32_602, 'no cursor of mine')
    return {
      [member]: items.slice(at, at + pageSize),
      ...(at + pageSize < items.length && { nextCursor: String(at + pageSize) })
    }
  }

  async function handle(id: Id, method: string, params: Json, reply: (message: Json) => void): Promise<Json> {
    switch (method) {
      case 'initialize':
        phase = 'greeted'
        declared = params['capabilities'] as Json
        return {
          protocolVersion: revision,
          serverInfo: { name: 'strict', version: '1', ...(revision >= '2025-06-18' && { title: 'Strict' }) },
          instructions: 'Be strict.',
          capabilities: {
            tools: { listChanged: true },
            prompts: { listChanged: true },
            resources: { listChanged: true, subscribe: true },
            logging: {},
            ...(revision >= '2025-03-26' && { completions: {} }),
            ...(revision >= '2025-11-25' && { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } })
          }
        }
      case 'ping':
        return {}
      case 'logging/setLevel':
        level = params['level']
        return {}
      case 'tools/list':
        return page('tools', state.list('tools'), params)
      case 'prompts/list':
        return page('prompts', state.list('prompts'), params)
      case 'resources/list':
        return page('resources', state.list('resources'), params)
      case 'resources/templates/list':
        return page('resourceTemplates', state.list('templates'), params)
      case 'prompts/get':
        if (params['name'] === 'asking') return await asked(method, state, askerOf(reply))
        if (params['name'] !== 'greet') throw new Refusal(-32_602, 'no such prompt')
        return prompt(state, params['arguments'])
      case 'resources/read':
        if (params['uri'] === asking) return await asked(method, state, askerOf(reply))
        if (String(params['uri']).startsWith('test://none'))
          throw new Refusal(-32_002, 'Resource not found', { uri: params['uri'] })
        return {
          contents: [{ uri: params['uri'], mimeType: 'text/plain', text: `contents of ${String(params['uri'])}` }]
        }
      case 'resources/subscribe':
        subscribed.add(params['uri'])
        return {}
      case 'resources/unsubscribe':
        subscribed.delete(params['uri'])
        return {}
      case 'completion/complete':
        return completion
      case 'tools/call':
        return await call(id, params, reply)
      case 'tasks/get':
        return taskOf(params).task
      case 'tasks/cancel':
        return Object.assign(taskOf(params).task, { status: 'cancelled' })
      case 'tasks/list':
        return { tasks: [...tasks.values()].map(({ task }) => task) }
      case 'tasks/result':
        return {
          ...(await taskOf(params).result),
          _meta: { 'io.modelcontextprotocol/related-task': { taskId: params['taskId'] } }
        }
      default:
        throw new Refusal(-32_601, `no such method: ${method}`)
    }
  }

  function taskOf({ taskId }: Json): Task {
    const found = tasks.get(taskId)
    if (found === undefined) throw new Refusal(-32_602, 'no such task')
    return found
  }

  async function call(id: Id, params: Json, reply: (message: Json) => void): Promise<Json> {
    const args = (params['arguments'] ?? {}) as Json
    const name = String(params['name'])
    if (name === 'task' && revision === '2025-11-25') {
      if (params['task'] === undefined) throw new Refusal(-32_601, 'this tool runs as a task only')
      return { task: createTask() }
    }
    if (name === 'url_required' && revision === '2025-11-25') {
      const elicitationId = String(args['token'])
      if ((declared['elicitation'] as Json | undefined)?.['url'] === undefined)
        throw new Lacking('the client does not offer elicitation in URL mode')
      if (state.consents.has(elicitationId)) return text('consent is given')
      state.consents.add(elicitationId)
      throw new Refusal(-32_042, 'visit the page first', {
        elicitations: [{ mode: 'url', message: 'agree', url, elicitationId }]
      })
    }
    running.set(id, args['token'])
    return await callTool(state, {
      name,
      args,
      progressToken: (params['_meta'] as Json | undefined)?.['progressToken'],
      logs: level === 'debug' || level === 'info',
      notify: (method, members) => reply({ jsonrpc: '2.0', method, params: members }),
      refuse(code, message, data) {
        throw new Refusal(code, message, data)
      },
      ...askerOf(reply)
    })
  }

  const askerOf = (reply: (message: Json) => void): Asker => ({
    declared,
    ask: (...questions) =>
      Promise.all(
        questions.map(
          ({ method, params }) =>
            new Promise<Json>((answered, failed) => {
              const id = `ask-${++lastId}`
              open.set(id, { method, answered, failed })
              reply({ jsonrpc: '2.0', id, method, ...(params !== undefined && { params }) })
            })
        )
      ),
    lacks(capabilities) {
      throw new Lacking(`the client does not offer ${Object.keys(capabilities).join()}`)
    }
  })

  function createTask(): Json {
    const taskId = randomUUID()
    state.tasks++
    const now = (): string => new Date().toISOString()
    const task: Json = {
      taskId,
      status: 'working',
      statusMessage: 'at it',
      createdAt: now(),
      lastUpdatedAt: now(),
      ttl: 60_000,
      pollInterval: 10
    }
    const result = new Promise<Json>((resolve) => {
      setTimeout(() => {
        Object.assign(task, { status: 'completed', lastUpdatedAt: now() })
        resolve(text('made'))
      }, lastingMs)
    })
    tasks.set(taskId, { task, result })
    return { ...task }
  }

  function answer(message: Json): void {
    const question = open.get(message['id'] as Id)
    open.delete(message['id'] as Id)
    if (question === undefined) return report(`an answer to nothing: ${JSON.stringify(message)}`)
    if (message['error'] !== undefined)
      return question.failed(new Lacking(`the client refused: ${JSON.stringify(message['error'])}`))
    report(...validator.result(question.method, message['result']))
    question.answered(message['result'] as Json)
  }

  return {
    receive(message, reply) {
      const { id, method } = message as { id?: Id; method?: string }
      if (method === undefined) return answer(message)
      const params = (message['params'] ?? {}) as Json
      if (method === 'server/discover')
        return reply({ jsonrpc: '2.0', id, error: { code: -32_601, message: 'no such method' } })
      // The client proposes in its own revision; what is agreed on holds from then on.
      report(
        ...(method === 'initialize'
          ? revisionValidator(params['protocolVersion'] as LegacyRevision)
          : validator
        ).fromClient(message)
      )
      if (id === undefined) {
        if (method === 'notifications/initialized') phase = 'ready'
        if (method === 'notifications/cancelled') {
          if (!running.has(params['requestId'])) return
          state.cancelled.add(running.get(params['requestId']))
          running.delete(params['requestId'])
        }
        return
      }
      if (phase !== 'ready' && method !== 'initialize' && method !== 'ping')
        report(`${method} before notifications/initialized`)
      handle(id, method, params, reply)
        .then(
          (result) => reply({ jsonrpc: '2.0', id, result }),
          (error: unknown) => {
            if (error instanceof Refusal) reply({ jsonrpc: '2.0', id, error: error.error })
            else if (error instanceof Lacking)
              reply({ jsonrpc: '2.0', id, result: { ...text(error.message), isError: true } })
            else {
              report(`the server failed: ${String(error)}`)
              reply({ jsonrpc: '2.0', id, error: { code: -32_603, message: 'failed' } })
            }
          }
        )
        .finally(() => running.delete(id))
    },
    end: () => {
      state.listeners.delete(notify)
    }
  }
}

/** Becomes a result with isError: the model is to read why. */
class Lacking extends Error {}
