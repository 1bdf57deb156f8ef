// HTTP requests of which only the status counts: notifications and responses of a session, pings, and the DELETE that
// ends it. For a server that does not accept messages, a bounded queue is all that is held.

import { randomBytes } from 'node:crypto'
import { notificationMessage, requestMessage } from '../../protocol/messages.ts'
import { textBytes, withMemory } from '../../limits/memory.ts'
import type { JsonText } from '../../protocol/json-text.ts'
import { failureError } from '../rpc/errors.ts'
import type { HttpOutcome } from './outcome.ts'
import { sendRequest } from './request.ts'
import { type Clock, deadline, noReason, pause, settledWithin } from '../../time/clock.ts'
import type { Log } from '../../observe/log.ts'
import {
  headerText,
  type HttpRequest,
  type HttpTarget,
  openTarget,
  postHeaders,
  revisionHeader,
  type TargetContext
} from './target.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import type { UpstreamSession } from '../../protocol/seams.ts'
import type { Egress } from './socket-pool.ts'
import type { HttpSession } from './streamable-calls.ts'

const givenUp = (): HttpOutcome => ({ kind: 'unsent', cause: new Error('given up') })

/** Sends one message once. Never rejects; an aborted request counts as `unsent`, and is not begun. */
export function sendForStatus(
  target: HttpTarget,
  request: Omit<HttpRequest, 'statusOnly' | 'use'>,
  signal: AbortSignal
): Promise<HttpOutcome> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(givenUp())
    const end = (outcome: HttpOutcome): void => {
      signal.removeEventListener('abort', giveUp)
      resolve(outcome)
    }
    const giveUp = (): void => {
      open.abort()
      end(givenUp())
    }
    const open = sendRequest(target, { ...request, use: 'others', statusOnly: true }, { message() {}, end })
    signal.addEventListener('abort', giveUp, { once: true })
  })
}

/** Makes a ping with an id that no other connection of the session has used (2025-11-25 basic "Requests"). */
const pingText = (): JsonText =>
  JSON.stringify(requestMessage(`still-there-${randomBytes(9).toString('base64url')}`, { method: 'ping' }))

/** Statuses of a ping that prove nothing about the session: the credential was refused, or the server is busy. */
const passing: ReadonlySet<number> = new Set([401, 403, 408, 429, 502, 503, 504])

type Found = 'known' | 'gone' | 'unknown' | 'unclear'

/** The time between a refused ping and the second one, in milliseconds. */
const askAgainMs = 1_000

/**
 * Finds out by a ping whether the server still knows a session; by a second ping where the first proves nothing.
 * @param headers the headers of a POST of the session
 * @param limit the deadline; closed by this function
 * @returns `known`; `gone`: the server says that there is no such session; `unclear`: it refused both pings for a
 * reason that may have nothing to do with the session
 * @throws GatewayError upstream_*: the server cannot be asked now
 */
export async function askForSession(
  target: HttpTarget,
  headers: string,
  clock: Clock,
  limit: ReturnType<typeof deadline>
): Promise<Found> {
  try {
    const known = await askOnce(target, headers, limit)
    if (known !== 'unclear') return known
    await pause(clock, askAgainMs, limit.signal)
    return await askOnce(target, headers, limit)
  } finally {
    limit.close()
  }
}

async function askOnce(target: HttpTarget, headers: string, limit: ReturnType<typeof deadline>): Promise<Found> {
  const ping = { method: 'POST' as const, headers, body: pingText() }
  const outcome = await sendForStatus(target, ping, limit.signal)
  if (limit.passed()) return 'unknown'
  if (outcome.kind === 'refused' && outcome.status === 404) return 'gone'
  if (outcome.kind === 'refused') return passing.has(outcome.status) ? 'unclear' : 'unknown'
  if (outcome.kind !== 'answered') throw failureError(target.name, target.origin, outcome)
  return 'known'
}

/** The most POSTs at once; then the most messages that wait, and their characters together. Others are dropped. */
const maxPosts = 64
const maxWaiting = 1_000
const maxWaitingLength = 16 * 1024 * 1024

export function createPostQueue(
  { name, origin, memory }: HttpTarget,
  log: Log,
  send: (body: JsonText, signal: AbortSignal) => Promise<HttpOutcome>
) {
  const waiting: Parameters<typeof start>[] = []
  let waitingLength = 0
  let posts = 0
  let empty: PromiseWithResolvers<void> | undefined
  let losing = false

  async function post(body: JsonText, signal: AbortSignal): Promise<void> {
    const outcome = await send(body, signal)
    if (outcome.kind !== 'answered') throw failureError(name, origin, outcome)
  }

  function start(body: JsonText, signal: AbortSignal, lost: (() => void) | undefined, release: () => void): void {
    posts++
    post(body, signal)
      .catch((err: unknown) => {
        log.debug({ err, upstream: name }, 'the upstream did not take a message')
        lost?.()
      })
      .finally(() => {
        release()
        posts--
        const next = nextWaiting()
        if (next !== undefined) return start(...next)
        if (posts > 0) return
        empty?.resolve()
        empty = undefined
      })
  }

  /** Without those of a connection that has ended: a thousand of them, one after the other, would fill a turn. */
  function nextWaiting(): Parameters<typeof start> | undefined {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [body, signal, lost, release] = next
      waitingLength -= body.length
      if (!signal.aborted) return next
      lost?.()
      release()
    }
    return undefined
  }

  return {
    /**
     * Posts `notifications/initialized` and waits for the status, because POSTs may overtake each other and a server
     * may refuse earlier messages. A server that does not accept it is used all the same.
     */
    async postInitialized(signal: AbortSignal): Promise<void> {
      await post(JSON.stringify(notificationMessage({ method: 'notifications/initialized' })), signal).catch(
        (error: unknown) => {
          if (signal.aborted) throw error
          log.warn({ err: error, upstream: name }, 'the upstream did not take notifications/initialized')
        }
      )
    },
    /** Sends a message when there is a free slot; a refusal is logged. @param lost called after a refusal */
    enqueue(body: JsonText, signal: AbortSignal, lost?: () => void): void {
      const hasRoom =
        posts < maxPosts || (waiting.length < maxWaiting && waitingLength + body.length <= maxWaitingLength)
      const release = hasRoom ? withMemory(memory, textBytes(body), () => {}) : undefined
      if (release !== undefined) {
        losing = false
        if (posts < maxPosts) return start(body, signal, lost, release)
        waitingLength += body.length
        waiting.push([body, signal, lost, release])
        return
      }
      if (!losing) log.warn({ upstream: name }, 'messages are lost to an upstream that does not take them')
      losing = true
      lost?.()
    },
    /** Resolves when no POST is open and none waits. Never rejects. */
    drained(): Promise<void> {
      if (posts === 0) return Promise.resolve()
      empty ??= Promise.withResolvers()
      return empty.promise
    }
  }
}

/**
 * The time for each of the two steps of closing a session, in milliseconds; both together fit into `closeMs` of the
 * pool. Shorter would not do: where many sessions end at once, a busy server takes more than a second to receive every
 * DELETE.
 */
export const endMs = 3_000

/** The session id and the revision that requests of a session carry; before the handshake there is neither. */
export type SessionNames = { readonly [Each in 'id' | 'revision']?: UpstreamSession[Each] | undefined }

export function sessionOf(target: HttpTarget, { id, revision }: SessionNames = {}): HttpSession {
  const own = id === undefined ? '' : headerText(['mcp-session-id', id])
  const headers = target.headers + own + revisionHeader(revision)
  return { id, headers, postHeaders: postHeaders + headers }
}

/**
 * Sends the DELETE of a session (2025-11-25 basic/transports "Session Management" 5); a server may answer 405. Takes at
 * most `endMs`; never rejects.
 */
export async function sendEnd(target: HttpTarget, { headers }: HttpSession, clock: Clock): Promise<void> {
  const stop = new AbortController()
  await settledWithin(clock, endMs, sendForStatus(target, { method: 'DELETE', headers, body: null }, stop.signal))
  stop.abort(noReason)
}

/** Ends a session that no connection uses, with the credential of its definition. */
export async function endSession(
  definition: HttpDefinition,
  egress: Egress,
  link: TargetContext,
  session: SessionNames
): Promise<void> {
  const { name: upstream, tenant } = definition
  const target = openTarget(definition, egress, link)
  const limit = deadline(link.clock, endMs, undefined)
  try {
    await link.credential?.ready(limit.signal)
    await sendEnd(target, sessionOf(target, session), link.clock)
    link.log.debug({ upstream, tenant }, 'a session that nobody is in any more was ended')
  } catch (err) {
    link.log.debug({ err, upstream, tenant }, 'a session stays at the upstream until that ends it')
  } finally {
    limit.close()
    target.release()
  }
}

/** The POST of a message in a session. */
export const postIn = (
  target: HttpTarget,
  { postHeaders: headers }: HttpSession,
  body: JsonText,
  signal: AbortSignal
): Promise<HttpOutcome> => sendForStatus(target, { method: 'POST', headers, body }, signal)

/** @returns the status with which the server refuses a ping in the session; undefined: it accepts the ping */
export async function pingRefusal(
  target: HttpTarget,
  session: HttpSession,
  limit: ReturnType<typeof deadline>
): Promise<number | undefined> {
  const outcome = await postIn(target, session, pingText(), limit.signal)
  limit.close()
  return outcome.kind === 'refused' ? outcome.status : undefined
}
