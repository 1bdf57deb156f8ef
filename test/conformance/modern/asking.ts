// The tools that ask for input before they answer (SEP-2322), as the scenarios input-required-result-* describe them.

import {
  acceptedContent,
  inputRequired,
  inputResponse,
  type InputRequests,
  type InputRequiredResult,
  type ServerContext
} from '@modelcontextprotocol/server'
import type { Shared } from './everything.ts'
import { nothing } from '../server/schemas.ts'
import { answer, schema, text, type Entry } from './tools.ts'

type Question = InputRequests[string]

/** Asks the user for one value. */
export const form = (message: string, name: string, type: 'string' | 'boolean' = 'string'): Question =>
  inputRequired.elicit({
    message,
    requestedSchema: {
      type: 'object',
      properties: { [name]: type === 'string' ? { type } : { type } },
      required: [name]
    }
  })

const sampling = (question: string, maxTokens: number): Question =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: text(question) }], maxTokens })
const whatName = form('What is your name?', 'name')

type Asked = (
  responses: Record<string, unknown>,
  context: ServerContext,
  shared: Shared
) => ReturnType<Entry['call']> | undefined

/** A tool that asks as long as `answered` finds something missing. */
const asks = (
  description: string,
  questions: (shared: Shared, context: ServerContext) => InputRequiredResult | Promise<InputRequiredResult>,
  answered: Asked
): Entry => ({
  description,
  inputSchema: schema(nothing),
  call: async (_args, context, shared) =>
    (await answered(context.mcpReq.inputResponses ?? {}, context, shared)) ?? (await questions(shared, context))
})

const withState = async (shared: Shared, inputRequests: InputRequests, state: string): Promise<InputRequiredResult> =>
  inputRequired({ inputRequests, requestState: await shared.states.mint(state) })

const accepted = (responses: Record<string, unknown>, ...keys: string[]): boolean =>
  keys.every((key) => acceptedContent(responses, key) !== undefined)

export const askingTools: Readonly<Record<string, Entry>> = {
  test_input_required_result_elicitation: asks(
    'Asks for a name',
    () => inputRequired({ inputRequests: { user_name: whatName } }),
    (responses) => {
      const told = acceptedContent(responses, 'user_name')
      return told === undefined ? undefined : answer(`Hello, ${String(told['name'])}!`)
    }
  ),
  test_input_required_result_sampling: asks(
    'Asks the model',
    () => inputRequired({ inputRequests: { capital_question: sampling('What is the capital of France?', 100) } }),
    (responses) => {
      const told = inputResponse(responses, 'capital_question')
      return told.kind === 'sampling' ? answer(JSON.stringify(told.result.content)) : undefined
    }
  ),
  test_input_required_result_list_roots: asks(
    'Asks for roots',
    () => inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } }),
    (responses) => {
      const told = inputResponse(responses, 'client_roots')
      return told.kind === 'roots' ? answer(told.roots.map(({ uri }) => uri).join(' ')) : undefined
    }
  ),
  test_input_required_result_request_state: asks(
    'Gives a state',
    (shared) => withState(shared, { confirm: form('Please confirm', 'ok', 'boolean') }, 'confirm'),
    (responses, { mcpReq }) =>
      accepted(responses, 'confirm') && mcpReq.requestState() === 'confirm' ? answer('state-ok') : undefined
  ),
  test_input_required_result_multiple_inputs: asks(
    'Asks three things at once',
    (shared) =>
      withState(
        shared,
        {
          user_name: whatName,
          greeting: sampling('Generate a greeting', 50),
          client_roots: inputRequired.listRoots()
        },
        'all'
      ),
    (responses) => {
      const complete =
        accepted(responses, 'user_name') &&
        inputResponse(responses, 'greeting').kind === 'sampling' &&
        inputResponse(responses, 'client_roots').kind === 'roots'
      return complete ? answer('All three are answered.') : undefined
    }
  ),
  test_input_required_result_multi_round: asks(
    'Asks twice',
    (shared) => withState(shared, { step1: form('Step 1: What is your name?', 'name') }, 'step1'),
    (responses, { mcpReq }, shared) => {
      if (mcpReq.requestState() === 'step2' && accepted(responses, 'step2')) return answer('Both steps are done.')
      if (mcpReq.requestState() === 'step1' && accepted(responses, 'step1'))
        return withState(shared, { step2: form('Step 2: What is your favorite color?', 'color') }, 'step2')
      return undefined
    }
  ),
  test_input_required_result_tampered_state: asks(
    'Takes back its own state only',
    (shared) => withState(shared, { confirm: form('Please confirm', 'ok', 'boolean') }, 'sealed'),
    (responses, { mcpReq }) =>
      accepted(responses, 'confirm') && mcpReq.requestState() === 'sealed' ? answer('The state is mine.') : undefined
  ),
  test_input_required_result_capabilities: asks(
    'Asks what the client can be asked',
    (_shared, { mcpReq }) => {
      const can =
        (mcpReq.envelope as Record<string, Record<string, unknown> | undefined> | undefined)?.[
          'io.modelcontextprotocol/clientCapabilities'
        ] ?? {}
      return inputRequired({
        inputRequests: {
          ...(can['elicitation'] === undefined ? {} : { user_name: whatName }),
          ...(can['sampling'] === undefined ? {} : { greeting: sampling('Generate a greeting', 50) }),
          ...(can['roots'] === undefined ? {} : { client_roots: inputRequired.listRoots() })
        },
        requestState: 'nothing depends on this'
      })
    },
    () => undefined
  ),
  // Its second round becomes a task (tasks.ts) where the client knows tasks.
  test_tool_with_task: asks(
    'Asks, then works as a task',
    (shared) => withState(shared, { user_name: whatName }, 'task'),
    () => undefined
  )
}
