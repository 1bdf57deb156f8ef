// Calls to older upstreams that ask the client something while they run. A client of 2026-07-28 is asked by the end of its own request
// (basic/patterns/mrtr); the call at the upstream waits here, and the client's next request takes it up, whichever process it comes to.

import { isKnown } from '../../auth/principal.ts'
import type { Principal } from '../../auth/principal.ts'
import type { EndpointName, TenantId, UpstreamName } from '../../protocol/ids.ts'
import { GatewayError } from '../../protocol/errors.ts'
import type { Log } from '../../observe/log.ts'
import { isObject } from '../../protocol/messages.ts'
import type { ClientCapabilities, JsonObject, Notification, Request, Result } from '../../protocol/messages.ts'
import type { LogLevel } from '../../protocol/levels.ts'
import { createShares } from '../../protocol/shares.ts'
import type { Bus } from '../../session/bus.ts'
import { createParks, lossError } from '../../session/parked.ts'
import type { ModernCall, Place } from '../call.ts'
import { definitionOf } from '../floor.ts'
import type { PaceClock } from '../pace.ts'
import type { Lease } from './connections.ts'
import { createRounds } from './rounds.ts'
import type { Rounds } from './rounds.ts'
import { stands } from './state.ts'
import type { RequestStates, State } from './state.ts'
import { bindingOf } from './task-ids.ts'

export interface ParkingOptions {
  readonly states: RequestStates
  /** This process: what it parks waits nowhere else. */
  readonly node: string
  readonly bus: Pick<Bus, 'ask' | 'serve'>
  readonly placeOf: (tenant: TenantId, endpoint: EndpointName) => Place | undefined
  readonly clock: PaceClock
  /** The time of day. */
  readonly wall: { now (): number }
  readonly newId: () => string
  readonly log: Log
  /** What other processes forward here beside rounds, with a call that they may have made up. @throws GatewayError where it is nothing of ours */
  readonly serveOther: (call: ModernCall) => Promise<Result>
  /** For how long a client may take; default ten minutes. */
  readonly lifetimeMs?: number | undefined
}

export interface Parking {
  /**
   * Runs the request at an older upstream until it ends or asks; then the result is `input_required`, as the client is to get it, and the
   * lease goes on. An aborted call cancels it.
   * @throws RpcError the upstream's own; GatewayError
   */
  run (call: ModernCall, lease: Lease, request: Request): Promise<Result>
  /**
   * The next round, here or where the call waits. Exactly one request gets it.
   * @throws GatewayError invalid_state; invalid_params where an answer is none, after which the same state may be tried again
   */
  resume (call: ModernCall, upstream: UpstreamName, parked: Parked, answers: JsonObject): Promise<Result>
  /**
   * The request, answered by the process that holds what it is about; see `serveOther`.
   * @throws GatewayError invalid_state where it is gone
   */
  forward (call: ModernCall, upstream: UpstreamName, node: string): Promise<Result>
  /** A reload: gives up what waits at an upstream, or for an endpoint or a caller, that is no more. */
  retain (): void
  /** Gives up all that is parked. Resolves when the upstreams have been told. */
  close (): Promise<void>
  readonly size: number
}

type Parked = NonNullable<State['parked']>

/** A request as one process tells it another. */
interface Forwarded {
  readonly tenant: TenantId
  readonly endpoint: EndpointName
  readonly upstream: UpstreamName
  readonly principal: Pick<Principal, 'kind' | 'issuer' | 'subject' | 'clientId'>
  readonly request: Request
  readonly capabilities: ClientCapabilities
  readonly logLevel?: LogLevel | undefined
}

/** Questions, and results that nobody was there for: characters of one of them, of one caller, of one tenant, and of all. */
const keptChars = { one: 1024 * 1024, caller: 4 * 1024 * 1024, tenant: 32 * 1024 * 1024, all: 128 * 1024 * 1024 }

export function createParking ({ states, node, bus, placeOf, clock, wall, newId, log, serveOther, lifetimeMs }: ParkingOptions): Parking {
  const ownerOf = (call: ModernCall): string => JSON.stringify(bindingOf(call))
  const parks = createParks<Rounds>({ wall, timer: clock.timer, newId, gone: (rounds, loss) => rounds.giveUp(loss), ...lifetimeMs !== undefined && { lifetimeMs } })

  const kept = createShares()
  const keep = (owner: string, tenant: TenantId, chars: number): (() => void) | undefined => chars > keptChars.one
    ? undefined
    : kept.take(chars, [[owner, keptChars.caller], [`tenant ${tenant}`, keptChars.tenant], ['all', keptChars.all]])

  const resumeHere = (call: ModernCall, parked: Parked, answers: JsonObject): Promise<Result> => parks.find(ownerOf(call), parked).parked.resume(call, answers)

  async function answeredThere (call: ModernCall, upstream: UpstreamName, there: string): Promise<Result> {
    const { tenant, endpoint, principal: { kind, issuer, subject, clientId }, request, client, signal } = call
    const { capabilities, logLevel } = client
    const forwarded: Forwarded = { tenant: tenant.id, endpoint: endpoint.name, upstream, principal: { kind, issuer, subject, clientId }, request, capabilities, logLevel }
    return await bus.ask(there, { tenant: tenant.id, caller: ownerOf(call) }, forwarded, { notify: (said) => client.notify(said as Notification), signal }) as Result
  }

  // Judged again by what the state itself says: that another process asks proves nothing of who asks.
  bus.serve(async (question, { notify, signal }) => {
    const { tenant, endpoint, upstream, principal, request, capabilities, logLevel } = question as Forwarded
    const place = placeOf(tenant, endpoint)
    if (place === undefined) throw lossError('replaced')
    const call: ModernCall = {
      ...place,
      request,
      principal: { ...principal, tenant, scopes: new Set(), groups: [], expiresAt: undefined },
      // What it is asked, it is asked by the end of its request.
      client: { era: 'modern', capabilities, logLevel, notify, ask: () => Promise.reject(new GatewayError('method_not_found', 'The client takes no requests.')) },
      signal
    }
    const { requestState, inputResponses } = request.params ?? {}
    if (request.method.startsWith('tasks/')) return await serveOther(call)
    const { parked } = states.open(call, upstream, requestState)
    if (parked?.node !== node) throw new GatewayError('invalid_state', 'The call of this requestState waits elsewhere.')
    return await resumeHere(call, parked, isObject(inputResponses) ? inputResponses : {})
  })

  return {
    async run (call, { upstream, waits, release }, request) {
      // What follows outlives the request, and keeps nothing else of it.
      const owner = ownerOf(call)
      const { tenant: { id: tenant }, endpoint: { name: endpoint }, principal: { kind, issuer, subject } } = call
      const { hash } = definitionOf(call, upstream.name)
      const rounds = createRounds(call, upstream.name, {
        timer: clock.timer,
        park: (self) => parks.enter(owner, tenant, self),
        keep: (chars) => keep(owner, tenant, chars),
        stands () {
          const now = placeOf(tenant, endpoint)
          return now !== undefined && stands(now, upstream.name, hash) && isKnown({ kind, issuer, subject }, now.tenant.auth)
        },
        waits,
        stateOf: (asked, ticket, until) => states.seal(asked, upstream.name, { parked: { node, ...ticket } }, until)
      })
      const result = rounds.begin(call)
      upstream.request(request, rounds.client, rounds.signal).then(
        (result) => rounds.ended({ result: { ...result, resultType: 'complete' } }),
        (error: unknown) => rounds.ended({ error })
      ).catch((err: unknown) => {
        log.error({ err, upstream: upstream.name, tenant }, 'the end of a call could not be brought to its client, who is told that it is over')
        rounds.giveUp('late', err)
      }).finally(release)
      return await result
    },
    resume: (call, upstream, parked, answers) => parked.node === node ? resumeHere(call, parked, answers) : answeredThere(call, upstream, parked.node),
    forward: answeredThere,
    retain: () => parks.lose('replaced', (rounds) => rounds.stranded),
    async close () {
      if (parks.size === 0) return
      parks.end()
      // Later than the last word of each call.
      await new Promise<void>((resolve) => { clock.timer(1, resolve) })
    },
    get size () { return parks.size }
  }
}
