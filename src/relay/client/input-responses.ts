// Responses of a client of 2026-07-28 to input requests, and what a legacy server is answered where there is none.

import { isObject, type JsonObject, rpcCodes, RpcError, type ServerRequest } from '../../protocol/messages.ts'

const actions: ReadonlySet<unknown> = new Set(['accept', 'decline', 'cancel'])

/** Has it the form of a result of the method? All else about it is for the upstream to judge. */
export function isInputResponse(method: string, response: unknown): response is JsonObject {
  if (!isObject(response)) return false
  const { action, content, role, model, roots } = response
  switch (method) {
    case 'elicitation/create':
      return actions.has(action) && (content === undefined || isObject(content))
    case 'sampling/createMessage':
      return typeof role === 'string' && typeof model === 'string' && (isObject(content) || Array.isArray(content))
    default:
      return Array.isArray(roots) && roots.every((root) => isObject(root) && typeof root['uri'] === 'string')
  }
}

/** What a server is answered where no response comes. @throws RpcError where its request has no result for that */
export function declinedResponse({ method }: ServerRequest): JsonObject {
  if (method === 'elicitation/create') return { action: 'cancel' }
  // The code of 2025-11-25 client/sampling for a person who said no.
  throw new RpcError({ code: -1, message: 'The client did not answer.' })
}

/**
 * For server requests during other methods than the three that may come back with input requests (basic/patterns/mrtr).
 */
export async function refuseOutsideInputMethods({ method }: ServerRequest): Promise<JsonObject> {
  if (method === 'elicitation/create') return { action: 'cancel' }
  throw new RpcError({
    code: rpcCodes.methodNotFound,
    message: 'A client of 2026-07-28 can only be asked during tools/call, prompts/get and resources/read.'
  })
}
