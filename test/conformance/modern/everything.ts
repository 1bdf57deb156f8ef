// The reference server of 2026-07-28, whatever carries it, on the second SDK: one per HTTP request, or one for a
// process over stdio.

import {
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  acceptedContent,
  createRequestStateCodec,
  inputRequired,
  type GetPromptResult
} from '@modelcontextprotocol/server'
import { randomBytes } from 'node:crypto'
import { completions, prompts } from '../server/prompts.ts'
import { contentsOf, resources, templates } from '../server/resources.ts'
import { askingTools, form } from './asking.ts'
import { legacyTools } from './legacy-tools.ts'
import { tasksExtension } from './tasks.ts'
import { tools } from './tools.ts'

/**
 * What all servers of a process have in common: their lists change at run time, and state that one gave another takes
 * back.
 */
export interface Shared {
  readonly states: ReturnType<typeof createRequestStateCodec<string>>
  /** How often a list was changed, which is what the last of its entries says. */
  readonly changes: { tools: number; prompts: number }
  /** Tells all who listen. */
  changed(kind: 'tools' | 'prompts'): void
}

export const createShared = (changed: Shared['changed']): Shared => ({
  states: createRequestStateCodec<string>({ key: randomBytes(32) }),
  changes: { tools: 0, prompts: 0 },
  changed
})

const asking = 'test_input_required_result_prompt'

export interface Everything {
  readonly mcp: McpServer
  /** Brings the tools of a running server into line with `shared.changes`, and tells who listens. */
  follow(): void
}

export function createEverything(shared: Shared): Everything {
  const mcp = new McpServer(
    { name: 'gatehouse-reference', title: 'Reference server', version: '2.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        logging: {},
        completions: {},
        extensions: { [tasksExtension]: {} }
      },
      instructions: 'A server to test clients and gateways with.',
      cacheHints: { 'tools/list': { ttlMs: 1_000, cacheScope: 'public' }, 'resources/read': { ttlMs: 2_000 } },
      requestState: { verify: shared.states.verify }
    }
  )
  for (const [name, { description, inputSchema, call }] of Object.entries({
    ...tools,
    ...askingTools,
    ...legacyTools
  })) {
    mcp.registerTool(
      name,
      { description, inputSchema },
      async (args, context) => await call(args as Record<string, unknown>, context, shared)
    )
  }
  const description = (kind: 'tools' | 'prompts'): string => `The ${kind} were changed ${shared.changes[kind]} times`
  const changing = mcp.registerTool('test_changing_tool', { description: description('tools') }, () => ({
    content: []
  }))

  // What an author would have to write a schema of a library for is answered on the lower level, with the data of the
  // legacy fixture.
  const { server } = mcp
  server.setRequestHandler('prompts/list', () => ({
    prompts: [
      ...Object.entries(prompts).map(([name, { messages: _messages, ...prompt }]) => ({ name, ...prompt })),
      { name: asking, description: 'Asks before it answers' },
      { name: 'test_changing_prompt', description: description('prompts') }
    ]
  }))
  server.setRequestHandler('prompts/get', ({ params }, { mcpReq }) => {
    if (params.name === asking) {
      const told = acceptedContent(mcpReq.inputResponses, 'user_context')
      if (told === undefined)
        return inputRequired({
          inputRequests: { user_context: form('What context should the prompt use?', 'context') }
        })
      return {
        messages: [
          {
            role: 'user' as const,
            content: { type: 'text' as const, text: `In the context of ${String(told['context'])}` }
          }
        ]
      }
    }
    const prompt = prompts[params.name]
    if (prompt === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown prompt: ${params.name}`)
    return {
      description: prompt.description,
      messages: prompt.messages(params.arguments ?? {}) as GetPromptResult['messages']
    }
  })
  server.setRequestHandler('completion/complete', ({ params }) => {
    const values = completions(params.argument.value)
    return { completion: { values, total: values.length, hasMore: false } }
  })
  server.setRequestHandler('resources/list', () => ({ resources: [...resources] }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [...templates] }))
  server.setRequestHandler('resources/read', ({ params }) => {
    const contents = contentsOf(params.uri)
    if (contents === undefined) throw new ResourceNotFoundError(params.uri)
    return { contents }
  })
  return { mcp, follow: () => changing.update({ description: description('tools') }) }
}
