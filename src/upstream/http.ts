// MCP over Streamable HTTP as a client of the legacy era: the session, its headers, its healing and its end
// (2025-11-25 basic/transports "Streamable HTTP"). Calls are the courier's, the standalone stream is `listen.ts`'s.

import { GatewayError } from '../protocol/errors.ts'
import { isObject, notificationMessage, requestMessage } from '../protocol/messages.ts'
import { deadline, within } from './clock.ts'
import { createCourier } from './courier.ts'
import { closedError } from './endings.ts'
import { createExchange } from './exchange.ts'
import { baseHeaders, revisionHeader } from './headers.ts'
import { initialize } from './link.ts'
import { listen } from './listen.ts'
import { createOutbox, send } from './outbox.ts'
import { upgradeCodes } from './modern/probe.ts'
import { failureError, lostError } from './refusals.ts'
import { createPace } from './pace.ts'
import { createReplay } from './replay.ts'
import { createRetirement } from './retirement.ts'
import type { HttpDefinition } from '../config/snapshot.ts'
import type { HttpSession } from './courier.ts'
import type { Outcome } from './delivery.ts'
import type { Egress } from './egress.ts'
import type { Greeting, Link, LinkOptions } from './link.ts'

const goodbyeMs = 1_000

export function openHttp (definition: HttpDefinition, egress: Egress, options: LinkOptions): Link {
  const { name, maxMessageBytes: maxBytes, timeoutMs, connectMs } = definition
  const { handshake, events, clock, random, log, complaints } = options
  const url = new URL(definition.url)
  const path = url.pathname + url.search
  // Neither path nor query: many a service has the credential in them.
  const place = url.origin
  const lane = egress.open(definition)
  const { dispatcher } = lane
  const ending = new AbortController()

  const base = baseHeaders(definition, handshake.clientInfo)
  const blank = sessionOf(base, undefined, undefined)
  let session = blank
  let greeting: Greeting | undefined
  let sessionId: string | undefined
  let stopListening = (): void => {}
  let healing: Promise<void> | undefined
  const awaitingHeal = new Set<number>()
  const pace = createPace(clock)
  let doubting = false
  let retired = false

  const exchange = createExchange({
    name,
    timeoutMs,
    declared: handshake.capabilities,
    exclusive: handshake.exclusive ?? definition.isolation === 'session',
    events,
    clock,
    log,
    complaints,
    askRoom: options.askRoom,
    batches: () => greeting?.revision === '2025-03-26',
    carrier: {
      request (id, body, request) {
        if (request.method === 'initialize') return courier.carry(id, body, blank, (answered) => { sessionId = answered })
        courier.carry(id, body, session)
      },
      post: (body, lost) => outbox.offer(body, ending.signal, lost),
      drop: (id) => courier.drop(id)
    }
  })

  const replay = createReplay(name, exchange, log)
  const retirement = createRetirement(name, replay.request, shut)

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
    upgraded,
    doubt
  })

  const sendIn = (method: 'POST' | 'DELETE', used: HttpSession, body: string | null, signal: AbortSignal): Promise<Outcome> =>
    send({ dispatcher, path, method, headers: method === 'POST' ? used.post : [...used.common], body, maxBytes }, signal)

  const outbox = createOutbox({
    name,
    log,
    send: (body, signal) => sendIn('POST', session, body, signal),
    failed: (outcome) => failureError(name, place, outcome)
  })

  async function shakeHands (signal: AbortSignal): Promise<Greeting> {
    sessionId = undefined
    const answer = await initialize(exchange, name, handshake, signal)
    if (sessionId !== undefined && !/^[\x21-\x7e]{1,4096}$/.test(sessionId)) {
      throw new GatewayError('upstream_protocol', `Upstream ${name} issued a session id that is not visible ASCII.`, { data: { upstream: name } })
    }
    greeting = answer
    session = sessionOf(base, sessionId, answer)
    pace.begun()
    // Awaited, because POSTs overtake each other and a server may refuse what comes before it.
    await outbox.post(JSON.stringify(notificationMessage({ method: 'notifications/initialized' })), signal).catch((error: unknown) => {
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

  /** Something may have changed without our hearing of it. */
  function announceAll (): void {
    for (const kind of ['tools', 'prompts', 'resources'] as const) {
      if (isObject(greeting?.capabilities[kind])) events.listChanged(kind)
    }
    for (const uri of replay.subscriptions()) events.notification({ method: 'notifications/resources/updated', params: { uri } })
  }

  /** 2025-11-25 "Session Management" 4: a 404 means a new session. Once for all who find out at the same time. */
  function heal (dead: HttpSession): Promise<void> {
    if (healing !== undefined) return healing
    if (session !== dead) return Promise.resolve()
    return healing = renew().finally(() => { healing = undefined })
  }

  async function renew (): Promise<void> {
    await pace.turn(ending.signal)
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
    // The new session knows nothing of what the old one was told and had asked, and may offer something else.
    exchange.forget('the server forgot its session')
    replay.repeat(ending.signal)
    announceAll()
  }

  /** The session is gone and cannot be had again. Calls that wait for it were not executed; of the others nobody knows. */
  function die (reason: Error): void {
    if (ending.signal.aborted) return
    for (const id of awaitingHeal) exchange.fail(id, reason)
    shut(failureError(name, place, { kind: 'broken', cause: reason, streamed: false }))
    if (!retired) events.closed(reason)
  }

  /** These errors, with this status, come of the headers and the envelope alone, which a server of this era does not look for. */
  function upgraded (used: HttpSession, id: number, code: number): boolean {
    // The handshake's refusal is for whoever finds out the era.
    if (used === blank || !upgradeCodes.has(code)) return false
    exchange.fail(id, new GatewayError('upstream_unavailable', `Upstream ${name} was upgraded and speaks another revision now; the request was not executed. Try again.`, { data: { upstream: name } }))
    if (retired || ending.signal.aborted) return true
    retired = true
    const reason = lostError(name, 'ended: the server was upgraded and speaks another revision now')
    stopListening()
    options.disproved?.()
    events.closed(reason)
    retirement.begin(reason)
    return true
  }

  /** Servers built on an early example of the SDK answer 400, not 404, once they have forgotten a session. */
  function doubt (suspect: HttpSession): void {
    if (doubting || retired || session !== suspect) return
    doubting = true
    const limit = deadline(clock, connectMs, ending.signal)
    sendIn('POST', suspect, JSON.stringify(requestMessage('still-there', { method: 'ping' })), limit.signal)
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
    // Answers and cancels of the last call: the end of the connection must not overtake them.
    await within(clock, goodbyeMs, outbox.drained())
    const stop = new AbortController()
    // 2025-11-25 "Session Management" 5; the server may say 405.
    if (session.id !== undefined) await within(clock, goodbyeMs, sendIn('DELETE', session, null, stop.signal))
    stop.abort()
    ending.abort()
    lane.release()
  }

  return {
    namesCalls: true,
    exchange: { ...exchange, request: retirement.request },
    get greeting () { return greeting },
    greet: shakeHands,
    close: () => closing ??= goodbye(),
    destroy: (reason) => { if (!ending.signal.aborted) shut(reason) }
  }
}

function sessionOf (base: readonly string[], id: string | undefined, greeting: Greeting | undefined): HttpSession {
  const common = [...base, ...id === undefined ? [] : ['mcp-session-id', id], ...revisionHeader(greeting?.revision)]
  return { id, common, post: ['accept', 'application/json, text/event-stream', 'content-type', 'application/json', ...common] }
}
