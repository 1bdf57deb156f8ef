// What the two reference servers ask in their own era, with clients of the SDKs: the tools that the scenarios of the
// other era name are not called by the suite of their own, so that they are proved here before they are crossed.

import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  PromptListChangedNotificationSchema,
  ToolListChangedNotificationSchema,
  type CallToolResult
} from '@modelcontextprotocol/sdk/types.js'
import t from 'tap'
import { until } from '../kit/until.ts'
import { startReference } from './reference.ts'

const content = {
  name: 'Ada',
  color: 'blue',
  ok: true,
  context: 'tests',
  username: 'ada',
  email: 'ada@example.com',
  confirm: true
}
const said = { model: 'none', role: 'assistant' as const, content: { type: 'text' as const, text: 'Paris' } }
const roots = [{ uri: 'file:///work' }]
const textOf = (result: unknown): string =>
  (result as CallToolResult).content.map((block) => (block.type === 'text' ? block.text : block.type)).join()

t.test(
  'the server of 2025-11-25 asks in the middle of the call what that of 2026-07-28 asks with input_required',
  async (t) => {
    const client = new Client(
      { name: 'direct', version: '1' },
      { capabilities: { elicitation: {}, sampling: {}, roots: {} } }
    )
    const asked: string[] = []
    client.setRequestHandler(ElicitRequestSchema, ({ method }) => {
      asked.push(method)
      return { action: 'accept' as const, content }
    })
    client.setRequestHandler(CreateMessageRequestSchema, ({ method }) => {
      asked.push(method)
      return said
    })
    client.setRequestHandler(ListRootsRequestSchema, ({ method }) => {
      asked.push(method)
      return { roots }
    })
    const changed: string[] = []
    client.setNotificationHandler(ToolListChangedNotificationSchema, ({ method }) => {
      changed.push(method)
    })
    client.setNotificationHandler(PromptListChangedNotificationSchema, ({ method }) => {
      changed.push(method)
    })
    await client.connect(new StreamableHTTPClientTransport(new URL(await startReference(t, 'http'))) as Transport)
    t.teardown(() => client.close())
    const expected: Record<string, [said: string, ...asked: string[]]> = {
      elicitation: ['Hello, Ada!', 'elicitation/create'],
      sampling: [JSON.stringify(said.content), 'sampling/createMessage'],
      list_roots: ['file:///work', 'roots/list'],
      request_state: ['state-ok', 'elicitation/create'],
      tampered_state: ['state-ok', 'elicitation/create'],
      multiple_inputs: [
        `Ada, ${JSON.stringify(said.content)}, 1 roots`,
        'elicitation/create',
        'sampling/createMessage',
        'roots/list'
      ],
      multi_round: ['Ada likes blue.', 'elicitation/create', 'elicitation/create'],
      capabilities: ['All is answered.', 'elicitation/create', 'sampling/createMessage', 'roots/list']
    }
    for (const [tool, [answer, ...questions]] of Object.entries(expected)) {
      asked.length = 0
      t.equal(textOf(await client.callTool({ name: `test_input_required_result_${tool}` })), answer, tool)
      t.same(asked, questions, tool)
    }
    t.match(await client.getPrompt({ name: 'test_input_required_result_prompt' }), {
      messages: [{ content: { text: 'In the context of tests' } }]
    })
    t.equal(textOf(await client.callTool({ name: 'test_streaming_elicitation' })), 'accept')
    await client.callTool({ name: 'test_trigger_tool_change' })
    await client.callTool({ name: 'test_trigger_prompt_change' })
    await until('both changes are told', () => changed.length === 2)
    t.match((await client.listTools()).tools.at(-1), { description: 'The tools were changed 1 times' })
    t.match((await client.listPrompts()).prompts.at(-1), { description: 'The prompts were changed 1 times' })
  }
)

t.test('its jobs are tasks of 2025-11-25', async (t) => {
  const client = new Client({ name: 'direct', version: '1' }, { capabilities: { elicitation: {} } })
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept' as const, content }))
  await client.connect(new StreamableHTTPClientTransport(new URL(await startReference(t, 'http'))) as Transport)
  t.teardown(() => client.close())
  await client.listTools() // The SDK learns from it which tools are tasks.
  async function ended(name: string, args: Record<string, unknown> = {}) {
    const statuses: string[] = []
    for await (const step of client.experimental.tasks.callToolStream({ name, arguments: args })) {
      if (step.type === 'taskStatus') statuses.push(step.task.status)
      if (step.type === 'result') return { statuses, said: textOf(step.result), isError: step.result.isError === true }
      if (step.type === 'error') return { statuses, error: step.error.message }
    }
    throw new Error('no end')
  }
  t.match(await ended('slow_compute', { seconds: 0, label: 'It' }), { said: 'It is computed.' })
  t.match(await ended('failing_job'), { error: /failed/ }, 'the SDK makes an error of a task that failed')
  t.match(await ended('protocol_error_job'), { error: /failed/ })
  t.match(await ended('confirm_delete', { filename: 'x' }), {
    statuses: ['input_required'],
    said: JSON.stringify({ action: 'accept', content })
  })
  t.match(await ended('multi_input'), {
    statuses: ['input_required'],
    said: [content, content].map((content) => JSON.stringify({ action: 'accept', content })).join(' ')
  })
})

t.test(
  'the server of 2026-07-28 asks with input_required what that of 2025-11-25 asks in the middle of the call',
  async (t) => {
    const client = new ModernClient(
      { name: 'direct', version: '1' },
      { capabilities: { elicitation: { form: {} }, sampling: {} }, versionNegotiation: { mode: { pin: '2026-07-28' } } }
    )
    const schemas: unknown[] = []
    client.setRequestHandler('elicitation/create', ({ params }) => {
      schemas.push((params as { requestedSchema?: unknown }).requestedSchema)
      return { action: 'accept', content: { name: 'Ada' } }
    })
    client.setRequestHandler('sampling/createMessage', () => said)
    await client.connect(new ModernTransport(new URL(await startReference(t, 'http', '2026-07-28'))))
    t.teardown(() => client.close())
    t.equal(
      textOf(await client.callTool({ name: 'test_sampling', arguments: { prompt: 'Where?' } })),
      `LLM response: ${JSON.stringify(said.content)}`
    )
    t.equal(
      textOf(await client.callTool({ name: 'test_elicitation', arguments: { message: 'Who?' } })),
      'User response: action: accept, content: {"name":"Ada"}'
    )
    t.equal(
      textOf(await client.callTool({ name: 'test_elicitation_sep1034_defaults' })),
      'Elicitation completed: action=accept, content={"name":"Ada"}'
    )
    t.equal(
      textOf(await client.callTool({ name: 'test_elicitation_sep1330_enums' })),
      'Elicitation completed: action=accept, content={"name":"Ada"}'
    )
    t.match(schemas, [
      { required: ['username', 'email'] },
      { properties: { age: { default: 30 } } },
      { properties: { legacyEnum: { enumNames: ['Option One', 'Option Two', 'Option Three'] } } }
    ])
    t.equal(textOf(await client.callTool({ name: 'test_reconnection' })), 'The result, for whoever stayed.')
  }
)
