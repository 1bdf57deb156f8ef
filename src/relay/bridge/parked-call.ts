// One call at a legacy upstream, over all rounds of input requests and responses (2026-07-28 basic/patterns/mrtr).
// Between two rounds nothing of a client's request is kept but its endpoint and what it declared.

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
import { declinedResponse, refuseOutsideInputMethods, createPendingInputs } from '../client/pending-inputs.ts'
import type { RequestStates } from './request-state.ts'

export type ParkedOutcome = { readonly result: Result } | { readonly error: unknown }

interface ParkedCallOptions {
  readonly clock: Pick<Clock, 'now' | 'timer'>
  /** @throws GatewayError too_many */
  readonly park: (parked: ParkedCall) => ParkedSlot<ParkedCall>
  /** Counts what a client may never come back for. @returns what gives it back; undefined where there is too much */
  readonly keep: (chars: number) => (() => void) | undefined
  /** The outcome for whoever comes back. */
  readonly hold: (outcome: ParkedOutcome) => { readonly held: () => ParkedOutcome; readonly letGo?: () => void }
  /** Is the upstream still configured, and would the caller still be admitted? */
  readonly stands: () => boolean
  readonly lease: Pick<Lease, 'waits'>
  readonly states: RequestStates
  /** This process. */
  readonly node: string
}

export interface ParkedCall {
  /** The client as the upstream sees it. */
  readonly client: Client
  /** Aborted when its result is not wanted any more. */
  readonly signal: AbortSignal
  /** The call at the upstream has ended. */
  ended(outcome: ParkedOutcome): void
  /** The first request of the client, until the upstream's call ends or needs input. */
  begin(call: ModernCall): Promise<Result>
  /**
   * The next one, in the same way.
   * @throws GatewayError invalid_params for a response of the wrong shape; then nothing has happened
   */
  resume(call: ModernCall, responses: JsonObject): Promise<Result>
  /** Does it wait for a client that cannot come back? */
  isStranded(): boolean
  /** The call is cancelled. @param error what a request that runs for it ends with; default that of the loss */
  giveUp(loss: ParkedLoss, error?: unknown): void
}

/**
 * Servers that have several requests send them one after the other: so long after the last one, and at most in all. A
 * busy server takes its time between two; a person who is asked notices neither.
 */
const gatherMs = 100
const maxGatherMs = 400

export function createParkedCall(
  first: ModernCall,
  upstream: UpstreamName,
  { clock, park, keep, hold, stands, lease, states, node }: ParkedCallOptions
): ParkedCall {
  const stop = new AbortController()
  const inputs = createPendingInputs()
  const { method } = first.request
  /** The request of the client that runs. */
  let attendant: { readonly call: ModernCall; readonly end: (outcome: ParkedOutcome) => void } | undefined
  /** The endpoint and the capabilities of the newest request, be it over or not. */
  let [endpoint, capabilities] = [first.endpoint, first.client.capabilities]
  let slot: ParkedSlot<ParkedCall> | undefined
  /** The outcome, where the call ended while no request waited for it. */
  let held: (() => ParkedOutcome) | undefined
  let letGo = (): void => {}
  let over = false
  let gathering: { close(): unknown } | undefined
  let [asked, gatheredBy] = [0, 0]

  const toAttendant = (notification: Notification): void =>
    attendant && notifyCaller(attendant.call, upstream, notification, slot === undefined)
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
    // Refused at once where it can never be asked.
    toInputRequest(request, upstream, endpoint, capabilities)
    if (attendant !== undefined) await states.prepare(attendant.call)
    // An endpoint or a caller that the configuration took away is served to the end of the running request only.
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
    if (attendant === undefined) return
    const now = clock.now()
    if (gathering === undefined) gatheredBy = now + maxGatherMs
    gathering?.close()
    gathering = clock.timer(Math.min(gatherMs, Math.max(0, gatheredBy - now)), endRound)
  }

  /** Ends the client's request with all input requests. */
  function endRound(): void {
    gathering = undefined
    if (attendant === undefined || slot === undefined) return
    if (!stands()) return inputs.decline()
    // This request may declare less than the one before.
    const inputRequests = inputs.show((request) => toInputRequest(request, upstream, endpoint, capabilities))
    // All were withdrawn meanwhile: the upstream goes on.
    if (inputs.size() === 0) return
    progress.again()
    const { ref, until } = slot.openRound()
    try {
      const requestState = states.seal(attendant.call, upstream, { parked: { node, ...ref } }, until)
      attendant.end({ result: { resultType: 'input_required', inputRequests, requestState } })
    } catch (error) {
      return giveUp('late', error)
    }
    // A call that expires counts as waiting until it has ended at the upstream.
    lease.waits(() => giveUp('newer'))
  }

  /** The upstream is answered first: a server that can end its work without the client then does. */
  function giveUp(loss: ParkedLoss, error: unknown = lossError(loss)): void {
    over = true
    held = undefined
    letGo()
    gathering?.close()
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
      gathering?.close()
      lease.waits(undefined)
      inputs.cancel(new GatewayError('cancelled', 'The call that this request belongs to has ended.'))
      if (attendant !== undefined) {
        slot?.remove()
        attendant.end(outcome)
      } else if (wanted) ({ held, letGo = letGo } = hold(outcome))
    },
    begin: attend,
    async resume(call, responses) {
      inputs.check(responses, ' The requestState is still good: send it again with the right answer.')
      slot?.closeRound()
      lease.waits(undefined)
      const result = attend(call)
      if (held !== undefined) {
        letGo()
        slot?.remove()
        attendant?.end(held())
      }
      // What is missing is asked for again.
      if (!inputs.answer(responses)) endRound()
      else if (inputs.size() > 0) gather()
      return await result
    },
    /** Not a getter: see pending-inputs.ts. */
    isStranded: () => attendant === undefined && !stands(),
    giveUp
  }
  return parked
}

/** @param hasToken the upstream has the progress token of this very request */
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
