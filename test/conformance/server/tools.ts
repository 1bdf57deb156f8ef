// The tools of the reference server, under the names and with the behaviour that the suite's scenarios describe.

import { setTimeout as pause } from 'node:timers/promises'
import type {
  CallToolResult,
  CreateMessageRequest,
  CreateMessageResult,
  ElicitRequestFormParams,
  ElicitResult,
  ListRootsResult,
  Tool
} from '@modelcontextprotocol/sdk/types.js'
import { png, wav } from './samples.ts'
import { choices, contact, defaults, manyKeywords, nothing, oneString } from './schemas.ts'
import type { Changing } from './shared.ts'

/** Whoever called, as a tool sees them. Everything rides the stream of the call. */
export interface Caller {
  log(data: string): Promise<void>
  /** Without effect where the call named no token. */
  progress(progress: number, total: number): Promise<void>
  /** Did the client declare it? */
  can(capability: 'sampling' | 'elicitation' | 'roots'): boolean
  /** All three throw where the client did not declare the capability. */
  sample(params: CreateMessageRequest['params']): Promise<CreateMessageResult>
  elicit(message: string, requestedSchema: ElicitRequestFormParams['requestedSchema']): Promise<ElicitResult>
  roots(): Promise<ListRootsResult>
  /** Changes a list of the server. */
  change(kind: Changing): void
  /**
   * Ends the stream of the call and leaves the call running (SEP-1699); without effect where the transport has no such
   * stream.
   */
  hangUp(): void
}

export interface Entry {
  readonly description: string
  readonly inputSchema: Tool['inputSchema']
  call(args: Record<string, unknown>, caller: Caller): CallToolResult | Promise<CallToolResult>
}

/** What the scenarios ask for between two messages of one call. */
const betweenMs = 50

const text = (value: string) => ({ type: 'text' as const, text: value })
const image = { type: 'image' as const, data: png, mimeType: 'image/png' }
const answer = (...content: CallToolResult['content']): CallToolResult => ({ content })

async function asked(
  caller: Caller,
  message: string,
  schema: ElicitRequestFormParams['requestedSchema']
): Promise<CallToolResult> {
  const { action, content } = await caller.elicit(message, schema)
  return answer(text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`))
}

export const tools: Readonly<Record<string, Entry>> = {
  test_simple_text: {
    description: 'Answers with one text',
    inputSchema: nothing,
    call: () => answer(text('This is a simple text response for testing.'))
  },
  test_image_content: { description: 'Answers with an image', inputSchema: nothing, call: () => answer(image) },
  test_audio_content: {
    description: 'Answers with a sound',
    inputSchema: nothing,
    call: () => answer({ type: 'audio', data: wav, mimeType: 'audio/wav' })
  },
  test_embedded_resource: {
    description: 'Answers with a resource inside the result',
    inputSchema: nothing,
    call: () =>
      answer({
        type: 'resource',
        resource: {
          uri: 'test://embedded-resource',
          mimeType: 'text/plain',
          text: 'This is an embedded resource content.'
        }
      })
  },
  test_multiple_content_types: {
    description: 'Answers with a text, an image and a resource',
    inputSchema: nothing,
    call: () =>
      answer(text('Multiple content types test:'), image, {
        type: 'resource',
        resource: {
          uri: 'test://mixed-content-resource',
          mimeType: 'application/json',
          text: JSON.stringify({ test: 'data', value: 123 })
        }
      })
  },
  test_tool_with_logging: {
    description: 'Logs three lines while it runs',
    inputSchema: nothing,
    async call(_args, caller) {
      await caller.log('Tool execution started')
      await pause(betweenMs)
      await caller.log('Tool processing data')
      await pause(betweenMs)
      await caller.log('Tool execution completed')
      return answer(text('Three lines were logged.'))
    }
  },
  test_tool_with_progress: {
    description: 'Reports 0, 50 and 100 of 100 while it runs',
    inputSchema: nothing,
    async call(_args, caller) {
      await caller.progress(0, 100)
      await pause(betweenMs)
      await caller.progress(50, 100)
      await pause(betweenMs)
      await caller.progress(100, 100)
      return answer(text('All of it is done.'))
    }
  },
  test_error_handling: {
    description: 'Fails, always',
    inputSchema: nothing,
    call: () => {
      throw new Error('This tool intentionally returns an error for testing')
    }
  },
  test_sampling: {
    description: 'Asks the model of the client',
    inputSchema: oneString('prompt', 'What to ask the model'),
    async call({ prompt }, caller) {
      const { content } = await caller.sample({
        messages: [{ role: 'user', content: text(String(prompt)) }],
        maxTokens: 100
      })
      return answer(text(`LLM response: ${content.type === 'text' ? content.text : content.type}`))
    }
  },
  test_elicitation: {
    description: 'Asks the user of the client',
    inputSchema: oneString('message', 'What to show the user'),
    async call({ message }, caller) {
      const { action, content } = await caller.elicit(String(message), contact)
      return answer(text(`User response: action: ${action}, content: ${JSON.stringify(content ?? {})}`))
    }
  },
  test_elicitation_sep1034_defaults: {
    description: 'Asks the user, with a default for each type',
    inputSchema: nothing,
    call: (_args, caller) => asked(caller, 'Please look over these values', defaults)
  },
  test_elicitation_sep1330_enums: {
    description: 'Asks the user, with each kind of choice',
    inputSchema: nothing,
    call: (_args, caller) => asked(caller, 'Please choose', choices)
  },
  test_reconnection: {
    description: 'Hangs up in the middle, and leaves its result to whoever comes back for it',
    inputSchema: nothing,
    async call(_args, caller) {
      caller.hangUp()
      await pause(betweenMs)
      return answer(text('The result, for whoever came back.'))
    }
  },
  json_schema_2020_12_tool: {
    description: 'Has a schema of many keywords',
    inputSchema: manyKeywords,
    call: (args) => answer(text(JSON.stringify(args)))
  }
}
