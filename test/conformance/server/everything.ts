// The reference server itself, whatever carries it: one per session. On the low-level Server of the SDK, so that schemas go out as they are written.

import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import {
  CallToolRequestSchema, CompleteRequestSchema, CreateMessageResultSchema, ElicitResultSchema, ErrorCode, GetPromptRequestSchema, ListPromptsRequestSchema,
  ListResourceTemplatesRequestSchema, ListResourcesRequestSchema, ListToolsRequestSchema, LoggingLevelSchema, McpError, ReadResourceRequestSchema,
  SetLevelRequestSchema, SubscribeRequestSchema, UnsubscribeRequestSchema
} from '@modelcontextprotocol/sdk/types.js'
import type { ServerNotification, ServerRequest } from '@modelcontextprotocol/sdk/types.js'
import { completions, prompts } from './prompts.ts'
import { contentsOf, resources, templates } from './resources.ts'
import { tools } from './tools.ts'
import type { Caller } from './tools.ts'

/** From the least to the most severe. */
const levels = LoggingLevelSchema.options
const resourceNotFound = -32002

export function createEverything (): Server {
  const server = new Server({ name: 'gatehouse-reference', title: 'Reference server', version: '1.0.0' }, {
    capabilities: { tools: { listChanged: true }, prompts: { listChanged: true }, resources: { subscribe: true, listChanged: true }, logging: {}, completions: {} },
    instructions: 'A server to test clients and gateways with.'
  })
  const watched = new Set<string>()
  let lowest = 0

  function callerOf ({ _meta, sendNotification, sendRequest, closeSSEStream }: RequestHandlerExtra<ServerRequest, ServerNotification>): Caller {
    const token = _meta?.progressToken
    const need = (capability: 'sampling' | 'elicitation'): void => {
      if (server.getClientCapabilities()?.[capability] === undefined) throw new Error(`the client did not declare ${capability}`)
    }
    return {
      async log (data) {
        if (levels.indexOf('info') >= lowest) await sendNotification({ method: 'notifications/message', params: { level: 'info', logger: 'reference', data } })
      },
      async progress (progress, total) {
        if (token !== undefined) await sendNotification({ method: 'notifications/progress', params: { progressToken: token, progress, total } })
      },
      async sample (params) {
        need('sampling')
        return await sendRequest({ method: 'sampling/createMessage', params }, CreateMessageResultSchema)
      },
      async elicit (message, requestedSchema) {
        need('elicitation')
        return await sendRequest({ method: 'elicitation/create', params: { message, requestedSchema } }, ElicitResultSchema)
      },
      hangUp: () => closeSSEStream?.()
    }
  }

  server.setRequestHandler(SetLevelRequestSchema, ({ params }) => {
    lowest = levels.indexOf(params.level)
    return {}
  })
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: Object.entries(tools).map(([name, { description, inputSchema }]) => ({ name, description, inputSchema }))
  }))
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const tool = tools[params.name]
    if (tool === undefined) throw new McpError(ErrorCode.InvalidParams, `Unknown tool: ${params.name}`)
    try {
      return await tool.call(params.arguments ?? {}, callerOf(extra))
    } catch (error) {
      // The caller's loss, and the caller is told: a tool that fails is a result (server/tools, "Error Handling").
      return { isError: true, content: [{ type: 'text', text: error instanceof Error ? error.message : String(error) }] }
    }
  })
  server.setRequestHandler(ListPromptsRequestSchema, () => ({
    prompts: Object.entries(prompts).map(([name, { messages: _messages, ...prompt }]) => ({ name, ...prompt }))
  }))
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) => {
    const prompt = prompts[params.name]
    if (prompt === undefined) throw new McpError(ErrorCode.InvalidParams, `Unknown prompt: ${params.name}`)
    return { description: prompt.description, messages: prompt.messages(params.arguments ?? {}) }
  })
  server.setRequestHandler(CompleteRequestSchema, ({ params }) => {
    const values = completions(params.argument.value)
    return { completion: { values, total: values.length, hasMore: false } }
  })
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: [...resources] }))
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: [...templates] }))
  server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => ({ contents: existing(params.uri) }))
  server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
    existing(params.uri)
    watched.add(params.uri)
    return {}
  })
  server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
    // Stricter than the specification: who answers a subscription without telling the server is found out here.
    if (!watched.delete(params.uri)) throw new McpError(ErrorCode.InvalidParams, `Not subscribed to ${params.uri}`)
    return {}
  })
  return server
}

function existing (uri: string): NonNullable<ReturnType<typeof contentsOf>> {
  const contents = contentsOf(uri)
  if (contents === undefined) throw new McpError(resourceNotFound, 'Resource not found', { uri })
  return contents
}
