// Calls to legacy upstreams that send the client a request while they run. A client of 2026-07-28 is asked by the end
// of its own request (basic/patterns/mrtr); the call at the upstream is parked here, and the client's next request
// resumes it, whichever process it comes to.

import { isConfiguredPrincipal } from '../../auth/principal.ts'
import { createQuota } from '../../limits/limits.ts'
import type { Log } from '../../observe/log.ts'
import {
  GatewayError,
  isObject,
  type JsonObject,
  type Request,
  type Result,
  type TenantId,
  type UpstreamName
} from '../../protocol/messages.ts'
import type { Bus } from '../../session/bus.ts'
import { createParkedCalls } from '../../session/parked-calls.ts'
import type { Clock } from '../../time/clock.ts'
import { callerBindingOf, definitionOf, type ModernCall } from '../call/call.ts'
import { type ContextOf, forwardToNode } from '../call/forwarded-call.ts'
import type { Lease } from '../connections/caller-connections.ts'
import { createParkedCall, type ParkedCall } from './parked-call.ts'
import { type RequestState, type RequestStates, stands } from './request-state.ts'

export interface ParkingOptions {
  readonly states: RequestStates
  /** This process: what it parks waits nowhere else. */
  readonly node: string
  readonly bus: Pick<Bus, 'request'>
  readonly contextOf: ContextOf
  /** The time of day. */
  readonly wall: Clock
  readonly newId: () => string
  readonly log: Log
  /** How long a client may take to come back, in milliseconds; default ten minutes. */
  readonly lifetimeMs?: number | undefined
}

export interface Parking {
  /**
   * Runs the request at a legacy upstream until it ends or asks; then the result is `input_required`, as the client is
   * to get it, and the lease goes on. An aborted call is cancelled at the upstream.
   * @throws RpcError the upstream's own; GatewayError
   */
  run(call: ModernCall, lease: Lease, request: Request): Promise<Result>
  /**
   * The next round, here or at the process where the call is parked. Exactly one request gets it.
   * @throws GatewayError invalid_state; invalid_params for a response of the wrong shape, after which the same state
   * may be tried again
   */
  resume(call: ModernCall, upstream: UpstreamName, parked: Parked, responses: JsonObject): Promise<Result>
  /**
   * The next round of a call that is parked here, for a request that came to another process.
   * @throws GatewayError as `resume`
   */
  resumeForwarded(call: ModernCall, upstream: UpstreamName): Promise<Result>
  /** After a reload: gives up calls at an upstream, or for an endpoint or a caller, that is gone. */
  retain(): void
  /** Gives up all parked calls. Resolves when the upstreams have been told. */
  close(): Promise<void>
  readonly size: number
}

type Parked = NonNullable<RequestState['parked']>

/**
 * Server requests, and results whose client is away: characters of one of them, of one caller, of one tenant, and of
 * all.
 */
const keptChars = { one: 1024 * 1024, caller: 4 * 1024 * 1024, tenant: 32 * 1024 * 1024, all: 128 * 1024 * 1024 }

export function createParking(options: ParkingOptions): Parking {
  const { states, node, bus, contextOf, wall, newId, log, lifetimeMs } = options
  const ownerOf = (call: ModernCall): string => JSON.stringify(callerBindingOf(call))
  const parks = createParkedCalls<ParkedCall>({
    clock: wall,
    newId,
    onLost: (rounds, loss) => rounds.giveUp(loss),
    ...(lifetimeMs !== undefined && { lifetimeMs })
  })

  const kept = createQuota()
  const keep = (owner: string, tenant: TenantId, chars: number): (() => void) | undefined =>
    chars > keptChars.one
      ? undefined
      : kept.take(chars, [
          [owner, keptChars.caller],
          [`tenant ${tenant}`, keptChars.tenant],
          ['all', keptChars.all]
        ])

  const resumeHere = (call: ModernCall, parked: Parked, responses: JsonObject): Promise<Result> =>
    parks.find(ownerOf(call), parked).parked.resume(call, responses)

  return {
    async run(call, lease, request) {
      const { upstream, release } = lease
      // What follows outlives the request, and keeps nothing else of it.
      const owner = ownerOf(call)
      const {
        tenant: { id: tenant },
        endpoint: { name: endpoint },
        principal: { kind, issuer, subject }
      } = call
      const { hash } = definitionOf(call, upstream.name)
      const rounds = createParkedCall(call, upstream.name, {
        clock: wall,
        park: (self) => parks.add(owner, tenant, self),
        keep: (chars) => keep(owner, tenant, chars),
        stands() {
          const now = contextOf(tenant, endpoint)
          return (
            now !== undefined &&
            stands(now, upstream.name, hash) &&
            isConfiguredPrincipal({ kind, issuer, subject }, now.tenant.auth)
          )
        },
        lease,
        stateOf: (asked, ref, until) => states.seal(asked, upstream.name, { parked: { node, ...ref } }, until)
      })
      const result = rounds.begin(call)
      upstream
        .request(request, rounds.client, rounds.signal)
        .then(
          (result) => rounds.ended({ result: { ...result, resultType: 'complete' } }),
          (error: unknown) => rounds.ended({ error })
        )
        .catch((err: unknown) => {
          log.error(
            { err, upstream: upstream.name, tenant },
            'the end of a call could not be brought to its client, who is told that it is over'
          )
          rounds.giveUp('late', err)
        })
        .finally(release)
      return await result
    },
    resume: (call, upstream, parked, responses) =>
      parked.node === node ? resumeHere(call, parked, responses) : forwardToNode(bus, call, upstream, parked.node),
    async resumeForwarded(call, upstream) {
      const { requestState, inputResponses } = call.request.params ?? {}
      const { parked } = states.open(call, upstream, requestState)
      if (parked?.node === node) return await resumeHere(call, parked, isObject(inputResponses) ? inputResponses : {})
      throw new GatewayError('invalid_state', 'The call of this requestState is parked elsewhere.')
    },
    retain: () => parks.lose('replaced', (rounds) => rounds.stranded),
    async close() {
      if (parks.size === 0) return
      parks.close()
      // Later than the last word of each call.
      await new Promise<void>((resolve) => {
        wall.timer(1, resolve)
      })
    },
    get size() {
      return parks.size
    }
  }
}
