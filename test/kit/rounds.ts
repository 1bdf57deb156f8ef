// A call of 2026-07-28 that takes several rounds: what the client is asked, and its retries with the answers.

import { modernRequest } from './modern-client.ts'
import type { Answer } from './client.ts'
import type { Json } from './mcp-server.ts'

/** All that a client of 2026-07-28 can be asked. */
const allModernCapabilities: Json = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }

export interface Round {
  readonly answer: Answer
  /** What the client is asked, by key; none: it was the last word. */
  readonly inputRequests: Record<string, { readonly method: string; readonly params?: Json }>
  /** `requestState` */
  readonly state: string | undefined
}

export interface Caller {
  readonly url: string
  readonly token: string
  readonly capabilities?: Json
}

/** One request of a call. `back` is what the client comes back with. */
export async function round(
  { url, token, capabilities = allModernCapabilities }: Caller,
  params: Json,
  back: Json = {},
  method = 'tools/call'
): Promise<Round> {
  const answer = await modernRequest(url, method, { ...params, ...back }, { token, capabilities })
  const { resultType, inputRequests, requestState } = (answer.json?.result ?? {}) as {
    resultType?: string
    inputRequests?: Round['inputRequests']
    requestState?: string
  }
  return { answer, inputRequests: resultType === 'input_required' ? (inputRequests ?? {}) : {}, state: requestState }
}

/** What the client comes back with where it answers everything with the same. */
export const answers = ({ inputRequests: asked, state }: Round, answer: unknown): Json => ({
  inputResponses: Object.fromEntries(Object.keys(asked).map((key) => [key, answer])),
  ...(state === undefined ? {} : { requestState: state })
})

export const accepted = (content: Json = {}): Json => ({ action: 'accept', content })
