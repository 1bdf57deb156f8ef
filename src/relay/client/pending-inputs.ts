// Server requests of a legacy upstream that wait for the responses of a client of 2026-07-28. The client gets them as
// input requests, and answers with its next request (basic/patterns/mrtr) or with tasks/update.

import {
  GatewayError,
  isObject,
  type JsonObject,
  rpcCodes,
  RpcError,
  type RpcErrorObject,
  type ServerRequest
} from '../../protocol/messages.ts'
import type { Clock, Timer } from '../../time/clock.ts'

interface PendingInput {
  readonly request: ServerRequest
  readonly resolve: (response: unknown) => void
  readonly reject: (error: unknown) => void
  isShown: boolean
}

export type PendingInputs = ReturnType<typeof createPendingInputs>

export function createPendingInputs() {
  const pending = new Map<string, PendingInput>()
  const shown = (): Array<[string, PendingInput]> => [...pending].filter(([, { isShown }]) => isShown)
  return {
    /** Not a getter: V8 would make a hidden class for each call, which is old from the first and holds the call. */
    size: (): number => pending.size,
    /**
     * Resolves with the client's response.
     * @param key of the input request, used once
     * @param signal aborted when the server withdraws its request
     * @param onRemoved called once, at once when the request is answered or refused
     * @throws GatewayError cancelled; what `show`, `decline` and `cancel` reject with
     */
    add(
      key: string,
      request: ServerRequest,
      signal: AbortSignal | undefined,
      onRemoved?: () => void
    ): Promise<unknown> {
      const { promise, resolve, reject } = Promise.withResolvers<unknown>()
      const removed =
        <T>(settle: (value: T) => void) =>
        (value: T): void => {
          if (pending.delete(key)) onRemoved?.()
          signal?.removeEventListener('abort', withdraw)
          settle(value)
        }
      const input: PendingInput = { request, isShown: false, resolve: removed(resolve), reject: removed(reject) }
      const withdraw = (): void => input.reject(new GatewayError('cancelled', 'The server withdrew its request.'))
      pending.set(key, input)
      signal?.addEventListener('abort', withdraw, { once: true })
      if (signal?.aborted === true) withdraw()
      return promise
    },
    /**
     * @param shape throws where this client cannot be asked: the server gets that error, and the client is not shown
     * the request
     * @returns `inputRequests`
     */
    show(shape: (request: ServerRequest) => JsonObject): JsonObject {
      const inputRequests: JsonObject = {}
      for (const [key, input] of [...pending]) {
        try {
          inputRequests[key] = shape(input.request)
          input.isShown = true
        } catch (error) {
          input.reject(error)
        }
      }
      return inputRequests
    },
    /** @param advice what the client can do about it; @throws GatewayError invalid_params: of the wrong shape */
    check(responses: JsonObject, advice = ''): void {
      for (const [key, { request }] of shown()) {
        if (!Object.hasOwn(responses, key) || isInputResponse(request.method, responses[key])) continue
        const message = `inputResponses[${JSON.stringify(key)}] is no result of ${request.method}.${advice}`
        throw new GatewayError('invalid_params', message)
      }
    },
    /** Responses to what was never shown are ignored (SEP-2663). @returns whether all that was shown is answered */
    answer(responses: JsonObject): boolean {
      for (const [key, { request, resolve, reject }] of shown()) {
        if (!Object.hasOwn(responses, key)) continue
        const response = responses[key]
        if (isRefusal(request.method, response)) reject(new RpcError(refusedByUser))
        else resolve(response)
      }
      return shown().length === 0
    },
    /** Nobody will answer. */
    decline(): void {
      for (const { request, resolve, reject } of [...pending.values()]) {
        try {
          resolve(declinedResponse(request))
        } catch (error) {
          reject(error)
        }
      }
    },
    cancel(error: Error): void {
      for (const { reject } of [...pending.values()]) reject(error)
    }
  }
}

/**
 * How long a round waits for further input requests, after the last one and in all, because a server sends several one
 * by one. A person who is asked does not notice the delay.
 */
const gatherMs = 100
const maxGatherMs = 400

/**
 * Gathers the input requests of one round.
 * @param endRound called when no request was added for `gatherMs`, or `maxGatherMs` after the first one
 */
export function createGathering(clock: Pick<Clock, 'now' | 'timer'>, endRound: () => void) {
  let timer: Pick<Timer, 'close'> | undefined
  let endsAt = 0

  function end(): void {
    timer = undefined
    endRound()
  }

  return {
    /** Must be called when an input request was added. */
    added(): void {
      const now = clock.now()
      if (timer === undefined) endsAt = now + maxGatherMs
      timer?.close()
      timer = clock.timer(Math.min(gatherMs, Math.max(0, endsAt - now)), end)
    },
    close(): void {
      timer?.close()
    }
  }
}

const actions: ReadonlySet<unknown> = new Set(['accept', 'decline', 'cancel'])

/** Has it the form of a result of the method? All else about it is for the upstream to judge. */
function isInputResponse(method: string, response: unknown): response is JsonObject {
  if (!isObject(response)) return false
  if (isRefusal(method, response)) return true
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

/**
 * 2026-07-28 has no form for "no" but that of elicitations, and a person may refuse sampling and roots as well: so the
 * same form is taken for these.
 */
const isRefusal = (method: string, response: unknown): boolean =>
  method !== 'elicitation/create' &&
  isObject(response) &&
  (response['action'] === 'decline' || response['action'] === 'cancel')

/** 2025-11-25 client/sampling "Error Handling": a person who said no. Nothing else has a code for that. */
const refusedByUser = { code: -1, message: 'The user refused the request.' }

/**
 * Makes the answer to a server request to which no response comes.
 * @throws RpcError where the request has no result for that
 */
export const declinedResponse = (request: ServerRequest): JsonObject =>
  // The code of 2025-11-25 client/sampling for a person who said no.
  declineWith(request, { code: -1, message: 'The client did not answer.' })

/** During other methods than the three that may come back with input requests (basic/patterns/mrtr). */
export const refuseOutsideInputMethods = async (request: ServerRequest): Promise<JsonObject> =>
  declineWith(request, {
    code: rpcCodes.methodNotFound,
    message: 'A client of 2026-07-28 can only be asked during tools/call, prompts/get and resources/read.'
  })

function declineWith({ method }: ServerRequest, error: RpcErrorObject): JsonObject {
  if (method === 'elicitation/create') return { action: 'cancel' }
  throw new RpcError(error)
}
