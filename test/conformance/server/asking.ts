// The tools of the scenarios of 2026-07-28, as a server of 2025-11-25 has them: what those answer with
// `input_required`, these ask in the middle of the call. A state they have none: what they know between two questions
// is in their own variables.

import type { CreateMessageRequest, ElicitRequestFormParams } from '@modelcontextprotocol/sdk/types.js'
import { nothing, oneString } from './schemas.ts'
import type { Caller, Entry } from './tools.ts'

const text = (value: string) => ({ type: 'text' as const, text: value })
const answer = (value: string) => ({ content: [text(value)] })

const oneField = (name: string, type: 'string' | 'boolean' = 'string'): ElicitRequestFormParams['requestedSchema'] => ({
  type: 'object',
  properties: { [name]: type === 'string' ? { type } : { type } },
  required: [name]
})
const question = (words: string, maxTokens: number): CreateMessageRequest['params'] => ({
  messages: [{ role: 'user', content: text(words) }],
  maxTokens
})

async function name(caller: Caller): Promise<string> {
  return String((await caller.elicit('What is your name?', oneField('name'))).content?.['name'])
}

const greeting = (caller: Caller) => caller.sample(question('Generate a greeting', 50))

const asks = (description: string, ask: (caller: Caller) => Promise<string>): Entry => ({
  description,
  inputSchema: nothing,
  call: async (_args, caller) => answer(await ask(caller))
})

const confirms = (description: string): Entry =>
  asks(description, async (caller) => {
    const { action } = await caller.elicit('Please confirm', oneField('ok', 'boolean'))
    return action === 'accept' ? 'state-ok' : 'not confirmed'
  })

export const askingTools: Readonly<Record<string, Entry>> = {
  test_input_required_result_elicitation: asks('Asks for a name', async (caller) => `Hello, ${await name(caller)}!`),
  test_input_required_result_sampling: asks('Asks the model', async (caller) =>
    JSON.stringify((await caller.sample(question('What is the capital of France?', 100))).content)
  ),
  test_input_required_result_list_roots: asks('Asks for roots', async (caller) =>
    (await caller.roots()).roots.map(({ uri }) => uri).join(' ')
  ),
  test_input_required_result_request_state: confirms('Asks, and gives no state'),
  test_input_required_result_tampered_state: confirms('Asks, and knows no state that could be forged'),
  test_input_required_result_multiple_inputs: asks('Asks three things at once', async (caller) => {
    const [called, said, { roots }] = await Promise.all([name(caller), greeting(caller), caller.roots()])
    return `${called}, ${JSON.stringify(said.content)}, ${roots.length} roots`
  }),
  test_input_required_result_multi_round: asks('Asks twice', async (caller) => {
    const called = await caller.elicit('Step 1: What is your name?', oneField('name'))
    const colour = await caller.elicit('Step 2: What is your favorite color?', oneField('color'))
    return `${String(called.content?.['name'])} likes ${String(colour.content?.['color'])}.`
  }),
  test_input_required_result_capabilities: asks('Asks what the client can be asked', async (caller) => {
    await Promise.all([
      ...(caller.can('elicitation') ? [name(caller)] : []),
      ...(caller.can('sampling') ? [greeting(caller)] : []),
      ...(caller.can('roots') ? [caller.roots()] : [])
    ])
    return 'All is answered.'
  }),
  test_missing_capability: asks('Cannot do without sampling', async (caller) =>
    JSON.stringify((await caller.sample(question('Hello', 10))).content)
  ),
  test_streaming_elicitation: asks('Streams, then asks', async (caller) => {
    await caller.progress(0, 1)
    const { action } = await caller.elicit('Sure?', oneField('ok', 'boolean'))
    return action
  }),
  test_logging_tool: asks('Logs a line for those who want it', async (caller) => {
    await caller.log('a line')
    return 'Logged for those who want it.'
  }),
  test_trigger_tool_change: asks('Changes the list of tools', async (caller) => {
    caller.change('tools')
    return 'Changed.'
  }),
  test_trigger_prompt_change: asks('Changes the list of prompts', async (caller) => {
    caller.change('prompts')
    return 'Changed.'
  }),
  greet: {
    description: 'Greets',
    inputSchema: oneString('name', 'Whom to greet'),
    call: ({ name }) => answer(`Hello, ${String(name)}!`)
  },
  test_custom_header: {
    description: 'Has a schema with annotations that are younger than this server',
    inputSchema: {
      type: 'object',
      properties: {
        region: { type: 'string', 'x-mcp-header': 'Region' },
        limit: { type: 'integer', 'x-mcp-header': 'Limit' },
        query: { type: 'string' }
      },
      required: ['region', 'query']
    },
    call: ({ region }) => answer(`From ${String(region)}.`)
  }
}

/** A prompt that asks before it answers. */
export async function askingPrompt(caller: Caller) {
  const { content } = await caller.elicit('What context should the prompt use?', oneField('context'))
  return { messages: [{ role: 'user' as const, content: text(`In the context of ${String(content?.['context'])}`) }] }
}
