// The server of the tour on any version of the official SDK: one per session, on the low-level Server, which all of
// them have.

import { setTimeout as pause } from 'node:timers/promises'
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import type { CallToolResult, ServerNotification, ServerRequest } from '@modelcontextprotocol/sdk/types.js'
import type { Types } from '../kit/sdks.ts'

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC'
const words = ['alpha', 'alpine', 'beta']
const one = 'test://one'
const embedded = { uri: one, mimeType: 'text/plain', text: 'one' }
const pageSize = 6

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>

export function createFixture(Made: typeof Server, types: typeof Types): Server {
  const revision = types.LATEST_PROTOCOL_VERSION
  const server = new Made(
    { name: 'fixture', version: '1' },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: {},
        resources: { subscribe: true },
        logging: {},
        // Older clients and servers complete without saying so.
        ...(revision < '2025-03-26' ? {} : { completions: {} })
      }
    }
  )
  const tools = [
    'echo',
    'progress',
    'wait',
    'cancelled',
    'content',
    'fail',
    'touch',
    'log',
    'grow',
    'sample',
    'roots',
    'rootsChanges',
    'elicit',
    'link'
  ]
  const subscribed = new Set<string>()
  let cancelled = 0
  let rootsChanges = 0

  const text = (value: string): CallToolResult => ({ content: [{ type: 'text', text: value }] })

  async function call(
    name: string,
    args: Record<string, unknown>,
    token: string | number | undefined,
    extra: Extra
  ): Promise<CallToolResult> {
    // 1.0.4 knows one stream only, and so nothing that names a call.
    const notify = (notification: ServerNotification): Promise<void> =>
      extra.sendNotification === undefined ? server.notification(notification) : extra.sendNotification(notification)
    const ask: Extra['sendRequest'] = (request, schema) =>
      extra.sendRequest === undefined ? server.request(request, schema) : extra.sendRequest(request, schema)
    const progress = async (step: number, total: number): Promise<void> => {
      if (token !== undefined)
        await notify({ method: 'notifications/progress', params: { progressToken: token, progress: step, total } })
    }
    switch (name) {
      case 'echo':
        return {
          ...text(String(args['text'])),
          ...(revision < '2025-06-18' ? {} : { structuredContent: { text: args['text'] } })
        }
      case 'progress':
        for (let step = 1; step <= Number(args['steps']); step++) {
          await progress(step, Number(args['steps']))
          await pause(5)
        }
        return text('done')
      case 'wait':
        await progress(0, 1)
        await new Promise((resolve) => {
          extra.signal.addEventListener('abort', resolve)
        })
        cancelled++
        return text('cancelled')
      case 'cancelled':
        return text(String(cancelled))
      case 'content':
        return {
          content: [
            { type: 'text', text: 'text' },
            { type: 'image', data: png, mimeType: 'image/png' },
            { type: 'resource', resource: embedded },
            ...(revision < '2025-03-26' ? [] : [{ type: 'audio' as const, data: 'YXVkaW8=', mimeType: 'audio/wav' }]),
            ...(revision < '2025-06-18' ? [] : [{ type: 'resource_link' as const, uri: one, name: 'one' }])
          ]
        }
      case 'fail':
        return { ...text('it went wrong'), isError: true }
      case 'touch':
        if (!subscribed.has(one)) return text('nobody subscribed')
        await server.notification({ method: 'notifications/resources/updated', params: { uri: one } })
        return text('touched')
      case 'log':
        await notify({ method: 'notifications/message', params: { level: 'info', logger: 'fixture', data: 'a line' } })
        return text('logged')
      case 'grow':
        if (!tools.includes('grown')) tools.push('grown')
        await server.notification({ method: 'notifications/tools/list_changed' })
        return text('grown')
      case 'sample': {
        const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: 'hello' } }]
        const { content } = await ask(
          { method: 'sampling/createMessage', params: { messages, maxTokens: 77 } },
          types.CreateMessageResultSchema
        )
        return text((content as { text: string }).text)
      }
      case 'roots': {
        const { roots } = await ask({ method: 'roots/list' }, types.ListRootsResultSchema)
        return text(roots.map(({ uri }) => uri).join(' '))
      }
      case 'rootsChanges':
        return text(String(rootsChanges))
      case 'elicit': {
        const { action, content } = await ask(
          {
            method: 'elicitation/create',
            params: { message: 'who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } }
          },
          types.ElicitResultSchema
        )
        return text(content === undefined ? action : `${action} ${String(content['name'])}`)
      }
      case 'link': {
        const elicitationId = 'page-1'
        const { action } = await ask(
          {
            method: 'elicitation/create',
            params: { mode: 'url', message: 'sign', url: 'https://example.com/sign', elicitationId }
          },
          types.ElicitResultSchema
        )
        await notify({ method: 'notifications/elicitation/complete', params: { elicitationId } })
        return text(action)
      }
      default:
        throw new types.McpError(types.ErrorCode.InvalidParams, `Unknown tool: ${name}`)
    }
  }

  server.setRequestHandler(types.ListToolsRequestSchema, async ({ params }) => {
    const at = Number(params?.cursor ?? 0)
    const page = tools
      .slice(at, at + pageSize)
      .map((name) => ({ name, description: `the ${name} tool`, inputSchema: { type: 'object' as const } }))
    return { tools: page, ...(at + pageSize < tools.length ? { nextCursor: String(at + pageSize) } : {}) }
  })
  server.setRequestHandler(types.CallToolRequestSchema, ({ params }, extra) =>
    call(params.name, params.arguments ?? {}, params._meta?.progressToken, extra)
  )
  server.setRequestHandler(types.ListResourcesRequestSchema, async () => ({ resources: [{ uri: one, name: 'one' }] }))
  server.setRequestHandler(types.ListResourceTemplatesRequestSchema, async () => ({
    resourceTemplates: [{ uriTemplate: 'test://item/{id}', name: 'item' }]
  }))
  server.setRequestHandler(types.ReadResourceRequestSchema, async ({ params: { uri } }) => {
    if (uri === one) return { contents: [embedded] }
    const id = /^test:\/\/item\/(.+)$/.exec(uri)?.[1]
    if (id === undefined) throw new types.McpError(-32002, 'Resource not found', { uri })
    return { contents: [{ uri, mimeType: 'text/plain', text: `item ${id}` }] }
  })
  server.setRequestHandler(types.SubscribeRequestSchema, async ({ params }) => {
    subscribed.add(params.uri)
    return {}
  })
  server.setRequestHandler(types.UnsubscribeRequestSchema, async ({ params }) => {
    subscribed.delete(params.uri)
    return {}
  })
  server.setRequestHandler(types.ListPromptsRequestSchema, async () => ({
    prompts: [{ name: 'greet', arguments: [{ name: 'who', required: true }] }]
  }))
  server.setRequestHandler(types.GetPromptRequestSchema, async ({ params }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `hello ${params.arguments?.['who']}` } }]
  }))
  server.setRequestHandler(types.CompleteRequestSchema, async ({ params }) => ({
    completion: { values: words.filter((word) => word.startsWith(params.argument.value)) }
  }))
  server.setRequestHandler(types.SetLevelRequestSchema, async () => ({}))
  server.setNotificationHandler(types.RootsListChangedNotificationSchema, async () => {
    rootsChanges++
  })
  return server
}
