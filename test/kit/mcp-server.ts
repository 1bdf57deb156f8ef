// A scriptable MCP server of the legacy era, whatever carries it: own small JSON-RPC, not an SDK, so that it can
// misbehave. It records what reached it.

export type Json = Record<string, unknown>
export type Id = string | number

/** Who a message came from, and the ways back. */
export interface Peer {
  /** On the stream of the request, where there is one. */
  reply(message: Json): void
  /** On the connection's own channel. */
  push(message: Json): void
  /** The process ends; without effect inside a test. */
  exit(code: number): void
  /** Bytes as they are, on standard output. */
  raw(text: string): void
}

/** Of the tool `steps`, which is not among the tools by itself. */
export interface Step {
  readonly ask?: ReadonlyArray<{ readonly method: string; readonly params?: Json }>
  readonly progress?: number
  /** With it. */
  readonly message?: string
  readonly log?: string
  /** Goes on when `release` is called. */
  readonly wait?: true
}

export interface Script {
  readonly name?: string
  /** What initialize is answered with, whatever was asked. */
  readonly revision?: string
  readonly capabilities?: Json
  readonly instructions?: string
  /** Items per page of the lists; none: one page. */
  readonly pageSize?: number
  /** Lists in place of the built-in ones; entries may be anything. */
  readonly tools?: unknown[]
  readonly prompts?: unknown[]
  readonly resources?: unknown[]
  readonly templates?: unknown[]
  /** Methods answered with this error. */
  readonly errors?: Record<string, { code: number; message: string }>
  /** Methods that are never answered. */
  readonly silent?: string[]
  /** Goes on with what was cancelled, as servers may. */
  readonly deaf?: boolean
}

export interface McpServer {
  /** Takes one decoded message. */
  receive(message: Json, peer: Peer): void
  readonly received: Json[]
  calls(tool: string): number
  /** Lets all `slow` calls finish. */
  release(): void
  /** Answers to the server's own requests, by their id. */
  readonly answers: Map<Id, Json>
}

const builtIn = [
  'echo',
  'slow',
  'release',
  'progress',
  'fail',
  'rpcerror',
  'content',
  'crash',
  'log',
  'grow',
  'pid',
  'env',
  'ask',
  'sample',
  'elicit',
  'roots',
  'withdraw',
  'touch',
  'big',
  'raw',
  'stderr'
]

/** What the tools that ask, ask. */
const serverRequests: Readonly<Record<string, { method: string; params?: Json }>> = {
  ask: { method: 'elicitation/create', params: { message: 'who?' } },
  elicit: {
    method: 'elicitation/create',
    params: { message: 'who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } }
  },
  sample: {
    method: 'sampling/createMessage',
    params: { messages: [{ role: 'user', content: { type: 'text', text: 'hello' } }], maxTokens: 10 }
  },
  roots: { method: 'roots/list' }
}

const toolOf = (name: string): Json => ({
  name,
  description: `the ${name} tool`,
  inputSchema: { type: 'object' },
  'x-unknown': { kept: true }
})

export function createMcpServer(script: Script = {}): McpServer {
  const received: Json[] = []
  const answers = new Map<Id, Json>()
  const tools: unknown[] = [...(script.tools ?? builtIn.map(toolOf))]
  const prompts = script.prompts ?? [{ name: 'greet', arguments: [{ name: 'who', required: true }] }]
  const resources = script.resources ?? [
    { uri: 'test://one', name: 'one' },
    { uri: 'test://two', name: 'two' }
  ]
  const templates = script.templates ?? [{ uriTemplate: 'test://item/{id}', name: 'item' }]
  const waiting = new Map<Id, () => void>()
  const subscribed = new Set<unknown>()
  let lastId = 0

  const capabilities = script.capabilities ?? {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    logging: {},
    completions: {}
  }

  function page(member: string, items: unknown[], params: Json): Json {
    const size = script.pageSize
    if (size === undefined) return { [member]: items }
    // The first cursor is "", which is one like any other.
    const cursor = params['cursor'] as string | undefined
    const at = cursor === undefined ? 0 : cursor === '' ? size : Number(cursor)
    const next = at + size
    return {
      [member]: items.slice(at, next),
      ...(next < items.length ? { nextCursor: at === 0 ? '' : String(next) } : {})
    }
  }

  function handle(id: Id, method: string, params: Json, peer: Peer): Json | undefined {
    switch (method) {
      case 'initialize':
        return {
          protocolVersion: script.revision ?? params['protocolVersion'],
          capabilities,
          serverInfo: { name: script.name ?? 'scripted', version: '1.2.3', title: 'Scripted' },
          ...(script.instructions === undefined ? {} : { instructions: script.instructions })
        }
      case 'ping':
        return {}
      case 'logging/setLevel':
        return {}
      case 'tools/list':
        return page('tools', tools, params)
      case 'prompts/list':
        return page('prompts', prompts, params)
      case 'resources/list':
        return page('resources', resources, params)
      case 'resources/templates/list':
        return page('resourceTemplates', templates, params)
      case 'prompts/get':
        return params['name'] === 'ask'
          ? ask(id, 'elicit', {}, peer, (answers) => ({
              messages: [{ role: 'user', content: { type: 'text', text: JSON.stringify(answers[0]) } }]
            }))
          : {
              description: 'a greeting',
              messages: [
                { role: 'user', content: { type: 'text', text: `hello ${JSON.stringify(params['arguments'])}` } }
              ]
            }
      case 'resources/read':
        return params['uri'] === 'test://ask'
          ? ask(id, 'elicit', {}, peer, (answers) => ({
              contents: [{ uri: 'test://ask', text: JSON.stringify(answers[0]) }]
            }))
          : { contents: [{ uri: params['uri'], mimeType: 'text/plain', text: `contents of ${String(params['uri'])}` }] }
      case 'resources/subscribe':
        subscribed.add(params['uri'])
        return {}
      case 'resources/unsubscribe':
        subscribed.delete(params['uri'])
        return {}
      case 'completion/complete':
        return { completion: { values: ['alpha', 'beta'], hasMore: false } }
      case 'tools/call':
        return call(id, params, peer)
      default:
        peer.reply({ jsonrpc: '2.0', id, error: { code: -32601, message: `no such method: ${method}` } })
        return undefined
    }
  }

  /** @param isEndless every 20 ms until the call is over, by its cancellation too */
  function reportProgress(id: Id, progressToken: unknown, peer: Peer, isEndless: boolean, progress = 0): void {
    peer.reply({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress } })
    const again = (): void => {
      if (waiting.has(id)) reportProgress(id, progressToken, peer, true, progress + 1)
    }
    if (isEndless) setTimeout(again, 20)
  }

  function call(id: Id, params: Json, peer: Peer): Json | undefined {
    const args = (params['arguments'] ?? {}) as Json
    const meta = (params['_meta'] ?? {}) as Json
    const text = (value: unknown): Json => ({
      content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }]
    })
    const token = meta['progressToken']
    switch (params['name']) {
      case 'echo':
        return { ...text(args), structuredContent: { arguments: args, meta }, _meta: { 'test/kept': true } }
      case 'slow':
        waiting.set(id, () => peer.reply({ jsonrpc: '2.0', id, result: text('slow is done') }))
        if (token !== undefined) reportProgress(id, token, peer, args['endless'] === true)
        return undefined
      case 'release':
        release()
        return text('released')
      case 'progress':
        for (let step = 1; step <= Number(args['steps'] ?? 3); step++) {
          peer.reply({
            jsonrpc: '2.0',
            method: 'notifications/progress',
            params: { progressToken: token, progress: step, total: Number(args['steps'] ?? 3), message: `step ${step}` }
          })
        }
        return text('all steps done')
      case 'fail':
        return { ...text('it went wrong'), isError: true }
      case 'rpcerror':
        peer.reply({
          jsonrpc: '2.0',
          id,
          error: {
            code: Number(args['code'] ?? -32050),
            message: String(args['message'] ?? 'refused by the tool'),
            data: args['data'] ?? { kept: true }
          }
        })
        return undefined
      case 'content':
        return everyContent
      case 'crash':
        peer.exit(Number(args['code'] ?? 7))
        return undefined
      case 'log':
        for (let n = 1; n <= Number(args['count'] ?? 1); n++)
          peer.reply({
            jsonrpc: '2.0',
            method: 'notifications/message',
            params: { level: 'info', logger: 'scripted', data: `line ${n}` }
          })
        return text('logged')
      case 'grow':
        tools.push(toolOf(String(args['name'] ?? 'grown')))
        peer.push({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })
        return text('grown')
      case 'pid':
        return text(String(process.pid))
      case 'received':
        return text(received.map(({ method }) => method))
      case 'env':
        return text(process.env)
      case 'ask':
      case 'elicit':
      case 'sample':
      case 'roots':
        return ask(id, params['name'], args, peer, (answers) => text(answers.length === 1 ? answers[0] : answers))
      case 'steps':
        walk(id, args['steps'] as Step[], args['push'] === true ? peer.push : peer.reply, peer, token)
        return undefined
      case 'withdraw':
        for (const [askId, say] of open)
          say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: askId, reason: 'never mind' } })
        return text([...open.keys()].filter((askId) => open.delete(askId)))
      case 'touch': {
        const uri = args['uri'] ?? 'test://one'
        if (subscribed.has(uri))
          peer.push({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } })
        return text(subscribed.has(uri) ? 'touched' : 'nobody subscribed')
      }
      case 'big':
        return text('x'.repeat(Number(args['bytes'] ?? 1_000_000)))
      case 'say':
        return text(String(args['text'] ?? ''))
      case 'raw':
        peer.raw(String(args['text'] ?? ''))
        return text('written')
      case 'stderr':
        process.stderr.write(String(args['text'] ?? 'a line\n').repeat(Number(args['times'] ?? 1)))
        return text('written')
      default:
        peer.reply({ jsonrpc: '2.0', id, error: { code: -32602, message: `Unknown tool: ${String(params['name'])}` } })
        return undefined
    }
  }

  const askers = new Map<Id, (answer: Json) => void>()
  /** Questions without an answer, and how to take them back. */
  const open = new Map<Id, (message: Json) => void>()

  /**
   * Asks `count` times (1), on the stream of the call or with `push` on the connection's own, and answers the call with
   * all that was answered; with `impatient`, at once.
   */
  function ask(id: Id, tool: string, args: Json, peer: Peer, resultOf: (answers: Json[]) => Json): Json | undefined {
    const { method, params } = { ...serverRequests[tool], ...args } as { method: string; params?: Json }
    const say = args['push'] === true ? peer.push : peer.reply
    const count = Number(args['count'] ?? 1)
    const got: Json[] = []
    for (let n = 0; n < count; n++) {
      const askId = `ask-${++lastId}`
      open.set(askId, say)
      askers.set(askId, (answer) => {
        open.delete(askId)
        got.push(answer)
        if (got.length === count && args['impatient'] !== true)
          peer.reply({ jsonrpc: '2.0', id, result: resultOf(got) })
      })
      say({ jsonrpc: '2.0', id: askId, method, ...(params === undefined ? {} : { params }) })
    }
    return args['impatient'] === true ? resultOf([]) : undefined
  }

  /**
   * One step after the other: what is asked at once is answered before the next; the result has all answers in their
   * order.
   */
  function walk(
    id: Id,
    steps: readonly Step[],
    say: (message: Json) => void,
    peer: Peer,
    token: unknown,
    answered: Json[] = []
  ): void {
    const [step, ...rest] = steps
    if (step === undefined)
      return peer.reply({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: JSON.stringify(answered) }] } })
    if (step.progress !== undefined)
      peer.reply({
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken: token, progress: step.progress, message: step.message }
      })
    if (step.log !== undefined)
      peer.reply({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: step.log } })
    if (step.wait === true) return void waiting.set(id, () => walk(id, rest, say, peer, token, answered))
    const asked = step.ask ?? []
    if (asked.length === 0) return walk(id, rest, say, peer, token, answered)
    const got: Json[] = []
    for (const [at, serverRequest] of asked.entries()) {
      const askId = `step-${++lastId}`
      open.set(askId, say)
      askers.set(askId, ({ result, error }) => {
        open.delete(askId)
        got[at] = (result ?? { error }) as Json
        if (Object.keys(got).length === asked.length) walk(id, rest, say, peer, token, [...answered, ...got])
      })
      say({ jsonrpc: '2.0', id: askId, ...serverRequest })
    }
  }

  function release(): void {
    const all = [...waiting.values()]
    waiting.clear()
    for (const finish of all) finish()
  }

  return {
    received,
    answers,
    release,
    calls: (tool) =>
      received.filter((message) => message['method'] === 'tools/call' && (message['params'] as Json)['name'] === tool)
        .length,
    receive(message, peer) {
      received.push(message)
      const { id, method } = message as { id?: Id; method?: string }
      if (method === undefined) {
        if (id === undefined) return
        answers.set(id, message)
        askers.get(id)?.(message)
        askers.delete(id)
        return
      }
      const params = (message['params'] ?? {}) as Json
      if (id === undefined) {
        if (method === 'notifications/cancelled' && script.deaf !== true) waiting.delete(params['requestId'] as Id)
        return
      }
      if (script.silent?.includes(method) === true) return
      const error = script.errors?.[method]
      if (error !== undefined) return peer.reply({ jsonrpc: '2.0', id, error })
      const result = handle(id, method, params, peer)
      if (result !== undefined) peer.reply({ jsonrpc: '2.0', id, result })
    }
  }
}

/** Two pixels wide and high: one that a browser shows. */
export const tinyImage =
  'iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFElEQVR4nGP4z8DAAMIM/////w8AH+4F+7C4l8kAAAAASUVORK5CYII='

const everyContent: Json = {
  content: [
    { type: 'text', text: 'text', annotations: { audience: ['user'], priority: 0.5 }, _meta: { a: 1 } },
    { type: 'image', data: tinyImage, mimeType: 'image/png' },
    { type: 'audio', data: 'YXVkaW8=', mimeType: 'audio/wav' },
    { type: 'resource_link', uri: 'test://one', name: 'one', icons: [{ src: 'https://example.com/i.png' }] },
    { type: 'resource', resource: { uri: 'test://two', mimeType: 'text/plain', text: 'two', extra: null } },
    { type: 'hologram', from: 'the future', nested: { deep: [1, 2, { three: 3 }] } }
  ],
  structuredContent: { answer: 42, big: 1e21, list: [true, null] },
  isError: false,
  _meta: { 'com.example/x': { y: 'z' } },
  resultType: 'unknown to us'
}
