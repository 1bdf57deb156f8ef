// The reference server itself, whatever carries it: one per session. On the low-level Server of the SDK, so that
// schemas go out as they are written.

import {
  InMemoryTaskMessageQueue,
  InMemoryTaskStore
} from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  CreateMessageResultSchema,
  ElicitResultSchema,
  ErrorCode,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListResourcesRequestSchema,
  ListRootsResultSchema,
  ListToolsRequestSchema,
  LoggingLevelSchema,
  McpError,
  ReadResourceRequestSchema,
  SetLevelRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
  type ServerNotification,
  type ServerRequest
} from '@modelcontextprotocol/sdk/types.js'
import { askingPrompt, askingTools } from './asking.ts'
import { jobTools, startJob } from './jobs.ts'
import { completions, prompts } from './prompts.ts'
import { contentsOf, resources, templates } from './resources.ts'
import { nothing } from './schemas.ts'
import type { Changing, Shared } from './shared.ts'
import { tools as plainTools, type Caller } from './tools.ts'

const tools = { ...plainTools, ...askingTools }
const asking = 'test_input_required_result_prompt'

/** From the least to the most severe. */
const levels = LoggingLevelSchema.options
const resourceNotFound = -32002

export function createEverything(shared: Shared): Server {
  const server = new Server(
    { name: 'gatehouse-reference', title: 'Reference server', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        logging: {},
        completions: {},
        tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } }
      },
      instructions: 'A server to test clients and gateways with.',
      taskStore: new InMemoryTaskStore(),
      taskMessageQueue: new InMemoryTaskMessageQueue()
    }
  )
  // eslint-disable-next-line unicorn/prefer-add-event-listener
  server.onclose = shared.join((kind) => {
    // A session that is going hears it no more.
    ;(kind === 'tools' ? server.sendToolListChanged() : server.sendPromptListChanged()).catch((error: unknown) => {
      process.stderr.write(`${String(error)}\n`)
    })
  })
  const description = (kind: Changing): string => `The ${kind} were changed ${shared.changes(kind)} times`
  const watched = new Set<string>()
  let lowest = 0

  function callerOf({
    _meta,
    sendNotification,
    sendRequest,
    closeSSEStream
  }: RequestHandlerExtra<ServerRequest, ServerNotification>): Caller {
    const token = _meta?.progressToken
    const can: Caller['can'] = (capability) => server.getClientCapabilities()?.[capability] !== undefined
    const need = (capability: Parameters<typeof can>[0]): void => {
      if (!can(capability)) throw new Error(`the client did not declare ${capability}`)
    }
    return {
      can,
      async log(data) {
        if (levels.indexOf('info') >= lowest)
          await sendNotification({
            method: 'notifications/message',
            params: { level: 'info', logger: 'reference', data }
          })
      },
      async progress(progress, total) {
        if (token !== undefined)
          await sendNotification({
            method: 'notifications/progress',
            params: { progressToken: token, progress, total }
          })
      },
      async sample(params) {
        need('sampling')
        return await sendRequest({ method: 'sampling/createMessage', params }, CreateMessageResultSchema)
      },
      async elicit(message, requestedSchema) {
        need('elicitation')
        return await sendRequest(
          { method: 'elicitation/create', params: { message, requestedSchema } },
          ElicitResultSchema
        )
      },
      async roots() {
        need('roots')
        return await sendRequest({ method: 'roots/list' }, ListRootsResultSchema)
      },
      change: shared.change,
      hangUp: () => closeSSEStream?.()
    }
  }

  server.setRequestHandler(SetLevelRequestSchema, ({ params }) => {
    lowest = levels.indexOf(params.level)
    return {}
  })
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [
      ...Object.entries(tools).map(([name, { description, inputSchema }]) => ({ name, description, inputSchema })),
      ...jobTools,
      { name: 'test_changing_tool', description: description('tools'), inputSchema: nothing }
    ]
  }))
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const job = await startJob(server, params, extra)
    if (job !== undefined) return job
    const tool = (tools as Record<string, (typeof tools)[keyof typeof tools]>)[params.name]
    if (tool === undefined) throw new McpError(ErrorCode.InvalidParams, `Unknown tool: ${params.name}`)
    try {
      return await tool.call(params.arguments ?? {}, callerOf(extra))
    } catch (error) {
      // The caller's loss, and the caller is told: a tool that fails is a result (server/tools, "Error Handling").
      return {
        isError: true,
        content: [{ type: 'text', text: error instanceof Error ? error.message : String(error) }]
      }
    }
  })
  server.setRequestHandler(ListPromptsRequestSchema, () => ({
    prompts: [
      ...Object.entries(prompts).map(([name, { messages: _messages, ...prompt }]) => ({ name, ...prompt })),
      { name: asking, description: 'Asks before it answers' },
      { name: 'test_changing_prompt', description: description('prompts') }
    ]
  }))
  server.setRequestHandler(GetPromptRequestSchema, async ({ params }, extra) => {
    if (params.name === asking) return await askingPrompt(callerOf(extra))
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

function existing(uri: string): NonNullable<ReturnType<typeof contentsOf>> {
  const contents = contentsOf(uri)
  if (contents === undefined) throw new McpError(resourceNotFound, 'Resource not found', { uri })
  return contents
}
