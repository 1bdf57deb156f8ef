// MCP over Streamable HTTP as a client of the legacy era: the session, its headers, its healing and its end
// (2025-11-25 basic/transports "Streamable HTTP"). Calls are the courier's, the standalone stream is `listen.ts`'s.

import { GatewayError } from '../protocol/errors.ts'
import { isObject, notificationMessage, requestMessage } from '../protocol/messages.ts'
import { atLeast } from '../protocol/revisions.ts'
import { deadline, within } from './clock.ts'
import { createCourier } from './courier.ts'
import { deliver } from './delivery.ts'
import { closedError } from './endings.ts'
import { createExchange, nobody } from './exchange.ts'
import { initialize } from './link.ts'
import { listen } from './listen.ts'
import { failureError } from './refusals.ts'
import type { HttpDefinition } from '../config/snapshot.ts'
import type { JsonObject } from '../protocol/messages.ts'
import type { HttpSession } from './courier.ts'
import type { Outcome } from './delivery.ts'
import type { Egress } from './egress.ts'
import type { Greeting, Link, LinkOptions } from './link.ts'

/** Ours to set; what a definition says for them is left out. */
const reserved = new Set(['accept', 'accept-encoding', 'connection', 'content-length', 'content-type', 'last-event-id', 'mcp-protocol-version', 'mcp-session-id', 'transfer-encoding'])

const goodbyeMs = 1_000
/** Notifications and answers on their way at once; a server that takes none of them loses the rest. */
const maxPosts = 64

export function openHttp (definition: HttpDefinition, egress: Egress, options: LinkOptions): Link {
  const { name, maxMessageBytes: maxBytes, timeoutMs, connectMs } = definition
  const { handshake, events, clock, random, log } = options
  const url = new URL(definition.url)
  const path = url.pathname + url.search
  const place = url.origin + url.pathname
  const lane = egress.open(definition)
  const { dispatcher } = lane
  const ending = new AbortController()

  const base = baseHeaders(definition, `${handshake.clientInfo.name}/${handshake.clientInfo.version}`)
  const blank = sessionOf(base, undefined, undefined)
  let session = blank
  let greeting: Greeting | undefined
  let sessionId: string | undefined
  let level: JsonObject | undefined
  let stopListening = (): void => {}
  let healing: Promise<void> | undefined
  const awaitingHeal = new Set<number>()
  let doubting = false
  let posts = 0

  const exchange = createExchange({
    name,
    timeoutMs,
    declared: handshake.capabilities,
    events,
    clock,
    log,
    batches: () => greeting?.revision === '2025-03-26',
    carrier: {
      request (id, body, request) {
        if (request.method === 'initialize') return courier.carry(id, body, blank, (answered) => { sessionId = answered })
        if (request.method === 'logging/setLevel') level = request.params
        courier.carry(id, body, session)
      },
      post (body) {
        if (posts >= maxPosts) return log.warn({ upstream: name }, 'dropped a message to an upstream that takes none')
        post(body, ending.signal).catch((err: unknown) => log.debug({ err, upstream: name }, 'the upstream did not take a message'))
      },
      drop: (id) => courier.drop(id)
    }
  })

  const courier = createCourier({
    name,
    dispatcher,
    path,
    place,
    maxBytes,
    clock,
    exchange: () => exchange,
    session: () => session,
    heal: (dead, id) => {
      awaitingHeal.add(id)
      return heal(dead).finally(() => { awaitingHeal.delete(id) })
    },
    doubt
  })

  /** One request whose answer carries nothing for us but its status. */
  function send (method: 'POST' | 'DELETE', used: HttpSession, body: string | null, signal: AbortSignal): Promise<Outcome> {
    return new Promise((resolve) => {
      const done = (outcome: Outcome): void => {
        signal.removeEventListener('abort', giveUp)
        resolve(outcome)
      }
      const giveUp = (): void => {
        abort()
        done({ kind: 'unsent', cause: new Error('given up') })
      }
      const abort = deliver({ dispatcher, path, method, headers: method === 'POST' ? used.post : [...used.common], body, maxBytes }, {
        begin () {}, message () {}, id () {}, retry () {}, end: done
      })
      if (signal.aborted) giveUp()
      else signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  async function post (body: string, signal: AbortSignal): Promise<void> {
    posts++
    try {
      const outcome = await send('POST', session, body, signal)
      if (outcome.kind !== 'answered') throw failureError(name, place, outcome)
    } finally {
      posts--
    }
  }

  async function shakeHands (signal: AbortSignal): Promise<Greeting> {
    sessionId = undefined
    const answer = await initialize(exchange, name, handshake, signal)
    if (sessionId !== undefined && !/^[\x21-\x7e]{1,4096}$/.test(sessionId)) {
      throw new GatewayError('upstream_protocol', `Upstream ${name} issued a session id that is not visible ASCII.`, { data: { upstream: name } })
    }
    greeting = answer
    session = sessionOf(base, sessionId, answer)
    // Awaited, because POSTs overtake each other and a server may refuse what comes before it.
    await post(JSON.stringify(notificationMessage({ method: 'notifications/initialized' })), signal).catch((error: unknown) => {
      if (signal.aborted) throw error
      log.warn({ err: error, upstream: name }, 'the upstream did not take notifications/initialized')
    })
    stopListening()
    const own = session
    stopListening = listen({
      upstream: name,
      dispatcher,
      path,
      headers: session.common,
      maxBytes,
      clock,
      random,
      log,
      message: (value) => exchange.receive(value),
      missed: announceAll,
      gone: () => { heal(own).catch(() => {}) } // `heal` ends the connection itself when it fails.
    })
    return answer
  }

  function announceAll (): void {
    for (const kind of ['tools', 'prompts', 'resources'] as const) {
      if (isObject(greeting?.capabilities[kind])) events.listChanged(kind)
    }
  }

  /** 2025-11-25 "Session Management" 4: a 404 means a new session. Once for all who find out at the same time. */
  function heal (dead: HttpSession): Promise<void> {
    if (healing !== undefined) return healing
    if (session !== dead) return Promise.resolve()
    return healing = renew().finally(() => { healing = undefined })
  }

  async function renew (): Promise<void> {
    log.info({ upstream: name }, 'the upstream forgot its session; starting a new one')
    const limit = deadline(clock, connectMs, ending.signal)
    try {
      await shakeHands(limit.signal)
    } catch (cause) {
      const error = limit.passed() ? new GatewayError('upstream_unavailable', `Upstream ${name} forgot its session and did not start a new one within ${connectMs / 1000} s (connectMs).`, { cause, data: { upstream: name } }) : cause
      die(error as Error)
      throw error
    } finally {
      limit.close()
    }
    // The new session knows nothing of what the old one was told, and may offer something else.
    if (level !== undefined) {
      exchange.request({ method: 'logging/setLevel', params: level }, nobody, ending.signal)
        .catch((err: unknown) => log.warn({ err, upstream: name }, 'the new session did not take the log level'))
    }
    announceAll()
  }

  /** The session is gone and cannot be had again. Calls that wait for it were not executed; of the others nobody knows. */
  function die (reason: Error): void {
    if (ending.signal.aborted) return
    for (const id of awaitingHeal) exchange.fail(id, reason)
    shut(failureError(name, place, { kind: 'broken', cause: reason, streamed: false }))
    events.closed(reason)
  }

  /** Servers built on an early example of the SDK answer 400, not 404, once they have forgotten a session. */
  function doubt (suspect: HttpSession): void {
    if (doubting || session !== suspect) return
    doubting = true
    const limit = deadline(clock, connectMs, ending.signal)
    send('POST', suspect, JSON.stringify(requestMessage('still-there', { method: 'ping' })), limit.signal)
      .then((outcome) => outcome.kind === 'refused' && (outcome.status === 400 || outcome.status === 404) ? heal(suspect) : undefined)
      .catch(() => {}) // `heal` ends the connection itself when it fails.
      .finally(() => {
        doubting = false
        limit.close()
      })
  }

  function shut (reason: Error): void {
    ending.abort()
    stopListening()
    exchange.end(reason)
    lane.release()
  }

  let closing: Promise<void> | undefined
  async function goodbye (): Promise<void> {
    if (ending.signal.aborted) return
    stopListening()
    exchange.end(closedError(name))
    const stop = new AbortController()
    // 2025-11-25 "Session Management" 5; the server may say 405.
    if (session.id !== undefined) await within(clock, goodbyeMs, send('DELETE', session, null, stop.signal))
    stop.abort()
    ending.abort()
    lane.release()
  }

  return {
    exchange,
    get greeting () { return greeting },
    greet: shakeHands,
    close: () => closing ??= goodbye(),
    destroy: (reason) => { if (!ending.signal.aborted) shut(reason) }
  }
}

function baseHeaders (definition: HttpDefinition, agent: string): string[] {
  const own = Object.entries(definition.headers).filter(([name]) => !reserved.has(name.toLowerCase()))
  const named = own.some(([name]) => name.toLowerCase() === 'user-agent')
  return ['accept-encoding', 'identity', ...named ? [] : ['user-agent', agent.replace(/[^\x21-\x7e]+/g, '-')], ...own.flat()]
}

function sessionOf (base: readonly string[], id: string | undefined, greeting: Greeting | undefined): HttpSession {
  const common = [...base]
  if (id !== undefined) common.push('mcp-session-id', id)
  if (greeting !== undefined && atLeast(greeting.revision, '2025-06-18')) common.push('mcp-protocol-version', greeting.revision)
  return { id, common, post: ['accept', 'application/json, text/event-stream', 'content-type', 'application/json', ...common] }
}
