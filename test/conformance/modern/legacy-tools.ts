// The tools of the scenarios of 2025-11-25 that this revision expresses otherwise: what the legacy fixture asks in the
// middle of a call, these ask with `input_required`.

import { inputRequired, inputResponse } from '@modelcontextprotocol/server'
import { setTimeout as pause } from 'node:timers/promises'
import { choices, contact, defaults, nothing, oneString } from '../server/schemas.ts'
import { answer, schema, text, type Entry } from './tools.ts'

type Form = Parameters<typeof inputRequired.elicit>[0]['requestedSchema']

/** How long the legacy fixture leaves the stream closed. */
const awayMs = 50

/** A tool that asks one form and says what became of it. */
const asksForm = (
  description: string,
  inputSchema: object,
  requestedSchema: object,
  message: (args: Record<string, unknown>) => string,
  said: (action: string, content: string) => string
): Entry => ({
  description,
  inputSchema: schema(inputSchema),
  call(args, { mcpReq }) {
    const told = inputResponse(mcpReq.inputResponses ?? {}, 'form')
    if (told.kind !== 'elicit')
      return inputRequired({
        inputRequests: {
          form: inputRequired.elicit({ message: message(args), requestedSchema: requestedSchema as Form })
        }
      })
    return answer(said(told.action, JSON.stringify(told.content ?? {})))
  }
})

const completed = (action: string, content: string): string =>
  `Elicitation completed: action=${action}, content=${content}`

export const legacyTools: Readonly<Record<string, Entry>> = {
  test_sampling: {
    description: 'Asks the model of the client',
    inputSchema: schema(oneString('prompt', 'What to ask the model')),
    call({ prompt }, { mcpReq }) {
      const told = inputResponse(mcpReq.inputResponses ?? {}, 'sampled')
      if (told.kind !== 'sampling')
        return inputRequired({
          inputRequests: {
            sampled: inputRequired.createMessage({
              messages: [{ role: 'user', content: text(String(prompt)) }],
              maxTokens: 100
            })
          }
        })
      return answer(`LLM response: ${JSON.stringify(told.result.content)}`)
    }
  },
  test_elicitation: asksForm(
    'Asks the user of the client',
    oneString('message', 'What to show the user'),
    contact,
    ({ message }) => String(message),
    (action, content) => `User response: action: ${action}, content: ${content}`
  ),
  test_elicitation_sep1034_defaults: asksForm(
    'Asks the user, with a default for each type',
    nothing,
    defaults,
    () => 'Please look over these values',
    completed
  ),
  test_elicitation_sep1330_enums: asksForm(
    'Asks the user, with each kind of choice',
    nothing,
    choices,
    () => 'Please choose',
    completed
  ),
  test_reconnection: {
    description: 'Cannot hang up in the middle any more, and takes the time that it would have been away',
    inputSchema: schema(nothing),
    async call() {
      await pause(awayMs)
      return answer('The result, for whoever stayed.')
    }
  }
}
