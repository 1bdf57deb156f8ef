// Calls to legacy upstreams that send the client a request while they run. A client of 2026-07-28 is asked by the end
// of its own request (basic/patterns/mrtr); the call at the upstream is parked here, and the client's next request
// resumes it, whichever process it comes to.

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
 * Server requests, and results whose client is away: characters of one of them, of one caller, of one tenant, and of
 * all.
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
  /** This process: what it parks waits nowhere else. */
  readonly node: string
  readonly bus: Pick<Bus, 'request'>
  readonly contextOf: ContextOf
  /** The time of day. */
  readonly wall: Clock
  readonly newId: () => string
  readonly log: Log
  /** Default: without limits. */
  readonly memory?: MemoryAccount | undefined
  /** The time in which a client has to come back, in milliseconds. Default: ten minutes. */
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
    /** The number of calls that wait. */
    get size() {
      return parks.size
    },
    /**
     * Runs the request at a legacy upstream until it ends or asks; then the result is `input_required`, as the client
     * is to get it, and the lease goes on. An aborted call is cancelled at the upstream.
     * @throws RpcError the upstream's own; GatewayError
     */
    async run(call: ModernCall, lease: Lease, request: Request): Promise<Result> {
      const { upstream, release } = lease
      // What follows outlives the request, and keeps nothing else of it.
      // The person, whatever its client ids: the states that it comes back with are sealed for one of these.
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
     * The next round, here or at the process where the call is parked. Exactly one request gets it.
     * @throws GatewayError invalid_state; invalid_params for a response of the wrong shape, after which the same state
     * may be tried again
     */
    resume: (call: ModernCall, upstream: UpstreamName, parked: Parked, responses: JsonObject): Promise<Result> =>
      parked.node === node ? resumeHere(call, parked, responses) : forwardToNode(bus, call, upstream, parked.node),
    /** Resumes the parked call of a request that came to another process. */
    async resumeForwarded(call: ModernCall, upstream: UpstreamName): Promise<Result> {
      const { requestState, inputResponses } = call.request.params ?? {}
      await states.prepare(call)
      const { parked } = states.open(call, upstream, requestState)
      if (parked?.node === node) return await resumeHere(call, parked, isObject(inputResponses) ? inputResponses : {})
      throw new GatewayError('invalid_state', 'The call of this requestState is parked elsewhere.')
    },
    /** Gives up the calls of removed upstreams, endpoints and callers; to be called after each reload. */
    retain: (): void => parks.lose('replaced', (parked) => parked.isStranded()),
    /** Gives up all parked calls. Resolves when the upstreams have been told. */
    async close(): Promise<void> {
      if (parks.size === 0) return
      parks.close()
      // Later than the last word of each call.
      await new Promise<void>((resolve) => {
        wall.timer(1, resolve)
      })
    }
  }
}

/** A larger answer that nobody is there for has to be asked for anew. */
const storedChars = 1024 * 1024

/** An answer of the upstream is an answer, be it an error; everything else leaves nothing to come back to. */
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
  // Kept as the text that is counted: its values may take up twenty times as much.
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
