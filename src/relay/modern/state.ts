// `requestState` on its way through (2026-07-28 basic/patterns/mrtr): what an upstream gives goes out sealed to the caller and to this
// very request, and comes back to it byte for byte. The client holds it, so no process has to.

import { hash } from 'node:crypto'
import { canonical } from '../../protocol/canonical.ts'
import { GatewayError } from '../../protocol/errors.ts'
import type { UpstreamName } from '../../protocol/ids.ts'
import type { Sealer } from '../../store/seal.ts'
import type { ModernCall } from '../call.ts'
import { definitionOf } from '../floor.ts'
import { bindingOf } from './task-ids.ts'

export interface RequestStates {
  /** @param call the request as the client sent it; what it was sealed for is its method and all of its params but the answers */
  seal (call: ModernCall, upstream: UpstreamName, upstreamState: string): string
  /** @throws GatewayError invalid_state: the same for what is forged, too old, somebody else's, or of another request */
  open (call: ModernCall, upstream: UpstreamName, state: unknown): string
}

/** A person may take long to answer; a state that is replayed later than this is refused. */
const lifetimeMs = 60 * 60 * 1000

const purpose = 'request-state'

/** @param wall the time of day, which all processes agree on */
export function createRequestStates (sealer: Pick<Sealer, 'seal' | 'open'>, wall: { now (): number }): RequestStates {
  const binding = (call: ModernCall, upstream: UpstreamName): string[] => {
    const { inputResponses: _answers, requestState: _state, _meta, ...params } = call.request.params ?? {}
    // The definition too: another server under the same name did not give it.
    return [...bindingOf(call), upstream, definitionOf(call, upstream).hash, call.request.method, hash('sha256', canonical(params), 'base64url')]
  }
  return {
    seal: (call, upstream, upstreamState) => sealer.seal(purpose, binding(call, upstream), JSON.stringify({ v: 1, exp: wall.now() + lifetimeMs, upstreamState })),
    open (call, upstream, state) {
      const opened = typeof state === 'string' ? sealer.open(purpose, binding(call, upstream), state) : undefined
      const { v, exp, upstreamState } = (opened === undefined ? {} : JSON.parse(opened)) as { v?: number, exp?: number, upstreamState?: string }
      if (v !== 1 || exp === undefined || exp < wall.now() || upstreamState === undefined) {
        throw new GatewayError('invalid_state', 'The requestState is not one that was given to this caller for this request, or it is more than an hour old. Send the request again without it.')
      }
      return upstreamState
    }
  }
}
