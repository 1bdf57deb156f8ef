// One call of a modern client at a legacy upstream, over all rounds of input requests and responses (2026-07-28
// basic/patterns/mrtr). Between two rounds it keeps only endpoint and capabilities of the client's last request.

import { noteAgain } from '../../observe/call-notes.ts'
import { modernClientRequests } from '../../protocol/methods.ts'
import {
  GatewayError,
  metaOf,
  type UpstreamName,
  type JsonObject,
  type Notification,
  type Result
} from '../../protocol/messages.ts'
import { noClient, type Client } from '../../protocol/seams.ts'
import { lossError, type ParkedLoss, type ParkedSlot } from '../../session/parked-calls.ts'
import type { Clock } from '../../time/clock.ts'
import { quotaKeyOf, type ModernCall } from '../call/call.ts'
import { createMonotonicProgress } from '../call/monotonic-progress.ts'
import type { Lease } from '../connections/caller-connections.ts'
import { toInputRequest } from '../client/input-requests.ts'
import { declaredForCaller } from '../client/declared-capabilities.ts'
import { notificationForModern } from '../client/server-messages.ts'
import {
  createGathering,
  createPendingInputs,
  declinedResponse,
  refuseOutsideInputMethods
} from '../client/pending-inputs.ts'
import type { RequestStates } from './request-state.ts'

export type ParkedOutcome = { readonly result: Result } | { readonly error: unknown }

interface ParkedCallOptions {
  readonly clock: Pick<Clock, 'now' | 'timer'>
  /** Adds the call to the parked calls. @throws GatewayError too_many */
  readonly park: (parked: ParkedCall) => ParkedSlot<ParkedCall>
  /**
   * Reserves memory for an input request.
   * @param chars the length of its JSON, in characters
   * @returns a function that frees the memory; undefined if there is too little
   */
  readonly keep: (chars: number) => (() => void) | undefined
  /** Keeps the outcome until the client's next request. `held` returns it, `letGo` frees its memory. */
  readonly hold: (outcome: ParkedOutcome) => { readonly held: () => ParkedOutcome; readonly letGo?: () => void }
  /** Returns whether the upstream is still configured and the caller would still be admitted. */
  readonly stands: () => boolean
  readonly lease: Pick<Lease, 'waits'>
  readonly states: RequestStates
  /** The id of this process. */
  readonly node: string
}

export interface ParkedCall {
  /** The client as the upstream sees it. */
  readonly client: Client
  /** Aborted when the call at the upstream should be cancelled. */
  readonly signal: AbortSignal
  /** Must be called when the call at the upstream has ended. */
  ended(outcome: ParkedOutcome): void
  /** Serves the first request of the client, until the call ends or the upstream needs input. */
  begin(call: ModernCall): Promise<Result>
  /**
   * Serves the next request of the client in the same way.
   * @throws GatewayError invalid_params if a response has the wrong shape; then nothing has changed
   */
  resume(call: ModernCall, responses: JsonObject): Promise<Result>
  /**
   * Returns whether the call is between two rounds and the client's next request would be refused, because its upstream
   * or its access was removed.
   */
  isStranded(): boolean
  /** Cancels the call. @param error the error of the client's running request. Default: `lossError(loss)` */
  giveUp(loss: ParkedLoss, error?: unknown): void
}

export function createParkedCall(
  first: ModernCall,
  upstream: UpstreamName,
  { clock, park, keep, hold, stands, lease, states, node }: ParkedCallOptions
): ParkedCall {
  const stop = new AbortController()
  const inputs = createPendingInputs()
  /** The running request of the client; undefined between two rounds. */
  let attendant: { readonly call: ModernCall; readonly end: (outcome: ParkedOutcome) => void } | undefined
  // Read here, because a function below that referred to `first` would keep its arguments while the call is parked.
  const { method } = first.request
  /** The endpoint and the capabilities of the client's newest request. */
  let endpoint = first.endpoint
  let capabilities = first.client.capabilities
  let slot: ParkedSlot<ParkedCall> | undefined
  /** The outcome, if the call ended while no request waited for it. */
  let kept: ReturnType<ParkedCallOptions['hold']> | undefined
  /** Whether the call has ended or was cancelled. */
  let over = false
  /** The number of input requests so far. */
  let asked = 0
  const gathering = createGathering(clock, endRound)

  function toAttendant(notification: Notification): void {
    if (attendant !== undefined) notifyCaller(attendant.call, upstream, notification, slot === undefined)
  }
  const progress = createMonotonicProgress({ ...noClient, notify: toAttendant }, undefined)

  function attend(call: ModernCall): Promise<Result> {
    const { signal } = call
    endpoint = call.endpoint
    capabilities = call.client.capabilities
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    const onAbort = (): void => {
      slot?.remove()
      stop.abort(signal.reason)
    }
    attendant = {
      call,
      end(outcome) {
        attendant = undefined
        signal.removeEventListener('abort', onAbort)
        if ('result' in outcome) resolve(outcome.result)
        else reject(outcome.error)
      }
    }
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    return promise
  }

  const ask: Client['ask'] = async (request, { signal } = {}) => {
    if (modernClientRequests.get(method)?.takesInput !== true) return await refuseOutsideInputMethods(request)
    // Throws if the client can never be asked this.
    toInputRequest(request, upstream, endpoint, capabilities)
    if (attendant !== undefined) await states.prepare(attendant.call)
    // If a reload removed the upstream or the access of the caller, its running request ends without further input.
    if (over || !stands()) return declinedResponse(request)
    slot ??= park(parked)
    const release = keep(JSON.stringify(request).length)
    if (release === undefined)
      throw new GatewayError('too_many', 'Too much waits for clients to answer. Ask again later.')
    const response = inputs.add(`input-${++asked}`, request, signal, release)
    gather()
    return await response
  }

  function gather(): void {
    if (attendant !== undefined) gathering.added()
  }

  /** Ends the client's request with all pending input requests. */
  function endRound(): void {
    if (attendant === undefined || slot === undefined) return
    if (!stands()) return inputs.decline()
    // Checked again, because this request may declare fewer capabilities than the one before.
    const inputRequests = inputs.show((request) => toInputRequest(request, upstream, endpoint, capabilities))
    // The upstream may have withdrawn all requests meanwhile; then its call simply goes on.
    if (inputs.size() === 0) return
    progress.again()
    const { ref, until } = slot.openRound()
    try {
      const requestState = states.seal(attendant.call, upstream, { parked: { node, ...ref } }, until)
      attendant.end({ result: { resultType: 'input_required', inputRequests, requestState } })
    } catch (error) {
      return giveUp('late', error)
    }
    // An expired call still counts as waiting until it has ended at the upstream.
    lease.waits(() => giveUp('newer'))
  }

  /** Declines the input requests before it cancels the call, so that a server can end its work without the client. */
  function giveUp(loss: ParkedLoss, error: unknown = lossError(loss)): void {
    over = true
    kept?.letGo?.()
    kept = undefined
    gathering.close()
    slot?.remove(loss)
    inputs.decline()
    clock.timer(0, () => stop.abort('the client did not come back with its input'))
    attendant?.end({ error })
  }

  const parked: ParkedCall = {
    client: {
      era: 'modern',
      capabilities: declaredForCaller(first, 'modern'),
      logLevel: first.client.logLevel,
      quotaKey: quotaKeyOf(first.principal),
      again: (why) => noteAgain(attendant?.call.record, why),
      notify(notification) {
        if (attendant !== undefined) progress.client.notify(notification)
      },
      ask
    },
    signal: stop.signal,
    ended(outcome) {
      const wanted = !over
      over = true
      gathering.close()
      lease.waits(undefined)
      inputs.cancel(new GatewayError('cancelled', 'The call that this request belongs to has ended.'))
      if (attendant !== undefined) {
        slot?.remove()
        attendant.end(outcome)
      } else if (wanted) kept = hold(outcome)
    },
    begin: attend,
    async resume(call, responses) {
      inputs.check(responses, ' The requestState is still good: send it again with the right answer.')
      slot?.closeRound()
      lease.waits(undefined)
      const result = attend(call)
      if (kept !== undefined) {
        kept.letGo?.()
        slot?.remove()
        attendant?.end(kept.held())
      }
      // Requests without a response are asked again.
      if (!inputs.answer(responses)) endRound()
      else if (inputs.size() > 0) gather()
      return await result
    },
    // A method and not a getter: see pending-inputs.ts.
    isStranded: () => attendant === undefined && !stands(),
    giveUp
  }
  return parked
}

/**
 * Sends a notification of the upstream to the client.
 * @param hasToken whether the upstream has the progress token of this request. If it has that of an earlier request,
 * the token of this one replaces it
 */
function notifyCaller(
  { client, request, endpoint }: ModernCall,
  upstream: UpstreamName,
  notification: Notification,
  hasToken: boolean
): void {
  const shaped = notificationForModern(notification, upstream, { client, endpoint })
  if (shaped === undefined) return
  if (hasToken || shaped.method !== 'notifications/progress') return client.notify(shaped)
  const { progressToken } = metaOf(request.params)
  if (progressToken !== undefined) client.notify({ ...shaped, params: { ...shaped.params, progressToken } })
}
