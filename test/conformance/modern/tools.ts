// The tools of the reference server of 2026-07-28 that ask nothing: those of the legacy fixture that still have a
// meaning, those that the new scenarios name, and those of the tasks extension, which answer at once where the client
// knows no tasks.

import {
  fromJsonSchema,
  inputRequired,
  type CallToolResult,
  type InputRequiredResult,
  type ServerContext
} from '@modelcontextprotocol/server'
import { manyKeywords, nothing, oneString } from '../server/schemas.ts'
import { tools as legacy, type Caller } from '../server/tools.ts'
import type { Shared } from './everything.ts'

export interface Entry {
  readonly description: string
  readonly inputSchema: ReturnType<typeof fromJsonSchema>
  call(
    args: Record<string, unknown>,
    context: ServerContext,
    shared: Shared
  ): CallToolResult | InputRequiredResult | Promise<CallToolResult | InputRequiredResult>
}

export const schema = (plain: object): Entry['inputSchema'] =>
  fromJsonSchema(plain as Parameters<typeof fromJsonSchema>[0])
export const text = (value: string) => ({ type: 'text' as const, text: value })
export const answer = (value: string): CallToolResult => ({ content: [text(value)] })

const kept = [
  'test_simple_text',
  'test_image_content',
  'test_audio_content',
  'test_embedded_resource',
  'test_multiple_content_types',
  'test_tool_with_logging',
  'test_tool_with_progress',
  'test_error_handling'
] as const

const callerOf = ({ mcpReq }: ServerContext): Caller => ({
  log: (data) => mcpReq.log('info', data, 'reference'),
  async progress(progress, total) {
    const token = mcpReq._meta?.progressToken
    if (token !== undefined)
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken: token, progress, total } })
  },
  // A server asks no more by itself, and none of the tools that are kept does.
  can: () => false,
  sample: () => {
    throw new Error('a server asks no more by itself')
  },
  elicit: () => {
    throw new Error('a server asks no more by itself')
  },
  roots: () => {
    throw new Error('a server asks no more by itself')
  },
  change() {},
  hangUp() {}
})

const empty = schema(nothing)

function changing(kind: 'tools' | 'prompts'): Entry {
  return {
    description: `Changes the list of ${kind}`,
    inputSchema: empty,
    call(_args, _context, shared) {
      shared.changes[kind]++
      shared.changed(kind)
      return answer('Changed.')
    }
  }
}

export const tools: Readonly<Record<string, Entry>> = {
  ...Object.fromEntries(
    kept.map((name): [string, Entry] => {
      const { description, inputSchema, call } = legacy[name] as NonNullable<(typeof legacy)[string]>
      return [
        name,
        {
          description,
          inputSchema: schema(inputSchema),
          call: async (args, context) => (await call(args, callerOf(context))) as CallToolResult
        }
      ]
    })
  ),
  json_schema_2020_12_tool: {
    description: 'Has a schema of many keywords',
    inputSchema: schema(manyKeywords),
    call: (args) => answer(JSON.stringify(args))
  },
  test_missing_capability: {
    description: 'Cannot do without sampling',
    inputSchema: empty,
    // The SDK refuses to ask who cannot be asked: -32021.
    call: () =>
      inputRequired({
        inputRequests: {
          sampled: inputRequired.createMessage({ messages: [{ role: 'user', content: text('Hello') }], maxTokens: 10 })
        }
      })
  },
  test_streaming_elicitation: {
    description: 'Streams, then asks',
    inputSchema: empty,
    async call(_args, context) {
      await callerOf(context).progress(0, 1)
      return inputRequired({
        inputRequests: {
          confirm: inputRequired.elicit({
            message: 'Sure?',
            requestedSchema: { type: 'object', properties: { ok: { type: 'boolean' } } }
          })
        }
      })
    }
  },
  test_logging_tool: {
    description: 'Logs a line for those who want it',
    inputSchema: empty,
    async call(_args, context) {
      await callerOf(context).log('a line')
      return answer('Logged for those who want it.')
    }
  },
  test_trigger_tool_change: changing('tools'),
  test_trigger_prompt_change: changing('prompts'),
  test_custom_header: {
    description: 'Wants arguments repeated in headers',
    inputSchema: schema({
      type: 'object',
      properties: {
        region: { type: 'string', 'x-mcp-header': 'Region' },
        limit: { type: 'integer', 'x-mcp-header': 'Limit' },
        query: { type: 'string' }
      },
      required: ['region', 'query']
    }),
    call: ({ region }) => answer(`From ${String(region)}.`)
  },
  greet: {
    description: 'Greets',
    inputSchema: schema(oneString('name', 'Whom to greet')),
    call: ({ name }) => answer(`Hello, ${String(name)}!`)
  },
  slow_compute: {
    description: 'Takes its time; as a task where the client knows them',
    inputSchema: schema({ type: 'object', properties: { seconds: { type: 'number' }, label: { type: 'string' } } }),
    call: ({ label }) => answer(`${String(label)} is computed.`)
  },
  // As tasks only (tasks.ts): what is here is never called.
  ...Object.fromEntries(
    ['failing_job', 'protocol_error_job', 'confirm_delete', 'multi_input'].map((name): [string, Entry] => [
      name,
      { description: 'Works as a task only', inputSchema: empty, call: () => answer('not a task') }
    ])
  )
}
