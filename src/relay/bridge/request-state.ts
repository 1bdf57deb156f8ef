// `requestState` on its way through (2026-07-28 basic/patterns/mrtr): what it stands for goes out sealed to the caller
// and to this very request. The client holds it, so no process has to.

import { callerBindingOf, definitionOf, quotaKeyOf, type EndpointContext, type ModernCall } from '../call/call.ts'
import { canonicalJsonOf, isLongText } from '../../protocol/json-text.ts'
import { longTextSteps } from '../../protocol/json-writer.ts'
import { GatewayError, type JsonObject, type UpstreamName } from '../../protocol/messages.ts'
import { hashOfEverybody } from '../../upstream/rpc/personal-hash.ts'
import type { Sealer } from '../../store/seal.ts'
import { lossError } from '../../session/parked-calls.ts'
import { conversationOf } from '../client/modern-client.ts'
import type { TaskProcess } from '../tasks/caller-tasks.ts'
import { runSteps, type Steps } from '../../time/turns.ts'
import { createHash, hash } from 'node:crypto'

/** The content of a request state. */
export interface RequestState {
  /** The state of a modern upstream, which gets it back byte for byte. */
  readonly upstreamState?: string
  /** The child process that gave the state, which may have sealed it with a key of its own. */
  readonly process?: TaskProcess
  /** Keys of the pages that an older upstream wants visited before it is asked again. */
  readonly pages?: readonly string[]
  /** They are one of the gateway, where the person connects the upstream. */
  readonly isOurs?: true
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
  /** The upstream that gave the state: another server under the same name did not. */
  readonly upstream: UpstreamName
  readonly hash: string
  readonly state: RequestState
}

/** Does the endpoint still lead to this very upstream? */
export const stands = ({ tenant, endpoint }: EndpointContext, upstream: UpstreamName, hash: string): boolean =>
  endpoint.members.some((member) => member.upstream === upstream) &&
  // A person who has connected an account meanwhile was asked for it by the same upstream.
  hashOfEverybody(tenant.upstreams.get(upstream)?.hash ?? '') === hashOfEverybody(hash)

export type RequestStates = ReturnType<typeof createRequestStates>

/** @param wall the time of day, which all processes agree on */
export function createRequestStates(sealer: Pick<Sealer, 'seal' | 'open'>, wall: { now(): number }) {
  /** The digests of long params: one request may open a state and be given another one. */
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
    /** The upstream that the person of the client was to connect, and its hash then; undefined: it is no such state. */
    askedToConnect(call: ModernCall): Pick<Sealed, 'upstream' | 'hash'> | undefined {
      const given = read(call, call.request.params?.['requestState'])
      return given?.state.isOurs === true && given.exp >= wall.now() ? given : undefined
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

/** Makes the digest of the text of `canonicalJsonOf`, in steps. */
function* digestSteps(value: JsonObject): Steps<string> {
  const hashing = createHash('sha256')
  for (const part of (yield* longTextSteps(value, undefined, true)).parts) {
    hashing.update(part)
    yield
  }
  return hashing.digest('base64url')
}
