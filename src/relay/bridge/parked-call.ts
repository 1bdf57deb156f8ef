// One call at a legacy upstream, over all rounds of input requests and responses (2026-07-28 basic/patterns/mrtr): each
// request of the client is there for a part of it, and ends with input requests. Between two rounds nothing of a
// request is kept but its endpoint and what it declared.

import { modernClientRequests } from '../../protocol/methods.ts'
import {
  GatewayError,
  type JsonObject,
  metaOf,
  type Notification,
  type Result,
  type ServerRequest,
  type UpstreamName
} from '../../protocol/messages.ts'
import type { Client, ServerRequestOptions } from '../../protocol/seams.ts'
import { lossError, type ParkedLoss, type ParkedSlot, type RoundRef } from '../../session/parked-calls.ts'
import type { Clock } from '../../time/clock.ts'
import type { ModernCall } from '../call/call.ts'
import type { Lease } from '../connections/caller-connections.ts'
import { toInputRequest } from '../client/input-requests.ts'
import { declaredForCaller } from '../client/declared-capabilities.ts'
import { notificationForModern } from '../client/server-messages.ts'
import { type ParkedOutcome, storedOutcome } from './parked-outcome.ts'
import { createPendingInputs, declinedResponse, refuseOutsideInputMethods } from '../client/pending-inputs.ts'

export interface ParkedCallOptions {
  readonly clock: Pick<Clock, 'timer'>
  /** The slot in which it waits. @throws GatewayError too_many */
  readonly park: (rounds: ParkedCall) => ParkedSlot<ParkedCall>
  /** Counts what a client may never come back for. @returns what gives it back; undefined where there is too much */
  readonly keep: (chars: number) => (() => void) | undefined
  /** Is the upstream still configured, and would the caller still be admitted? */
  readonly stands: () => boolean
  /** The connection that it runs on. */
  readonly lease: Pick<Lease, 'waits'>
  /** The `requestState` for the next round. */
  readonly stateOf: (call: ModernCall, ref: RoundRef, until: number) => string
}

export interface ParkedCall {
  /** As the upstream sees it. */
  readonly client: Client
  /** Aborted when its result is not wanted any more. */
  readonly signal: AbortSignal
  /** The call at the upstream has ended. */
  ended(outcome: ParkedOutcome): void
  /** The first request of the client, until the upstream's call ends or needs input. */
  begin(first: ModernCall): Promise<Result>
  /**
   * The next one, in the same way.
   * @throws GatewayError invalid_params for a response of the wrong shape; then nothing has happened
   */
  resume(call: ModernCall, responses: JsonObject): Promise<Result>
  /** Does it wait for a client that cannot come back? */
  readonly stranded: boolean
  /** The call is cancelled. @param error what a request that runs for it ends with; default that of the loss */
  giveUp(loss: ParkedLoss, error?: unknown): void
}

/** Servers that have several requests send them one after the other. */
const gatherMs = 25

export function createParkedCall(
  first: ModernCall,
  upstream: UpstreamName,
  { clock, park, keep, stands, lease, stateOf }: ParkedCallOptions
): ParkedCall {
  const stop = new AbortController()
  const inputs = createPendingInputs()
  const { method } = first.request
  /** The request of the client that runs. */
  let attendant: { readonly call: ModernCall; readonly end: (outcome: ParkedOutcome) => void } | undefined
  /** What the newest request can be asked, be it over or not. */
  let { endpoint } = first
  let { capabilities } = first.client
  let place: ParkedSlot<ParkedCall> | undefined
  /** How it ended while nobody was there. */
  let held: ParkedOutcome | undefined
  let letGo = (): void => {}
  let over = false
  let gathering: { close(): unknown } | undefined
  let asked = 0
  const notifications = createRoundNotifications(upstream)

  function attend(next: ModernCall): Promise<Result> {
    const { signal } = next
    endpoint = next.endpoint
    capabilities = next.client.capabilities
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        place?.remove()
        stop.abort(signal.reason)
      }
      attendant = {
        call: next,
        end(outcome) {
          attendant = undefined
          signal.removeEventListener('abort', onAbort)
          if ('result' in outcome) resolve(outcome.result)
          else reject(outcome.error)
        }
      }
      signal.addEventListener('abort', onAbort, { once: true })
      if (signal.aborted) onAbort()
    })
  }

  async function ask(request: ServerRequest, { signal }: ServerRequestOptions = {}): Promise<unknown> {
    if (modernClientRequests.get(method)?.takesInput !== true) return await refuseOutsideInputMethods(request)
    // Refused at once where it can never be asked.
    toInputRequest(request, upstream, endpoint, capabilities)
    // An endpoint or a caller that the configuration took away is served to the end of the running request only.
    if (over || !stands()) return declinedResponse(request)
    place ??= park(rounds)
    const release = keep(JSON.stringify(request).length)
    if (release === undefined) throw tooMuchWaits()
    const response = inputs.add(`input-${++asked}`, request, signal, release)
    gather()
    return await response
  }

  function gather(): void {
    if (attendant === undefined) return
    gathering ??= clock.timer(gatherMs, () => {
      gathering = undefined
      endRound()
    })
  }

  /** Ends the client's request with all input requests. */
  function endRound(): void {
    if (attendant === undefined || place === undefined) return
    if (!stands()) return inputs.decline()
    // This request may declare less than the one before.
    const inputRequests = inputs.show((request) => toInputRequest(request, upstream, endpoint, capabilities))
    // All were withdrawn meanwhile: the upstream goes on.
    if (inputs.size === 0) return
    notifications.endRound()
    const { ref, until } = place.openRound()
    try {
      attendant.end({
        result: { resultType: 'input_required', inputRequests, requestState: stateOf(attendant.call, ref, until) }
      })
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
    place?.remove(loss)
    inputs.decline()
    clock.timer(0, () => stop.abort('the client did not come back with its input'))
    attendant?.end({ error })
  }

  const rounds: ParkedCall = {
    client: {
      era: 'modern',
      capabilities: declaredForCaller(first, 'modern'),
      logLevel: first.client.logLevel,
      notify(notification) {
        if (attendant !== undefined) notifications.send(notification, attendant.call, place === undefined)
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
        place?.remove()
        attendant.end(outcome)
      } else if (wanted) ({ held, letGo } = storedOutcome(outcome, upstream, keep)) // For whoever comes back.
    },
    begin: attend,
    async resume(next, responses) {
      inputs.check(responses, ' The requestState is still good: send it again with the right answer.')
      place?.closeRound()
      lease.waits(undefined)
      const result = attend(next)
      if (held !== undefined) {
        letGo()
        place?.remove()
        attendant?.end(held)
      }
      // What is missing is asked for again.
      if (!inputs.answer(responses)) endRound()
      else if (inputs.size > 0) gather()
      return await result
    },
    get stranded() {
      return attendant === undefined && !stands()
    },
    giveUp
  }
  return rounds
}

const tooMuchWaits = (): GatewayError =>
  new GatewayError('too_many', 'Too much waits for clients to answer. Ask again later.')

interface RoundNotifications {
  /** @param isFirst whether the upstream has the progress token of this very request */
  send(notification: Notification, call: ModernCall, isFirst: boolean): void
  endRound(): void
}

/**
 * What the request that runs gets of the upstream's notifications: progress increases over all rounds
 * (basic/patterns/progress).
 */
function createRoundNotifications(upstream: UpstreamName): RoundNotifications {
  let progress = -Infinity
  let reported = -Infinity
  return {
    send(notification, call, isFirst) {
      const shaped = notificationForModern(notification, upstream, call)
      if (shaped === undefined) return
      if (shaped.method !== 'notifications/progress') return call.client.notify(shaped)
      const value = shaped.params?.['progress']
      if (typeof value === 'number') {
        if (value <= reported) return
        progress = Math.max(progress, value)
      }
      if (isFirst) return call.client.notify(shaped)
      const { progressToken } = metaOf(call.request.params)
      if (progressToken === undefined) return
      call.client.notify({ method: shaped.method, params: { ...shaped.params, progressToken } })
    },
    endRound() {
      reported = progress
    }
  }
}
