// Server requests of a legacy upstream that wait for the responses of a client of 2026-07-28. The client gets them as
// input requests, and sends the responses with its next request (basic/patterns/mrtr) or with tasks/update.

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
  /** Whether the client has been sent the request. */
  isShown: boolean
}

export type PendingInputs = ReturnType<typeof createPendingInputs>

export function createPendingInputs() {
  const pending = new Map<string, PendingInput>()
  const shown = (): Array<[string, PendingInput]> => [...pending].filter(([, { isShown }]) => isShown)
  return {
    /**
     * Returns the number of pending requests. A method and not a getter: for a getter V8 would make a hidden class for
     * each call, which only a full garbage collection frees, and which keeps the call in memory until then.
     */
    size: (): number => pending.size,
    /**
     * Adds a server request. Resolves with the client's response.
     * @param key the key of the input request; each key is used once
     * @param signal aborted when the server withdraws its request
     * @param onRemoved called once, as soon as the request is answered or refused
     * @throws GatewayError cancelled if the server withdraws the request; the errors of `show`, `decline` and `cancel`
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
     * Marks the pending requests as sent to the client.
     * @param shape makes the input request of a server request. If it throws, because this client cannot be asked, the
     * server gets the error and the client does not get the request
     * @returns the `inputRequests` of the result for the client, by key
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
    /**
     * Checks the shape of the responses to all requests that the client has been sent. Keys without a request pass.
     * @param advice a sentence that ends the error message and says what the client can do
     * @throws GatewayError invalid_params if a response has the wrong shape
     */
    check(responses: JsonObject, advice = ''): void {
      for (const [key, { request }] of shown()) {
        if (!Object.hasOwn(responses, key) || isInputResponse(request.method, responses[key])) continue
        const message = `inputResponses[${JSON.stringify(key)}] is no result of ${request.method}.${advice}`
        throw new GatewayError('invalid_params', message)
      }
    },
    /**
     * Settles the requests that have a response. Responses to requests that the client was never sent are ignored
     * (SEP-2663).
     * @returns whether all requests that the client was sent are answered
     */
    answer(responses: JsonObject): boolean {
      for (const [key, { request, resolve, reject }] of shown()) {
        if (!Object.hasOwn(responses, key)) continue
        const response = responses[key]
        if (isRefusal(request.method, response)) reject(new RpcError(refusedByUser))
        else resolve(response)
      }
      return shown().length === 0
    },
    /** Answers all pending requests with `declinedResponse`, because the client will not answer them. */
    decline(): void {
      for (const { request, resolve, reject } of [...pending.values()]) {
        try {
          resolve(declinedResponse(request))
        } catch (error) {
          reject(error)
        }
      }
    },
    /** Rejects all pending requests. */
    cancel(error: Error): void {
      for (const { reject } of [...pending.values()]) reject(error)
    }
  }
}

/**
 * The time, in milliseconds, that a round waits for further input requests: after the newest one, and after the first
 * one. A server sends several requests one by one. A person who is asked does not notice the delay.
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
      timer = undefined
    }
  }
}

const actions: ReadonlySet<unknown> = new Set(['accept', 'decline', 'cancel'])

/** Returns whether a response has the shape of a result of the method. The upstream checks everything else in it. */
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
 * Returns whether a person refused a sampling or roots request. 2026-07-28 defines a refusal for elicitations only
 * (`action: decline` or `cancel`); the gateway accepts the same member in responses to the other two methods.
 */
const isRefusal = (method: string, response: unknown): boolean =>
  method !== 'elicitation/create' &&
  isObject(response) &&
  (response['action'] === 'decline' || response['action'] === 'cancel')

/** The error of 2025-11-25 client/sampling "Error Handling" for a person's refusal; roots have no code of their own. */
const refusedByUser = { code: -1, message: 'The user refused the request.' }

/**
 * Returns the answer to a server request that the client does not answer: `action: cancel` for an elicitation.
 * @throws RpcError for sampling and roots, which have no result that says so
 */
export const declinedResponse = (request: ServerRequest): JsonObject =>
  // The code of 2025-11-25 client/sampling "Error Handling" for a person's refusal.
  declineWith(request, { code: -1, message: 'The client did not answer.' })

/**
 * Refuses a server request that comes during another method than the three whose result may ask for input
 * (2026-07-28 basic/patterns/mrtr).
 * @throws RpcError method not found, for sampling and roots
 */
export const refuseOutsideInputMethods = async (request: ServerRequest): Promise<JsonObject> =>
  declineWith(request, {
    code: rpcCodes.methodNotFound,
    message: 'A client of 2026-07-28 can only be asked during tools/call, prompts/get and resources/read.'
  })

function declineWith({ method }: ServerRequest, error: RpcErrorObject): JsonObject {
  if (method === 'elicitation/create') return { action: 'cancel' }
  throw new RpcError(error)
}
