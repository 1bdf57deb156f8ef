// The client of a session before a server of another revision, which may want several requests where the client has made one. Of a modern
// server an answer that asks for input becomes questions to the client, and the request is sent again with the answers (2026-07-28
// basic/patterns/mrtr), until the server has its last word.

import { GatewayError } from '../protocol/errors.ts'
import { has } from '../protocol/merge.ts'
import { metaOf } from '../protocol/messages.ts'
import type { Request, Result } from '../protocol/messages.ts'
import { withParam } from '../protocol/rewrite.ts'
import { atLeast } from '../protocol/revisions.ts'
import type { Client, Upstream } from '../protocol/seams.ts'
import { wrapStructured } from '../protocol/wrap-structured.ts'
import type { Store } from '../store/port.ts'
import type { AskRooms } from '../upstream/ask-room.ts'
import { createBridgedTasks } from './bridged-tasks.ts'
import type { Call } from './call.ts'
import { definitionOf } from './floor.ts'
import { askAll, declaredToModern } from './fulfil-asks.ts'
import { excused } from './fulfil-errors.ts'
import type { Listings } from './listings.ts'
import { cleaned } from './modern/caller.ts'
import { withoutAnswers } from './modern/calls.ts'
import { finished } from './modern/old-task-calls.ts'
import { pause } from './pace.ts'
import type { PaceClock } from './pace.ts'
import { createRising } from './rising.ts'
import type { Rising } from './rising.ts'
import { createTaskOnly } from './task-only.ts'
import { whileWanted } from './wanted.ts'

export interface FulfilOptions {
  readonly clock: PaceClock
  readonly store: Store
  readonly randomBytes: (size: number) => Buffer
  readonly listings: Pick<Listings, 'all'>
  /** For what is asked. */
  readonly askRooms: Pick<AskRooms, 'open'>
  /** Was the `outputSchema` of the called tool shown wrapped to clients of older revisions? */
  readonly wraps: (call: Call) => boolean
  /** A task's id at the upstream, as the client knows it. */
  readonly taskId: (call: Call, upstream: Upstream, id: string) => string
}

export interface Fulfiller {
  /**
   * Sends a request of a session to an upstream: to one of its own era once, to a modern one once more for each time that it asked for input.
   * @param given as the session would send it to a server of its own revision
   * @param client the call's own, towards this upstream
   * @param connect a connection to the same server, where this one may have ended while somebody thought about an answer
   * @returns a result that the session can take
   * @throws RpcError, GatewayError: none of 2026-07-28 alone (-32020 to -32022)
   */
  request (call: Call, upstream: Upstream, given: Request, client: Client, connect: () => Promise<Upstream>): Promise<Result>
}

/**
 * Is a request one to a server of another era? All to modern servers are. Those about tasks to servers of both eras are too: sessions speak to them in the older
 * one, in which they may have none, while the endpoint offers what they have in the newer one.
 */
function isBridged ({ era, capabilities }: Upstream, request: Request): boolean {
  if (era === 'modern') return true
  return (wantedTask(request) !== undefined || request.method.startsWith('tasks/')) && !has(capabilities, ['tasks'])
}

/** As the official SDKs have it. */
const maxRounds = 8
/** A server that asks for nothing but to come again is not hurried. */
const stateOnlyMs = 250

export function createFulfiller ({ clock, store, randomBytes, listings, askRooms, wraps, taskId }: FulfilOptions): Fulfiller {
  const mint = (): string => randomBytes(16).toString('base64url')
  const tasks = createBridgedTasks({ clock, store, askRooms, mint, taskId })
  const taskOnly = createTaskOnly(listings)

  /** Below 2025-11-25 a client has no way to ask for a task; above, it is told that it has to ("Tool-Level Negotiation" 1). */
  const needsTask = (call: Call, { name }: Upstream, { method, params }: Request): boolean =>
    method === 'tools/call' && !atLeast(call.live.session.record.revision, '2025-11-25') && taskOnly(definitionOf(call, name), params?.['name'])

  /** @returns the first result that asks for nothing */
  async function converse (call: Call, upstream: Upstream, request: Request, rising: Rising): Promise<Result> {
    let next = request
    for (let round = 0; ; round++) {
      const result = await upstream.request(next, rising.client, call.signal)
      if (result['resultType'] !== 'input_required') return result
      if (round === maxRounds) throw fault(upstream, `asks for input more than ${maxRounds} times during one call`, { outcome: 'unknown' })
      const { inputRequests, requestState } = result
      if (inputRequests === undefined && typeof requestState !== 'string') throw fault(upstream, 'asks for input without saying which')
      if (inputRequests === undefined) await pause(clock, stateOnlyMs, call.signal)
      const inputResponses = inputRequests === undefined ? undefined : await askAll(call, { upstream: upstream.name, requests: inputRequests, kept: result, askRooms, mint })
      // Neither the answers nor the state of the round before: the server has put into its state what it still needs.
      const answered = inputResponses === undefined ? request : withParam(request, 'inputResponses', inputResponses)
      next = typeof requestState === 'string' ? withParam(answered, 'requestState', requestState) : answered
      rising.again()
    }
  }

  /** A call, and what has become of it. */
  async function conversation (call: Call, upstream: Upstream, given: Request, client: Client): Promise<Result> {
    const wanted = wantedTask(given)
    const wrapped = given.method === 'tools/call' && upstream.era === 'modern' && wraps(call)
    const rising = createRising(client, metaOf(given.params)['progressToken'])
    // Answers and a state of the client's own making would be taken for what the server asked for.
    const result = await converse(call, upstream, withoutAnswers(cleaned(given)), rising)
    if (result['resultType'] !== 'task') {
      const last = given.method === 'tools/call' && upstream.era === 'modern' ? forSession(call, result, wrapped) : plain(result)
      return wanted === undefined ? last : await tasks.ended(call, upstream, last, wanted)
    }
    if (wanted !== undefined) return tasks.created(upstream, result, wrapped)
    return forSession(call, await tasks.finished(call, upstream, result, rising), wrapped)
  }

  return {
    async request (call, first, given, client, connect) {
      if (!isBridged(first, given)) return await (needsTask(call, first, given) ? finished(first, given, client, call.signal, clock) : first.request(given, client, call.signal))
      const upstream = lasting(first, connect)
      try {
        return given.method.startsWith('tasks/')
          ? await tasks.handle(call, upstream, given, client, (result, wrapped) => forSession(call, result, wrapped))
          : await conversation(call, upstream, given, client)
      } catch (error) {
        const result = excused(error, call, upstream, declaredToModern(call, upstream.capabilities))
        const wanted = wantedTask(given)
        return wanted === undefined ? result : await tasks.ended(call, upstream, result, wanted)
      }
    }
  }
}

const wantedTask = ({ method, params }: Request): unknown => method === 'tools/call' ? params?.['task'] : undefined

/** A modern server keeps nothing between two requests, so that each of them may take whichever connection there is by then. */
function lasting (first: Upstream, connect: () => Promise<Upstream>): Upstream {
  let used = false
  return {
    ...first,
    async request (request, client, signal) {
      const upstream = used ? await whileWanted(connect(), signal) : first
      used = true
      if (upstream.era !== first.era) throw fault(upstream, 'was replaced by a server of another era, which knows nothing of the call', { outcome: 'unknown' })
      return await upstream.request(request, client, signal)
    }
  }
}

function forSession (call: Call, result: Result, wrapped: boolean): Result {
  // Before that there is no structured content, and what there is becomes text (protocol/shape).
  return atLeast(call.live.session.record.revision, '2025-06-18') ? wrapStructured(plain(result), wrapped) : plain(result)
}

/** Without what only 2026-07-28 says of a result. */
function plain (result: Result): Result {
  const { resultType: _type, ttlMs: _ttl, cacheScope: _scope, ...rest } = result
  return rest
}

function fault ({ name }: Upstream, what: string, data: Record<string, unknown> = {}): GatewayError {
  return new GatewayError('upstream_protocol', `Upstream ${name} ${what}.`, { data: { ...data, upstream: name } })
}
