// One call at an older upstream, over all rounds of questions and answers (2026-07-28 basic/patterns/mrtr): each request of the client is
// there for a part of it, and ends with what is asked. Between them nothing of one is kept but what it declared: its client is away.

import { GatewayError } from '../../protocol/errors.ts'
import type { UpstreamName } from '../../protocol/ids.ts'
import { metaOf } from '../../protocol/messages.ts'
import type { JsonObject, Notification, Result, ServerRequest } from '../../protocol/messages.ts'
import type { AskOptions, Client } from '../../protocol/seams.ts'
import { lossError } from '../../session/parked.ts'
import type { Loss, Place, Ticket } from '../../session/parked.ts'
import type { ModernCall } from '../call.ts'
import { passedOn, shapeNews } from './caller.ts'
import { heldOutcome } from './outcomes.ts'
import type { Outcome } from './outcomes.ts'
import { inputRequestOf, isAnswerTo, noAnswerTo, nobodyAsked } from './questions.ts'

export interface RoundsOptions {
  readonly timer: (ms: number, run: () => void) => { close (): unknown }
  /** A place where it waits, for whoever asked. @throws GatewayError too_many */
  readonly park: (rounds: Rounds) => Place<Rounds>
  /** Room for what a client may not come back for. @returns what gives it back; undefined where there is none left */
  readonly keep: (chars: number) => (() => void) | undefined
  /** Is the upstream still there for whoever would come back, and would they be let in? */
  readonly stands: () => boolean
  /** From now on it waits for its client, and is to give up when newer calls need its place; `undefined`: no more. */
  readonly waits: (giveUp: (() => void) | undefined) => void
  /** The `requestState` for the next round. */
  readonly stateOf: (call: ModernCall, ticket: Ticket, until: number) => string
}

export interface Rounds {
  /** Whom the upstream hears of. */
  readonly client: Client
  /** Aborted when nobody wants its result any more. */
  readonly signal: AbortSignal
  /** The call at the upstream has ended. */
  ended (outcome: Outcome): void
  /** The first request of the client, until the upstream's call ends or asks. */
  begin (first: ModernCall): Promise<Result>
  /**
   * The next one, in the same way.
   * @throws GatewayError invalid_params where an answer is none; then nothing has happened
   */
  resume (call: ModernCall, answers: JsonObject): Promise<Result>
  /** Waits for a client that cannot come back. */
  readonly stranded: boolean
  /** Nobody comes back, or is to: the call is cancelled. @param error what a request that runs for it ends with; default that of the loss */
  giveUp (loss: Loss, error?: unknown): void
}

interface Question {
  readonly request: ServerRequest
  readonly answer: (result: unknown) => void
  readonly refuse: (error: Error) => void
  /** Was it part of the last round? */
  shown: boolean
}

/** No other request may come back with questions. */
const mayAsk: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])
/** Servers that ask several things at once do it one after the other. */
const gatherMs = 25

export function createRounds (first: ModernCall, upstream: UpstreamName, { timer, park, keep, stands, waits, stateOf }: RoundsOptions): Rounds {
  const stop = new AbortController()
  const questions = new Map<string, Question>()
  const { method } = first.request
  /** The request of the client that runs. */
  let attendant: { readonly call: ModernCall, readonly end: (outcome: Outcome) => void } | undefined
  /** What the newest request can be asked, be it over or not. */
  let { endpoint, client: { capabilities } } = first
  let place: Place<Rounds> | undefined
  /** How it ended while nobody was there. */
  let held: Outcome | undefined
  let letGo = (): void => {}
  let over = false
  let gathering: { close (): unknown } | undefined
  let asked = 0
  let progress = -Infinity
  /** Progress up to here was reported in earlier rounds. */
  let reported = -Infinity

  function attend (next: ModernCall): Promise<Result> {
    const { signal } = next
    endpoint = next.endpoint
    capabilities = next.client.capabilities
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        place?.leave()
        stop.abort(signal.reason)
      }
      attendant = {
        call: next,
        end (outcome) {
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

  function tell (notification: Notification): void {
    if (attendant === undefined) return
    const { client, request } = attendant.call
    const news = shapeNews(notification, upstream, attendant.call)
    if (news === undefined) return
    if (news.method !== 'notifications/progress') return client.notify(news)
    const value = news.params?.['progress']
    if (typeof value === 'number') {
      // basic/patterns/progress: it increases, over all rounds.
      if (value <= reported) return
      progress = Math.max(progress, value)
    }
    if (place === undefined) return client.notify(news)
    // The upstream has heard the token of the first request; each of them has its own.
    const { progressToken } = metaOf(request.params)
    if (progressToken !== undefined) client.notify({ method: news.method, params: { ...news.params, progressToken } })
  }

  async function ask (request: ServerRequest, { signal }: AskOptions = {}): Promise<unknown> {
    if (!mayAsk.has(method)) return await nobodyAsked(request)
    // Refused at once where it can never be asked.
    inputRequestOf(request, upstream, endpoint, capabilities)
    // What was taken away meanwhile serves the requests that run, to their end, and no further ones.
    if (over || !stands()) return noAnswerTo(request)
    place ??= park(rounds)
    const forget = keep(JSON.stringify(request).length)
    if (forget === undefined) throw new GatewayError('too_many', 'Too much waits for clients to answer. Ask again later.')
    const key = `input-${++asked}`
    return await new Promise((resolve, reject) => {
      const settle = (end: () => void): void => {
        signal?.removeEventListener('abort', onWithdrawn)
        if (!questions.delete(key)) return
        forget()
        end()
      }
      const onWithdrawn = (): void => settle(() => reject(new GatewayError('cancelled', 'The server withdrew its request.')))
      questions.set(key, { request, shown: false, answer: (result) => settle(() => resolve(result)), refuse: (error) => settle(() => reject(error)) })
      signal?.addEventListener('abort', onWithdrawn, { once: true })
      gather()
    })
  }

  function gather (): void {
    if (attendant === undefined) return
    gathering ??= timer(gatherMs, () => {
      gathering = undefined
      endRound()
    })
  }

  /** Ends the client's request with all that is asked. */
  function endRound (): void {
    if (attendant === undefined || place === undefined) return
    if (!stands()) return turnAway()
    const inputRequests: JsonObject = {}
    for (const [key, question] of [...questions]) {
      try {
        inputRequests[key] = inputRequestOf(question.request, upstream, endpoint, capabilities)
        question.shown = true
      } catch (error) {
        question.refuse(error as Error) // This request declares less than the one before.
      }
    }
    // All were withdrawn meanwhile: the upstream goes on.
    if (questions.size === 0) return
    reported = progress
    const { ticket, until } = place.open()
    try {
      attendant.end({ result: { resultType: 'input_required', inputRequests, requestState: stateOf(attendant.call, ticket, until) } })
    } catch (error) {
      return giveUp('late', error)
    }
    // Whoever expires meanwhile still counts as waiting, until the upstream's call has ended.
    waits(() => giveUp('newer'))
  }

  /** The upstream gets its answers first, so that a server which can end its work by itself does. */
  function giveUp (loss: Loss, error: unknown = lossError(loss)): void {
    over = true
    held = undefined
    letGo()
    gathering?.close()
    place?.lose(loss)
    turnAway()
    timer(0, () => stop.abort('the client did not come back with its input'))
    attendant?.end({ error })
  }

  function turnAway (): void {
    for (const { request, answer, refuse } of [...questions.values()]) {
      try {
        answer(noAnswerTo(request))
      } catch (error) {
        refuse(error as Error)
      }
    }
  }

  const rounds: Rounds = {
    client: {
      era: 'modern',
      capabilities: passedOn(first.client.capabilities, first.endpoint),
      logLevel: first.client.logLevel,
      notify: tell,
      ask
    },
    signal: stop.signal,
    ended (outcome) {
      const wanted = !over
      over = true
      gathering?.close()
      waits(undefined)
      for (const { refuse } of [...questions.values()]) refuse(new GatewayError('cancelled', 'The call that this request belongs to has ended.'))
      if (attendant !== undefined) {
        place?.leave()
        attendant.end(outcome)
      } else if (wanted) ({ held, letGo } = heldOutcome(outcome, upstream, keep)) // For whoever comes back.
    },
    begin: attend,
    async resume (next, answers) {
      const shown = [...questions].filter(([, question]) => question.shown)
      const given = shown.filter(([key]) => Object.hasOwn(answers, key))
      for (const [key, { request: { method } }] of given) {
        if (!isAnswerTo(method, answers[key])) throw new GatewayError('invalid_params', `inputResponses[${JSON.stringify(key)}] is no result of ${method}. The requestState is still good: send it again with the right answer.`)
      }
      place?.close()
      waits(undefined)
      const result = attend(next)
      if (held !== undefined) {
        letGo()
        place?.leave()
        attendant?.end(held)
      }
      for (const [key, question] of given) question.answer(answers[key])
      // What is missing is asked for again.
      if (given.length < shown.length) endRound()
      else if (questions.size > 0) gather()
      return await result
    },
    get stranded () { return attendant === undefined && !stands() },
    giveUp
  }
  return rounds
}
