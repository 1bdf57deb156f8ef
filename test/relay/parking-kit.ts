// Doubles of legacy upstreams that ask while they are called, at the seam; and the rounds of their callers.

import { setImmediate } from 'node:timers/promises'
import type { JsonObject, Result } from '../../src/protocol/messages.ts'
import type { Client } from '../../src/protocol/seams.ts'
import { until } from '../kit/until.ts'
import { type Asking, type Double, type ModernSetup } from './modern-kit.ts'
import { tool } from './kit.ts'

export const form = (message = 'who?', more: JsonObject = {}): JsonObject => ({
  mode: 'form',
  message,
  requestedSchema: { type: 'object', properties: {} },
  ...more
})
export const elicit = (client: Client, params: JsonObject = form(), signal?: AbortSignal): Promise<unknown> =>
  client.ask({ method: 'elicitation/create', params }, signal === undefined ? {} : { signal })
export const accepted = { action: 'accept', content: {} }
export const able: Asking = { capabilities: { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} } }
export const old = (answer: NonNullable<Double['answer']>): Double => ({
  era: 'legacy',
  tools: [tool('x')],
  prompts: [{ name: 'x' }],
  resources: [{ uri: 'test://x', name: 'x' }],
  answer
})
export const single = { endpoints: { default: { upstreams: ['one'], prefix: '' } } }
export const params = { name: 'x' }

/** Lets the time pass in which questions are gathered, once somebody has asked. */
export async function called(setup: ModernSetup, work: Promise<Result>): Promise<Result> {
  let over = false
  work
    .finally(() => {
      over = true
    })
    .catch(() => {})
  await until('the end of the round', async () => {
    setup.clock.move(25)
    return over
  })
  return await work
}

export const answersTo = ({ inputRequests }: Result, answer: JsonObject = accepted): JsonObject =>
  Object.fromEntries(Object.keys(inputRequests as JsonObject).map((key) => [key, answer]))
export const next = (
  setup: ModernSetup,
  asked: Result,
  inputResponses: JsonObject = answersTo(asked),
  asking: Asking = able,
  more: JsonObject = params
): Promise<Result> =>
  called(setup, setup.call('tools/call', { ...more, requestState: asked['requestState'], inputResponses }, asking))

/** What an upstream does that is cancelled. */
export const aborted = async (signal: AbortSignal): Promise<void> => {
  if (!signal.aborted)
    await new Promise((resolve) => {
      signal.addEventListener('abort', resolve)
    })
}
/** What was begun has come as far as it can without time or others. */
export const atRest = (): Promise<void> => setImmediate()
