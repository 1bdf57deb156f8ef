// A scriptable MCP server of 2026-07-28, whatever carries it: own small JSON-RPC, not an SDK, so that it can misbehave.
// What its tools do is in modern-tools.ts; over HTTP and stdio it is in modern-server.ts. It records what reached it.

import { createModernTasks, tasksExtension, type ModernTasks } from './modern-tasks.ts'
import type { Id, Json } from './mcp-server.ts'
import { declared, refuse, type ModernPeer } from './modern-peer.ts'
import { callTool, modernTools } from './modern-tools.ts'

const modernVersion = '2026-07-28'
const key = (name: string): string => `io.modelcontextprotocol/${name}`

export interface ModernScript {
  readonly name?: string
  readonly instructions?: string
  /** What it speaks; other versions are answered with -32022. Default 2026-07-28 only. */
  readonly versions?: string[]
  readonly capabilities?: Json
  readonly ttlMs?: number
  readonly cacheScope?: 'public' | 'private'
  /** Items per page of the lists; none: one page. The first cursor is "". */
  readonly pageSize?: number
  /** Lists in place of the built-in ones; entries may be anything. */
  readonly tools?: unknown[]
  readonly prompts?: unknown[]
  readonly resources?: unknown[]
  readonly templates?: unknown[]
  /** Methods answered with this error. */
  readonly errors?: Record<string, { code: number; message: string; data?: unknown }>
  /** Methods answered with exactly this result. */
  readonly results?: Record<string, unknown>
  /** Methods that are never answered. */
  readonly silent?: string[]
  /** Methods that break the connection, or end the process. */
  readonly fatal?: string[]
  /** Does it speak the legacy era as well (mcp-server.ts)? Default false. */
  readonly legacy?: boolean
}

/** The script of a running server: a test may change any of it. */
export type Running = { -readonly [member in keyof ModernScript]: ModernScript[member] } & {
  tools: unknown[]
  prompts: unknown[]
  resources: unknown[]
  templates: unknown[]
}

export interface ModernListen {
  readonly id: Id
  /** As it was acknowledged. */
  readonly filter: Json
  readonly peer: ModernPeer
}

export interface Received {
  readonly message: Json
  /** Lower-case names; empty over stdio. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

export interface ModernServer {
  readonly script: Running
  readonly received: Received[]
  readonly listens: Set<ModernListen>
  readonly tasks: ModernTasks
  /** Ids of the requests that the client cancelled, in the order in which that came. */
  readonly cancelled: Id[]
  /** Calls that wait for `release`. */
  readonly waiting: Map<Id, () => void>
  receive(message: Json, peer: ModernPeer, headers?: Received['headers']): void
  /** The client closed the stream of a request, or sent `notifications/cancelled`. */
  cancel(id: Id, peer?: ModernPeer): void
  /** Requests of a method, or `tools/call` of a tool. */
  requests(method: string, tool?: string): Json[]
  /** Lets all `slow` calls finish. */
  release(): void
  /** To the listen streams that asked for it. */
  listChanged(kind: 'tools' | 'prompts' | 'resources'): void
  updated(uri: string): void
  /** Ends all listen streams as 2026-07-28 basic/patterns/subscriptions has it, or breaks them. */
  endListens(how: 'gracefully' | 'broken'): void
}

export function createModernServer(initial: ModernScript = {}): ModernServer {
  const script: Running = {
    ...initial,
    tools: [...(initial.tools ?? modernTools)],
    prompts: [...(initial.prompts ?? [{ name: 'greet', arguments: [{ name: 'who', required: true }] }])],
    resources: [
      ...(initial.resources ?? [
        { uri: 'test://one', name: 'one' },
        { uri: 'test://two', name: 'two' }
      ])
    ],
    templates: [...(initial.templates ?? [{ uriTemplate: 'test://item/{id}', name: 'item' }])]
  }
  const received: Received[] = []
  const listens = new Set<ModernListen>()
  const cancelled: Id[] = []
  const waiting = new Map<Id, () => void>()

  function tell(wanted: (filter: Json) => boolean, notification: { method: string; params?: Json }): void {
    for (const { id, filter, peer } of listens) {
      if (wanted(filter))
        peer.reply({
          jsonrpc: '2.0',
          method: notification.method,
          params: { ...notification.params, _meta: { [key('subscriptionId')]: id } }
        })
    }
  }
  const tasks = createModernTasks((task) => {
    tell(({ taskIds }) => Array.isArray(taskIds) && taskIds.includes(task['taskId']), {
      method: 'notifications/tasks',
      params: task
    })
  })

  const capabilities = (): Json =>
    script.capabilities ?? {
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
      logging: {},
      completions: {},
      extensions: { [tasksExtension]: {} }
    }
  const hints = (): Json => ({ ttlMs: script.ttlMs ?? 0, cacheScope: script.cacheScope ?? 'private' })

  function page(member: string, items: unknown[], params: Json): Json {
    const size = script.pageSize ?? items.length
    const cursor = params['cursor'] as string | undefined
    const at = cursor === undefined ? 0 : cursor === '' ? size : Number(cursor)
    return {
      [member]: items.slice(at, at + size),
      ...(at + size < items.length ? { nextCursor: at === 0 ? '' : String(at + size) } : {}),
      ...hints()
    }
  }

  function listen(id: Id, params: Json, peer: ModernPeer): void {
    const wanted = (params['notifications'] ?? {}) as Json
    const offered = capabilities() as Record<string, Json | undefined>
    const may: Record<string, unknown> = {
      toolsListChanged: offered['tools']?.['listChanged'],
      promptsListChanged: offered['prompts']?.['listChanged'],
      resourcesListChanged: offered['resources']?.['listChanged'],
      resourceSubscriptions: offered['resources']?.['subscribe'],
      taskIds: offered['extensions']?.[tasksExtension] !== undefined
    }
    const filter = Object.fromEntries(
      Object.entries(wanted).filter(([type, value]) => may[type] === true && value !== false)
    )
    listens.add({ id, filter, peer })
    peer.reply({
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: filter, _meta: { [key('subscriptionId')]: id } }
    })
  }

  function handle(id: Id, method: string, params: Json, peer: ModernPeer): Json | undefined {
    switch (method) {
      case 'server/discover':
        return {
          supportedVersions: script.versions ?? [modernVersion],
          capabilities: capabilities(),
          ...hints(),
          ...(script.instructions === undefined ? {} : { instructions: script.instructions })
        }
      case 'tools/list':
        return page('tools', script.tools, params)
      case 'prompts/list':
        return page('prompts', script.prompts, params)
      case 'resources/list':
        return page('resources', script.resources, params)
      case 'resources/templates/list':
        return page('resourceTemplates', script.templates, params)
      case 'prompts/get':
        return {
          description: 'a greeting',
          messages: [{ role: 'user', content: { type: 'text', text: `hello ${JSON.stringify(params['arguments'])}` } }]
        }
      case 'resources/read': {
        const uri = String(params['uri'])
        if (uri.startsWith('test://none')) return refuse(id, peer, -32602, `no such resource: ${uri}`)
        return { contents: [{ uri, mimeType: 'text/plain', text: `contents of ${uri}` }], ...hints() }
      }
      case 'completion/complete':
        return { completion: { values: ['alpha', 'beta'], hasMore: false } }
      case 'subscriptions/listen':
        listen(id, params, peer)
        return undefined
      case 'tools/call':
        return callTool(server, id, params, peer)
      case 'tasks/get':
      case 'tasks/update':
      case 'tasks/cancel':
        if (declared(params)['extensions']?.[tasksExtension] === undefined)
          return refuse(id, peer, -32021, 'tasks are not declared', {
            requiredCapabilities: { extensions: { [tasksExtension]: {} } }
          })
        return tasks.handle(method, params) ?? refuse(id, peer, -32602, 'no such task')
      default:
        return refuse(id, peer, -32601, `no such method: ${method}`)
    }
  }

  const server: ModernServer = {
    script,
    received,
    listens,
    tasks,
    cancelled,
    waiting,
    cancel(id, peer) {
      // Ids are unique to a sender, and several may be connected.
      const open = [...listens].find((listen) => listen.id === id && (peer === undefined || listen.peer === peer))
      if (open !== undefined) listens.delete(open)
      waiting.delete(id)
      cancelled.push(id)
    },
    requests: (method, tool) =>
      received
        .map(({ message }) => message)
        .filter(
          (message) =>
            message['method'] === method && (tool === undefined || (message['params'] as Json)['name'] === tool)
        ),
    release() {
      const all = [...waiting.values()]
      waiting.clear()
      for (const finish of all) finish()
    },
    listChanged: (kind) =>
      tell((filter) => filter[`${kind}ListChanged`] === true, { method: `notifications/${kind}/list_changed` }),
    updated: (uri) =>
      tell(({ resourceSubscriptions: uris }) => Array.isArray(uris) && uris.includes(uri), {
        method: 'notifications/resources/updated',
        params: { uri }
      }),
    endListens(how) {
      const all = [...listens]
      listens.clear()
      for (const { id, peer } of all) {
        if (how === 'broken') peer.drop()
        else
          peer.reply({ jsonrpc: '2.0', id, result: { resultType: 'complete', _meta: { [key('subscriptionId')]: id } } })
      }
    },
    receive(message, peer, headers = {}) {
      received.push({ message, headers })
      const { id, method } = message as { id?: Id; method: string }
      const params = (message['params'] ?? {}) as Json
      if (id === undefined) {
        if (method === 'notifications/cancelled') server.cancel(params['requestId'] as Id)
        return
      }
      if (script.silent?.includes(method) === true) return
      if (script.fatal?.includes(method) === true) return peer.drop()
      const error = script.errors?.[method]
      if (error !== undefined) return refuse(id, peer, error.code, error.message, error.data)
      const meta = params['_meta'] as Json | undefined
      const version = meta?.[key('protocolVersion')]
      const supported = script.versions ?? [modernVersion]
      if (version === undefined && method === 'initialize')
        return refuse(id, peer, -32022, 'there is no initialize any more', {
          supported,
          requested: params['protocolVersion']
        })
      if (typeof version !== 'string' || typeof meta?.[key('clientCapabilities')] !== 'object')
        return refuse(id, peer, -32602, 'params._meta lacks the envelope', undefined, 400)
      if (!supported.includes(version))
        return refuse(id, peer, -32022, 'unsupported version', { supported, requested: version })
      if (script.results !== undefined && method in script.results)
        return peer.reply({ jsonrpc: '2.0', id, result: script.results[method] })
      const result = handle(id, method, params, peer)
      if (result === undefined) return
      const own = { [key('serverInfo')]: { name: script.name ?? 'modern', version: '1.2.3', title: 'Modern' } }
      peer.reply({
        jsonrpc: '2.0',
        id,
        result: { resultType: 'complete', ...result, _meta: { ...(result['_meta'] as Json | undefined), ...own } }
      })
    }
  }
  return server
}
