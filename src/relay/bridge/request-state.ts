// `requestState` on its way through (2026-07-28 basic/patterns/mrtr): what it stands for goes out sealed to the caller
// and to this very request. The client holds it, so no process has to.

import { callerBindingOf, definitionOf, type EndpointContext, type ModernCall } from '../call/call.ts'
import { hash } from 'node:crypto'
import { canonicalJsonOf } from '../../protocol/canonical.ts'
import { GatewayError, type UpstreamName } from '../../protocol/messages.ts'
import type { Sealer } from '../../store/seal.ts'
import { lossError } from '../../session/parked-calls.ts'
import { conversationOf } from '../client/modern-client.ts'

/** What a state stands for. */
export interface RequestState {
  /** What a modern upstream gave, which gets it back byte for byte. */
  readonly upstreamState?: string
  /** Keys of the pages that an older upstream wants visited before it is asked again. */
  readonly pages?: readonly string[]
  /** The call of an older upstream that waits for the answers, and the process that holds it. */
  readonly parked?: { readonly node: string; readonly park: string; readonly round: number }
}

export interface RequestStates {
  /**
   * @param call the request as the client sent it; what it was sealed for is its method and all of its params but the
   * answers
   * @param until epoch ms; default an hour from now
   */
  seal(call: ModernCall, upstream: UpstreamName, state: RequestState, until?: number): string
  /**
   * @throws GatewayError invalid_state: the same for what is forged, too old, somebody else's, or of another request
   */
  open(call: ModernCall, upstream: UpstreamName, state: unknown): RequestState
  /**
   * For a request whose name leads nowhere: was it there before, and waited for input?
   * @returns invalid_state (data.outcome: unknown)
   */
  lost(call: ModernCall): GatewayError | undefined
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

/** @param wall the time of day, which all processes agree on */
export function createRequestStates(sealer: Pick<Sealer, 'seal' | 'open'>, wall: { now(): number }): RequestStates {
  const binding = (call: ModernCall): string[] => {
    const { inputResponses: _answers, requestState: _state, _meta, ...params } = call.request.params ?? {}
    return [
      ...callerBindingOf(call),
      conversationOf(call) ?? '',
      call.request.method,
      hash('sha256', canonicalJsonOf(params), 'base64url')
    ]
  }

  function read(call: ModernCall, sealed: unknown): Sealed | undefined {
    const opened = typeof sealed === 'string' ? sealer.open(purpose, binding(call), sealed) : undefined
    const read = opened === undefined ? undefined : (JSON.parse(opened) as Sealed)
    return read?.v === 3 ? read : undefined
  }

  return {
    seal: (call, upstream, state, until = wall.now() + lifetimeMs) =>
      sealer.seal(
        purpose,
        binding(call),
        JSON.stringify({ v: 3, exp: until, upstream, hash: definitionOf(call, upstream).hash, state } satisfies Sealed)
      ),
    open(call, upstream, sealed) {
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
    lost(call) {
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
