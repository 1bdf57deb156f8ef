// The client of a session before a server of another revision. An answer of a modern server that asks for input becomes
// server requests to the client, and the request is sent again with their responses (2026-07-28 basic/patterns/mrtr).

import { noteAnswered, noteRound, noteSent, tracedAnswer, tracedRequest } from '../../observe/call-notes.ts'
import { type HeldMemory, holdMemory } from '../../limits/memory.ts'
import { atLeast, GatewayError, metaOf, type Request, type Result } from '../../protocol/messages.ts'
import type { Client, Upstream } from '../../protocol/seams.ts'
import { hasCapability } from '../../protocol/methods.ts'
import { withParam } from '../../protocol/translate/rewrite.ts'
import { wrapStructured } from '../../protocol/translate/wrap-structured.ts'
import type { Store } from '../../store/port.ts'
import { abortable, type Clock, pause } from '../../time/clock.ts'
import type { ServerRequestQuotas } from '../../upstream/rpc/server-requests.ts'
import { definitionOf, type LegacyCall, scopeOf } from '../call/call.ts'
import { createMonotonicProgress, type MonotonicProgress } from '../call/monotonic-progress.ts'
import type { Listings } from '../catalog/listings.ts'
import { askSession } from '../client/ask-session.ts'
import { failureForSession } from '../client/client-errors.ts'
import { declaredForSession } from '../client/declared-capabilities.ts'
import { forwardableRequest, withoutInputResponses } from '../client/modern-client.ts'
import type { SessionConnection } from '../connections/session-connections.ts'
import { waitedFor } from '../tasks/await-task.ts'
import { createModernTasks } from '../tasks/modern-for-session.ts'
import type { SessionTasks } from '../tasks/session-tasks.ts'
import { callAsTask, requiresTask } from '../tasks/task-required-tools.ts'
import type { SessionCallClient } from './session-clients.ts'

/**
 * Is the request for a server of another era? Tasks of servers of both eras are too: sessions speak to them in the
 * older one, in which they may have none, while the endpoint offers what they have in the newer one.
 */
function isBridged({ era, capabilities }: Upstream, request: Request): boolean {
  if (era === 'modern') return true
  return (
    (wantedTask(request) !== undefined || request.method.startsWith('tasks/')) &&
    !hasCapability(capabilities, ['tasks'])
  )
}

/** The most rounds of a call, as in the official SDKs. */
const maxRounds = 8
/** A server that asks for nothing but to come again is not hurried. */
const stateOnlyMs = 250

export type InputLoop = ReturnType<typeof createInputLoop>

export function createInputLoop({
  clock,
  store,
  newId,
  listings,
  serverRequestQuotas,
  tasks: sessionTasks
}: {
  readonly clock: Clock
  readonly store: Store
  readonly newId: () => string
  readonly listings: Pick<Listings, 'all'>
  /** The quotas of input requests that wait for their responses. */
  readonly serverRequestQuotas: Pick<ServerRequestQuotas, 'open'>
  readonly tasks: Pick<SessionTasks, 'toClient'>
}) {
  const tasks = createModernTasks({
    clock,
    store,
    quotas: serverRequestQuotas,
    newId,
    taskId(call, { name }, id) {
      const definition = definitionOf(call, name)
      return sessionTasks.toClient(call.session, { definition, scope: scopeOf(definition, call.session) })(id)
    }
  })

  /**
   * Below 2025-11-25 a client has no way to ask for a task; above, it is told that it has to ("Tool-Level Negotiation"
   * 1).
   */
  const needsTask = (call: LegacyCall, { name }: Upstream, { method, params }: Request): boolean =>
    method === 'tools/call' &&
    !atLeast(call.session.session.record.revision, '2025-11-25') &&
    requiresTask(listings, definitionOf(call, name), params?.['name'])

  /** @param held counts the answers of the client @returns the first result that asks for nothing */
  async function converse(
    call: LegacyCall,
    upstream: Upstream,
    request: Request,
    progress: MonotonicProgress,
    held: HeldMemory
  ): Promise<Result> {
    let next = request
    let answersBytes = 0
    for (let round = 0; ; round++) {
      const sent = tracedRequest(call.record, next, upstream.name)
      const result = await tracedAnswer(call.record, upstream.request(sent, progress.client, call.signal))
      if (result['resultType'] !== 'input_required') return result
      if (round === maxRounds)
        throw fault(upstream, `asks for input more than ${maxRounds} times during one call`, { outcome: 'unknown' })
      const { inputRequests, requestState } = result
      if (inputRequests === undefined && typeof requestState !== 'string')
        throw fault(upstream, 'asks for input without saying which')
      if (inputRequests === undefined) await pause(clock, stateOnlyMs, call.signal)
      const inputResponses =
        inputRequests === undefined
          ? undefined
          : await askSession(call, {
              upstream: upstream.name,
              requests: inputRequests,
              retained: result,
              quotas: serverRequestQuotas,
              held,
              newElicitationId: newId
            })
      // Neither the answers nor the state of the round before: the server has put into its state what it still needs.
      const answered = inputResponses === undefined ? request : withParam(request, 'inputResponses', inputResponses)
      next = typeof requestState === 'string' ? withParam(answered, 'requestState', requestState) : answered
      held.set((answersBytes = held.bytes - answersBytes))
      progress.again()
      noteRound(call.record)
    }
  }

  /** A call, and what has become of it. */
  async function conversation(
    call: LegacyCall,
    upstream: Upstream,
    given: Request,
    client: Client,
    wrapsResult: boolean
  ): Promise<Result> {
    const wanted = wantedTask(given)
    const wrapped = given.method === 'tools/call' && upstream.era === 'modern' && wrapsResult
    const progress = createMonotonicProgress(client, metaOf(given.params)['progressToken'])
    // Answers and a state of the client's own making would be taken for what the server asked for.
    const first = withoutInputResponses(forwardableRequest(given))
    const held = holdMemory(call.session.memory.share)
    const talk = converse(call, upstream, first, progress, held).finally(held.retain())
    const result = await (wanted === undefined ? talk.then(withoutRestOfTask) : talk)
    if (result['resultType'] !== 'task') {
      const last =
        given.method === 'tools/call' && upstream.era === 'modern' ? forSession(call, result, wrapped) : plain(result)
      return wanted === undefined ? last : await tasks.ended(call, upstream, last, wanted)
    }
    if (wanted !== undefined) return tasks.created(upstream, result, wrapped)
    return forSession(call, await tasks.finished(call, upstream, result, progress), wrapped)
  }

  return {
    /**
     * Sends a request of a session to an upstream: to one of its own era once, to a modern one once more for each time
     * that it asked for input.
     * @param asked as the session would send it to a server of its own revision
     * @param client the call's own, towards this upstream
     * @param wrapsResult the client was shown the tool's `outputSchema` wrapped
     * @param reconnect a connection to the same server, where this one ended while a person thought about a response
     * @returns a result that the session can take
     * @throws RpcError, GatewayError: none of 2026-07-28 alone (-32020 to -32022)
     */
    async request(
      call: LegacyCall,
      { upstream: first }: SessionConnection,
      asked: Request,
      client: SessionCallClient,
      wrapsResult: boolean,
      reconnect: () => Promise<SessionConnection>
    ): Promise<Result> {
      const sentAt = noteSent(call.record, clock)
      const isBridge = isBridged(first, asked)
      // A conversation has a span for each round of it.
      const isTalk = isBridge && !asked.method.startsWith('tasks/')
      const given = isTalk ? asked : tracedRequest(call.record, asked, first.name)
      if (!isBridge) {
        try {
          const answer = needsTask(call, first, given)
            ? callAsTask(first, given, client, call.signal, clock)
            : first.request(given, sentOnce(call, given, client), call.signal)
          return await tracedAnswer(call.record, answer)
        } finally {
          noteAnswered(call.record, clock, sentAt)
        }
      }
      const upstream = reconnecting(first, reconnect)
      try {
        if (isTalk) return await conversation(call, upstream, given, client, wrapsResult)
        const shaped = (result: Result, wrapped: boolean): Result => forSession(call, result, wrapped)
        return await tracedAnswer(call.record, tasks.handle(call, upstream, given, client, shaped))
      } catch (error) {
        const result = failureForSession(error, call, upstream.name, declaredForSession(call, upstream.capabilities))
        const wanted = wantedTask(given)
        return wanted === undefined ? result : await tasks.ended(call, upstream, result, wanted)
      } finally {
        noteAnswered(call.record, clock, sentAt)
      }
    }
  }
}

/**
 * Of a request that is sent no second time, the arguments are let go of once they are sent. Those that the endpoint has
 * added some to are a copy, which holds what the caller gave.
 */
const sentOnce = ({ request }: LegacyCall, { params }: Request, client: SessionCallClient): Client =>
  client.letGo !== undefined && params?.['arguments'] === request.params?.['arguments']
    ? { ...client, sent: client.letGo }
    : client

/** A task that its caller does not know is waited for here, and little of it is held meanwhile. */
const withoutRestOfTask = (result: Result): Result =>
  result['resultType'] === 'task' ? { ...waitedFor(result), resultType: 'task' } : result

const wantedTask = ({ method, params }: Request): unknown => (method === 'tools/call' ? params?.['task'] : undefined)

/**
 * A modern server keeps nothing between two requests, so that each of them may take whichever connection there is by
 * then.
 */
function reconnecting(first: Upstream, reconnect: () => Promise<SessionConnection>): Upstream {
  let used = false
  return {
    ...first,
    async request(request, client, signal) {
      const upstream = used ? (await abortable(reconnect(), signal)).upstream : first
      used = true
      if (upstream.era !== first.era)
        throw fault(upstream, 'was replaced by a server of another era, which knows nothing of the call', {
          outcome: 'unknown'
        })
      return await upstream.request(request, client, signal)
    }
  }
}

function forSession(call: LegacyCall, result: Result, wrapped: boolean): Result {
  // Before that there is no structured content, and what there is becomes text (protocol/translate/revision-shape.ts).
  return atLeast(call.session.session.record.revision, '2025-06-18')
    ? wrapStructured(plain(result), wrapped)
    : plain(result)
}

/** Returns the result without the members that only 2026-07-28 has. */
function plain(result: Result): Result {
  const { resultType: _type, ttlMs: _ttl, cacheScope: _scope, ...rest } = result
  return rest
}

function fault({ name }: Upstream, what: string, data: Record<string, unknown> = {}): GatewayError {
  return new GatewayError('upstream_protocol', `Upstream ${name} ${what}.`, { data: { ...data, upstream: name } })
}
