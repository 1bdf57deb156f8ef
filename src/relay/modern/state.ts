// `requestState` on its way through (2026-07-28 basic/patterns/mrtr): what it stands for goes out sealed to the caller and to this very
// request. The client holds it, so no process has to.

import { hash } from 'node:crypto'
import { canonical } from '../../protocol/canonical.ts'
import { GatewayError } from '../../protocol/errors.ts'
import type { UpstreamName } from '../../protocol/ids.ts'
import type { Sealer } from '../../store/seal.ts'
import type { ModernCall } from '../call.ts'
import { definitionOf } from '../floor.ts'
import { conversationOf } from './conversations.ts'
import { bindingOf } from './task-ids.ts'

/** What a state stands for. */
export interface State {
  /** What a modern upstream gave, which gets it back byte for byte. */
  readonly upstreamState?: string
  /** Keys of the pages that an older upstream wants visited before it is asked again. */
  readonly pages?: readonly string[]
  /** The call of an older upstream that waits for the answers, and the process that holds it. */
  readonly parked?: { readonly node: string, readonly park: string, readonly round: number }
}

export interface RequestStates {
  /**
   * @param call the request as the client sent it; what it was sealed for is its method and all of its params but the answers
   * @param until epoch ms; default an hour from now
   */
  seal (call: ModernCall, upstream: UpstreamName, state: State, until?: number): string
  /** @throws GatewayError invalid_state: the same for what is forged, too old, somebody else's, or of another request */
  open (call: ModernCall, upstream: UpstreamName, state: unknown): State
}

/** A person may take long to answer; a state that is replayed later than this is refused. */
const lifetimeMs = 60 * 60 * 1000

const purpose = 'request-state'

/** @param wall the time of day, which all processes agree on */
export function createRequestStates (sealer: Pick<Sealer, 'seal' | 'open'>, wall: { now (): number }): RequestStates {
  const binding = (call: ModernCall, upstream: UpstreamName): string[] => {
    const { inputResponses: _answers, requestState: _state, _meta, ...params } = call.request.params ?? {}
    // The definition too: another server under the same name did not give it.
    return [...bindingOf(call), conversationOf(call) ?? '', upstream, definitionOf(call, upstream).hash, call.request.method, hash('sha256', canonical(params), 'base64url')]
  }
  return {
    seal: (call, upstream, state, until = wall.now() + lifetimeMs) => sealer.seal(purpose, binding(call, upstream), JSON.stringify({ v: 2, exp: until, state })),
    open (call, upstream, sealed) {
      const opened = typeof sealed === 'string' ? sealer.open(purpose, binding(call, upstream), sealed) : undefined
      const { v, exp, state } = (opened === undefined ? {} : JSON.parse(opened)) as { v?: number, exp?: number, state?: State }
      if (v !== 2 || exp === undefined || exp < wall.now() || state === undefined) {
        throw new GatewayError('invalid_state', 'The requestState is not one that was given to this caller for this request, or it is too old. Send the request again without it.')
      }
      return state
    }
  }
}
