// Calls at legacy upstreams that send the client a request while they run. A client of 2026-07-28 gets such a request
// in the result of its own request (2026-07-28 basic/patterns/mrtr). The call at the upstream is parked here meanwhile,
// and the client's next request resumes it, whichever process that request comes to.

import { isConfiguredPrincipal } from '../../auth/principal.ts'
import { createQuota } from '../../limits/limits.ts'
import {
  bytesPerChar,
  createMemoryAccount,
  withMemory,
  type MemoryAccount,
  type MemoryShare
} from '../../limits/memory.ts'
import type { Log } from '../../observe/log.ts'
import { parseOwnJson } from '../../protocol/json.ts'
import {
  GatewayError,
  RpcError,
  isObject,
  type TenantId,
  type UpstreamName,
  type JsonObject,
  type Request,
  type Result,
  type RpcErrorObject
} from '../../protocol/messages.ts'
import type { Bus } from '../../session/bus/bus.ts'
import { createParkedCalls } from '../../session/parked-calls.ts'
import type { Clock } from '../../time/clock.ts'
import { definitionOf, quotaKeyOf, type ModernCall, type ContextOf } from '../call/call.ts'
import { forwardToNode } from '../call/forwarded-call.ts'
import type { Lease } from '../connections/caller-connections.ts'
import { createParkedCall, type ParkedOutcome, type ParkedCall } from './parked-call.ts'
import { stands, type RequestState, type RequestStates } from './request-state.ts'

type Parked = NonNullable<RequestState['parked']>

/**
 * Limits of the memory for server requests and for results that wait for the client's next request, in characters of
 * JSON: of one of them, of one caller's, of one tenant's, and of all in the process.
 */
const keptChars = { one: 1024 * 1024, caller: 4 * 1024 * 1024, tenant: 32 * 1024 * 1024, all: 128 * 1024 * 1024 }

export type Parking = ReturnType<typeof createParking>

export function createParking({
  states,
  node,
  bus,
  contextOf,
  wall,
  newId,
  log,
  memory = createMemoryAccount(),
  lifetimeMs
}: {
  readonly states: RequestStates
  /** The id of this process. Only this process can resume the calls that it parks. */
  readonly node: string
  readonly bus: Pick<Bus, 'request'>
  readonly contextOf: ContextOf
  /** Must show the time of day: the client is told until when it may resume a call. */
  readonly wall: Clock
  readonly newId: () => string
  readonly log: Log
  /** Default: without limits. */
  readonly memory?: MemoryAccount | undefined
  /** The time within which the client's next request must come, in milliseconds. Default: ten minutes. */
  readonly lifetimeMs?: number | undefined
}) {
  const parks = createParkedCalls<ParkedCall>({
    clock: wall,
    newId,
    onLost: (parked, loss) => parked.giveUp(loss),
    ...(lifetimeMs !== undefined && { lifetimeMs })
  })

  const kept = createQuota()
  function keep(owner: string, tenant: TenantId, share: MemoryShare, chars: number): (() => void) | undefined {
    if (chars > keptChars.one) return undefined
    const release = kept.take(chars, [
      [owner, keptChars.caller],
      [`tenant ${tenant}`, keptChars.tenant],
      ['all', keptChars.all]
    ])
    return release && withMemory(share, chars * bytesPerChar, release)
  }

  const resumeHere = (call: ModernCall, parked: Parked, responses: JsonObject): Promise<Result> =>
    parks.find(quotaKeyOf(call.principal), parked).parked.resume(call, responses)

  return {
    /** The number of parked calls in this process. */
    get size() {
      return parks.size
    },
    /**
     * Runs the request at a legacy upstream until the call ends or the upstream asks for input. If it asks, the result
     * is the `input_required` for the client, and the lease is released only when the call ends. If `call` is aborted,
     * the call is cancelled at the upstream.
     * @throws RpcError the error of the upstream
     * @throws GatewayError too_many, or any other error of the gateway
     */
    async run(call: ModernCall, lease: Lease, request: Request): Promise<Result> {
      const { upstream, release } = lease
      // The parked call outlives the request, so it must refer to these values only, and not to `call`.
      // The owner is the person, whatever the client id: each request state is sealed for one client id anyway.
      const owner = quotaKeyOf(call.principal)
      const share = memory.share(call.tenant.id, quotaKeyOf(call.principal))
      const {
        tenant: { id: tenant },
        endpoint: { name: endpoint },
        principal: { issuer, subject }
      } = call
      const { hash } = definitionOf(call, upstream.name)
      const parkedCall = createParkedCall(call, upstream.name, {
        clock: wall,
        park: (self) => parks.add(owner, tenant, self),
        keep: (chars) => keep(owner, tenant, share, chars),
        hold: (outcome) => storedOutcome(outcome, upstream.name, (chars) => keep(owner, tenant, share, chars)),
        stands() {
          const now = contextOf(tenant, endpoint, { issuer, subject })
          return (
            now !== undefined &&
            stands(now, upstream.name, hash) &&
            isConfiguredPrincipal({ issuer, subject }, now.tenant.auth)
          )
        },
        lease,
        states,
        node
      })
      const result = parkedCall.begin(call)
      upstream
        .request(request, parkedCall.client, parkedCall.signal)
        .then(
          (result) => parkedCall.ended({ result: { ...result, resultType: 'complete' } }),
          (error: unknown) => parkedCall.ended({ error })
        )
        .catch((err: unknown) => {
          log.error(
            { err, upstream: upstream.name, tenant },
            'the end of a call could not be brought to its client, who is told that it is over'
          )
          parkedCall.giveUp('late', err)
        })
        .finally(release)
      return await result
    },
    /**
     * Resumes a parked call, here or at the process where it is parked. Of several requests with the same request
     * state, one resumes the call.
     * @throws GatewayError invalid_state if the call cannot be resumed; invalid_params if a response has the wrong
     * shape, after which the client may send the same state again
     */
    resume: (call: ModernCall, upstream: UpstreamName, parked: Parked, responses: JsonObject): Promise<Result> =>
      parked.node === node ? resumeHere(call, parked, responses) : forwardToNode(bus, call, upstream, parked.node),
    /**
     * Resumes the parked call of a request that another process has forwarded to this one.
     * @throws GatewayError like `resume`
     */
    async resumeForwarded(call: ModernCall, upstream: UpstreamName): Promise<Result> {
      const { requestState, inputResponses } = call.request.params ?? {}
      await states.prepare(call)
      const { parked } = states.open(call, upstream, requestState)
      if (parked?.node === node) return await resumeHere(call, parked, isObject(inputResponses) ? inputResponses : {})
      throw new GatewayError('invalid_state', 'The call of this requestState is parked elsewhere.')
    },
    /** Gives up the calls of removed upstreams, endpoints and callers. Must be called after each reload. */
    retain: (): void => parks.lose('replaced', (parked) => parked.isStranded()),
    /** Gives up all parked calls. Resolves when their cancellations have been sent to the upstreams. */
    async close(): Promise<void> {
      if (parks.size === 0) return
      parks.close()
      // Each call is cancelled by a timer of 0 ms (`giveUp`). This one runs after those.
      await new Promise<void>((resolve) => {
        wall.timer(1, resolve)
      })
    }
  }
}

/** The longest outcome, in characters of JSON, that is kept for the client's next request. */
const storedChars = 1024 * 1024

/**
 * Keeps the outcome of a call that ended between two rounds. A result or an error that the upstream sent is kept; for
 * any other error, and for an outcome that is too long, the client gets a GatewayError invalid_state.
 */
function storedOutcome(
  outcome: ParkedOutcome,
  upstream: UpstreamName,
  keep: (chars: number) => (() => void) | undefined
): { readonly held: () => ParkedOutcome; readonly letGo?: () => void } {
  const gone = (why: string, cause?: unknown) => {
    const message = `The call at upstream ${upstream} ended while it waited for input: ${why}`
    const error = new GatewayError('invalid_state', message, { cause, data: { upstream, outcome: 'unknown' } })
    return { held: () => ({ error }) }
  }
  const isError = 'error' in outcome
  if (isError && !(outcome.error instanceof RpcError)) {
    const { error } = outcome
    const why = error instanceof GatewayError ? error.message : 'The gateway failed.'
    const isSaid = error instanceof GatewayError && error.data['outcome'] === 'unknown'
    return gone(isSaid ? why : `${why} Whether it took effect is unknown.`, error)
  }
  // Kept as text, whose length is counted: the parsed values may take up twenty times as much memory.
  const text = JSON.stringify(isError ? (outcome.error as RpcError).error : outcome.result)
  const letGo = text.length > storedChars ? undefined : keep(text.length)
  if (letGo === undefined) return gone('its answer is too large to be kept. It may have taken effect.')
  return {
    held: () =>
      isError
        ? { error: new RpcError(parseOwnJson(text) as RpcErrorObject) }
        : { result: parseOwnJson(text) as Result },
    letGo
  }
}
