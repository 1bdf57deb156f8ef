// `requestState` on its way through (2026-07-28 basic/patterns/mrtr): what it stands for goes out sealed to the caller
// and to this very request. The client holds it, so no process has to.

import { callerBindingOf, definitionOf, quotaKeyOf, type EndpointContext, type ModernCall } from '../call/call.ts'
import { canonicalJsonOf, isLongText } from '../../protocol/json-text.ts'
import { longTextSteps } from '../../protocol/json-writer.ts'
import {
  GatewayError,
  isObject,
  type JsonObject,
  type Result,
  rpcCodes,
  RpcError,
  type UpstreamName
} from '../../protocol/messages.ts'
import type { Sealer } from '../../store/seal.ts'
import { lossError } from '../../session/parked-calls.ts'
import { conversationOf, withoutInputResponses } from '../client/modern-client.ts'
import { hasCapability } from '../../protocol/methods.ts'
import { shapeInputRequests } from '../client/input-requests.ts'
import type { TaskProcess } from '../tasks/caller-tasks.ts'
import { runSteps, type Steps } from '../../time/turns.ts'
import { createHash, hash } from 'node:crypto'

/** What a state stands for. */
export interface RequestState {
  /** What a modern upstream gave, which gets it back byte for byte. */
  readonly upstreamState?: string
  /** Of a child process, which may seal what it gives with a key of its own: where it runs. */
  readonly process?: TaskProcess
  /** Keys of the pages that an older upstream wants visited before it is asked again. */
  readonly pages?: readonly string[]
  /** The call of an older upstream that waits for the answers, and the process that holds it. */
  readonly parked?: { readonly node: string; readonly park: string; readonly round: number }
}

/** A person may take long to answer; a state that is replayed later than this is refused. */
const lifetimeMs = 60 * 60 * 1000

const purpose = 'request-state'

interface Sealed {
  readonly v: number
  /** Epoch ms. */
  readonly exp: number
  /** Which one gave it: another server under the same name did not. */
  readonly upstream: UpstreamName
  readonly hash: string
  readonly state: RequestState
}

/** Does the endpoint still lead to this very upstream? */
export const stands = ({ tenant, endpoint }: EndpointContext, upstream: UpstreamName, hash: string): boolean =>
  endpoint.members.some((member) => member.upstream === upstream) && tenant.upstreams.get(upstream)?.hash === hash

export type RequestStates = ReturnType<typeof createRequestStates>

/** @param wall the time of day, which all processes agree on */
export function createRequestStates(sealer: Pick<Sealer, 'seal' | 'open'>, wall: { now(): number }) {
  /** Of long params: one request may open a state and be given another one. */
  const digests = new WeakMap<object, string>()

  const binding = (call: ModernCall): string[] => [
    ...callerBindingOf(call),
    conversationOf(call) ?? '',
    call.request.method,
    digests.get(call.request.params ?? {}) ?? hash('sha256', canonicalJsonOf(boundParams(call)), 'base64url')
  ]

  function read(call: ModernCall, sealed: unknown): Sealed | undefined {
    const opened = typeof sealed === 'string' ? sealer.open(purpose, binding(call), sealed) : undefined
    const read = opened === undefined ? undefined : (JSON.parse(opened) as Sealed)
    return read?.v === 3 ? read : undefined
  }

  return {
    /** Does in steps what `seal` and `open` would do with a long request in one go. */
    async prepare(call: ModernCall): Promise<void> {
      const { params } = call.request
      if (params === undefined || digests.has(params)) return
      const bound = boundParams(call)
      if (!isLongText(bound)) return
      const owner = { tenant: call.tenant.id, caller: quotaKeyOf(call.principal) }
      digests.set(params, await runSteps(digestSteps(bound), owner))
    },
    /**
     * @param call the request as the client sent it; what it was sealed for is its method and all of its params but the
     * answers
     * @param until epoch ms
     */
    seal: (call: ModernCall, upstream: UpstreamName, state: RequestState, until = wall.now() + lifetimeMs): string =>
      sealer.seal(
        purpose,
        binding(call),
        JSON.stringify({ v: 3, exp: until, upstream, hash: definitionOf(call, upstream).hash, state } satisfies Sealed)
      ),
    /** @throws GatewayError invalid_state: the same for what is forged, too old or not for this caller and request */
    open(call: ModernCall, upstream: UpstreamName, sealed: unknown): RequestState {
      const given = read(call, sealed)
      if (
        given === undefined ||
        given.exp < wall.now() ||
        given.upstream !== upstream ||
        !stands(call, upstream, given.hash)
      )
        throw refused(given)
      return given.state
    },
    /**
     * For a request whose name leads nowhere: was it there before, and waited for input?
     * @returns invalid_state (data.outcome: unknown)
     */
    lost(call: ModernCall): GatewayError | undefined {
      const given = read(call, call.request.params?.['requestState'])
      return given?.state.parked === undefined ? undefined : refused(given)
    }
  }

  function refused(given: Sealed | undefined): GatewayError {
    // Its upstream has had the call: to send it again might do it twice.
    if (given?.state.parked !== undefined) return lossError(given.exp < wall.now() ? 'late' : 'replaced')
    return new GatewayError(
      'invalid_state',
      'The requestState is not one that was given to this caller for this request, or it is too old. ' +
        'Send the request again without it.'
    )
  }
}

function boundParams({ request: { params = {} } }: ModernCall): JsonObject {
  const { inputResponses: _answers, requestState: _state, _meta, ...bound } = params
  return bound
}

/** Of the text that `canonicalJsonOf` gives. */
function* digestSteps(value: JsonObject): Steps<string> {
  const hashing = createHash('sha256')
  for (const part of (yield* longTextSteps(value, undefined, true)).parts) {
    hashing.update(part)
    yield
  }
  return hashing.digest('base64url')
}

// Error -32042 of 2025-11-25 (client/elicitation "URL Elicitation Required Error") becomes input requests: the client
// is asked to visit the pages, and the request is sent once more when it did. The state may come twice, for it opens
// nothing that the same request without it would not: the server alone knows whether the page was visited.

/** More pages than anybody visits for one call. */
const maxPages = 16

/**
 * The request as its upstream is to get it: without responses that were for the gateway.
 * @returns `declined`, the result of a call whose client did not visit the page
 * @throws GatewayError invalid_params, invalid_state, declined
 */
export function openUrlRetry(
  call: ModernCall,
  states: RequestStates,
  upstream: UpstreamName
): { readonly call: ModernCall } | { readonly declined: Result } {
  const { inputResponses, requestState } = call.request.params ?? {}
  const keys = requestState === undefined ? undefined : states.open(call, upstream, requestState).pages
  if (keys === undefined) return { call }
  if (isDeclined(inputResponses, keys)) return { declined: declinedResult(call, upstream) }
  // What was not answered, the server demands again, if it still wants it.
  return { call: { ...call, request: withoutInputResponses(call.request) } }
}

/**
 * The pages that an upstream demanded, as input requests.
 * @throws GatewayError missing_capability; `error` where it is no such demand, or names no page
 */
export async function urlElicitationOf(
  call: ModernCall,
  states: RequestStates,
  upstream: UpstreamName,
  error: unknown
): Promise<Result> {
  const demand = demandOf(error)
  const pages = demand === undefined ? [] : pagesOf(demand)
  if (pages.length === 0) throw error
  const { capabilities } = call.client
  if (!hasCapability(capabilities, ['elicitation', 'url'])) {
    const message =
      `Upstream ${upstream} wants a web page to be visited first. ` +
      'That is for clients that declare elicitation.url in io.modelcontextprotocol/clientCapabilities.'
    throw new GatewayError('missing_capability', message, {
      cause: demand,
      data: { requiredCapabilities: { elicitation: { url: {} } } }
    })
  }
  const requests = Object.fromEntries(
    pages.map((params, at) => [`page-${at + 1}`, { method: 'elicitation/create', params }])
  )
  await states.prepare(call)
  return {
    resultType: 'input_required',
    inputRequests: shapeInputRequests(requests, upstream, call.endpoint, capabilities),
    requestState: states.seal(call, upstream, { pages: Object.keys(requests) })
  }
}

/** The elicitations without their ids: 2026-07-28 has none, and nothing that would tell of their completion. */
function pagesOf({ error: { data } }: RpcError): JsonObject[] {
  const elicitations = isObject(data) && Array.isArray(data['elicitations']) ? data['elicitations'] : []
  return elicitations
    .filter(isObject)
    .slice(0, maxPages)
    .map(({ elicitationId: _known, ...page }) => ({
      message: 'A web page has to be visited first.',
      ...page,
      mode: 'url'
    }))
}

/** @throws GatewayError invalid_params for what is no answer to an elicitation (basic/patterns/mrtr) */
function isDeclined(responses: unknown, keys: readonly string[]): boolean {
  if (responses === undefined) return false
  if (!isObject(responses)) throw new GatewayError('invalid_params', '"inputResponses" must be an object.')
  const actions = keys
    .filter((key) => Object.hasOwn(responses, key))
    .map((key) => {
      const response = responses[key]
      const action = isObject(response) ? response['action'] : undefined
      if (action !== 'accept' && action !== 'decline' && action !== 'cancel') {
        throw new GatewayError(
          'invalid_params',
          `"inputResponses.${key}" must have an "action" of "accept", "decline" or "cancel".`
        )
      }
      return action
    })
  return actions.some((action) => action !== 'accept')
}

/** Without the page the server would demand it again, so it is not asked. */
function declinedResult(call: ModernCall, upstream: UpstreamName): Result {
  const message = `Upstream ${upstream} wants a web page to be visited first, which was declined. Nothing was done.`
  if (call.request.method !== 'tools/call') throw new GatewayError('declined', message, { data: { upstream } })
  return { resultType: 'complete', content: [{ type: 'text', text: message }], isError: true }
}

/** What an upstream demanded, behind the error that a client gets where it cannot be asked. */
function demandOf(error: unknown): RpcError | undefined {
  if (!(error instanceof Error)) return undefined
  if (error instanceof RpcError) return error.error.code === rpcCodes.urlElicitationRequired ? error : undefined
  return demandOf(error.cause)
}
