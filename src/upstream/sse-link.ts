// MCP over HTTP+SSE as a client (2024-11-05 basic/transports "HTTP with SSE"): one stream brings everything, messages are posted where
// its first event says. The stream is the session: when it ends, so does the connection, and nothing is sent again.

import { GatewayError } from '../protocol/errors.ts'
import { isObject, notificationMessage } from '../protocol/messages.ts'
import { deadline } from './clock.ts'
import { deliver } from './delivery.ts'
import { idIn, printable } from './decode.ts'
import { closedError } from './endings.ts'
import { createExchange, nobody } from './exchange.ts'
import { baseHeaders, revisionHeader } from './headers.ts'
import { initialize } from './link.ts'
import { createOutbox, send } from './outbox.ts'
import { failureError, lostError } from './refusals.ts'
import type { HttpDefinition } from '../config/snapshot.ts'
import type { Outcome } from './delivery.ts'
import type { Egress } from './egress.ts'
import type { Greeting, Link, LinkOptions } from './link.ts'

export interface SseLink extends Link {
  /**
   * Opens the stream and waits for its first event. Once.
   * @returns undefined where it says where to post; else why there is no HTTP+SSE at this URL
   * @throws GatewayError where the server could not be asked, or asks for what is refused
   */
  reach (signal: AbortSignal): Promise<GatewayError | undefined>
}

/** A server answers a POST when it has taken the message; one that does not is not waited for once the result is there. */
const lingerMs = 1_000

export function openSse (definition: HttpDefinition, egress: Egress, options: LinkOptions): SseLink {
  const { name, maxMessageBytes: maxBytes, timeoutMs, connectMs } = definition
  const { handshake, events, clock, log, complaints } = options
  const url = new URL(definition.url)
  // Neither path nor query: many a service has the credential in them. The address of the messages holds a session id.
  const place = url.origin
  const lane = egress.open(definition)
  const { dispatcher } = lane
  const ending = new AbortController()
  const base = baseHeaders(definition, handshake.clientInfo)
  const first = Promise.withResolvers<GatewayError | undefined>()
  /** POSTs of requests that the server has not answered yet. */
  const carried = new Map<number, AbortController>()
  /** Those of them that are answered on the stream. */
  const lingering = new WeakSet<AbortController>()

  // Whoever waits for it is told; nobody else has to be.
  first.promise.catch(() => {})
  let opened = false
  let greeting: Greeting | undefined
  let greeted = false
  let dead: Error | undefined
  let postPath: string | undefined
  let stopStream = (): void => {}
  let doubting = false

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
      request: carry,
      post: (body, lost) => outbox.offer(body, ending.signal, lost),
      drop (id) {
        carried.get(id)?.abort()
        carried.delete(id)
      }
    }
  })

  const sendOne = (body: string, signal: AbortSignal): Promise<Outcome> => {
    const headers = ['accept', 'application/json, text/event-stream', 'content-type', 'application/json', ...base, ...revisionHeader(greeting?.revision)]
    return send({ dispatcher, path: postPath ?? '', method: 'POST', headers, body, maxBytes }, signal)
  }

  const outbox = createOutbox({
    name,
    log,
    send: sendOne,
    failed (outcome) {
      if (outcome.kind === 'refused') judge(outcome.status)
      return failureError(name, place, outcome)
    }
  })

  function carry (id: number, body: string): void {
    const stop = new AbortController()
    carried.set(id, stop)
    void sendOne(body, stop.signal).then((outcome) => {
      carried.delete(id)
      // The answer comes on the stream.
      if (outcome.kind === 'answered' || !exchange.waiting(id)) return
      // The server's own error for this very request says more than the status.
      if (outcome.kind === 'refused' && outcome.status < 500 && isObject(outcome.body) && outcome.body['id'] === id) exchange.receive(outcome.body, id)
      exchange.fail(id, greeted && outcome.kind === 'refused' && outcome.status === 404 ? forgottenError() : failureError(name, place, outcome))
      if (outcome.kind === 'refused') judge(outcome.status)
    })
  }

  const forgottenError = (): GatewayError =>
    new GatewayError('upstream_unavailable', `Upstream ${name} forgot its session (HTTP 404), so the request was not executed. Try again.`, { data: { upstream: name, status: 404 } })

  /** A refused POST may mean that the server forgot the session, whose stream it has not closed: many say 400 for that, not 404. */
  function judge (status: number): void {
    if (status === 404) return die(lostError(name, 'ended: the server no longer knows its session'))
    if (status !== 400 || !greeted || doubting) return
    doubting = true
    const limit = deadline(clock, connectMs, ending.signal)
    exchange.request({ method: 'ping' }, nobody, limit.signal)
      .catch((error: unknown) => {
        if (error instanceof GatewayError && error.data['status'] === 400) die(lostError(name, 'ended: the server no longer knows its session'))
      })
      .finally(() => {
        doubting = false
        limit.close()
      })
  }

  function open (): void {
    let streaming = false
    stopStream = deliver({ dispatcher, path: url.pathname + url.search, method: 'GET', headers: ['accept', 'text/event-stream', ...base], body: null, maxBytes }, {
      begin (_sessionId, streamed) { streaming = streamed },
      endpoint (uri) {
        if (postPath !== undefined) return log.debug({ upstream: name }, 'the upstream named another address for messages, which is not used')
        const target = URL.canParse(uri, url.href) ? new URL(uri, url) : undefined
        // Whoever names another origin would be sent the credentials of the definition.
        if (target?.origin !== url.origin) {
          const where = target === undefined ? 'a place that is no URL' : printable(target.origin, 200)
          return die(new GatewayError('upstream_protocol', `Upstream ${name} wants its messages at ${where}, which is not the origin of its url; they would carry its credentials there. Set its url to where the server itself says it is.`, { data: { upstream: name } }))
        }
        postPath = target.pathname + target.search
        first.resolve(undefined)
      },
      message (value) {
        if (!streaming || postPath === undefined) return absent('it does not begin with the event "endpoint"')
        exchange.receive(value)
        const id = isObject(value) ? value['id'] : undefined
        if (typeof id === 'number' && carried.has(id) && !exchange.waiting(id)) linger(id)
      },
      unusable ({ reason, oversized, head, tail }) {
        if (postPath === undefined) return absent(reason)
        complaints.warn({ reason }, 'left out an event of the upstream')
        const id = idIn(head, tail) ?? (oversized ? exchange.single() : undefined)
        if (id !== undefined) exchange.fail(id, failureError(name, place, { kind: 'garbled', reason }))
      },
      id () {},
      retry () {},
      end: ended
    })
    if (dead !== undefined) stopStream()
  }

  function linger (id: number): void {
    const stop = carried.get(id)
    // A server may repeat its answer without end.
    if (stop === undefined || lingering.has(stop)) return
    lingering.add(stop)
    clock.timer(lingerMs, () => { stop.abort() }).unref()
  }

  /** There is something at the URL, but it is not this transport. */
  function absent (reason: string): void {
    first.resolve(new GatewayError('upstream_protocol', `Upstream ${name} does not speak HTTP+SSE at ${place}: ${reason}. Check its url and type.`, { data: { upstream: name } }))
    stopStream()
  }

  function ended (outcome: Outcome): void {
    if (postPath === undefined) {
      if (outcome.kind === 'garbled') return absent(outcome.reason)
      if (outcome.kind === 'answered') return absent(outcome.streamed ? 'its stream ended without the event "endpoint"' : 'GET is not answered with an event stream')
      if (outcome.kind === 'refused' && outcome.status >= 400 && outcome.status < 500 && ![401, 403, 408, 429].includes(outcome.status)) return absent(`GET is refused (HTTP ${outcome.status})`)
      return die(failureError(name, place, outcome))
    }
    if (outcome.kind === 'garbled') return die(failureError(name, place, outcome))
    die(lostError(name, 'ended', outcome.kind === 'broken' ? outcome.cause : undefined))
  }

  /** The stream is gone, and with it the session: of the calls in flight nobody knows. */
  function die (reason: Error): void {
    if (dead !== undefined) return
    shut(reason)
    if (greeted) events.closed(reason)
  }

  function shut (reason: Error): void {
    if (dead !== undefined) return
    dead = reason
    first.reject(reason)
    exchange.end(reason)
    ending.abort()
    stopStream()
    for (const stop of carried.values()) stop.abort()
    lane.release()
  }

  async function reach (signal: AbortSignal): Promise<GatewayError | undefined> {
    if (!opened) open()
    opened = true
    const giveUp = (): void => first.reject(new GatewayError('cancelled', `Connecting to upstream ${name} was given up.`))
    if (signal.aborted) giveUp()
    signal.addEventListener('abort', giveUp, { once: true })
    return await first.promise.finally(() => signal.removeEventListener('abort', giveUp))
  }

  return {
    exchange,
    reach,
    get greeting () { return greeting },
    async greet (signal) {
      const absence = await reach(signal)
      if (absence !== undefined) throw absence
      greeting = await initialize(exchange, name, handshake, signal)
      // Awaited, because POSTs overtake each other and a server may refuse what comes before it.
      await outbox.post(JSON.stringify(notificationMessage({ method: 'notifications/initialized' })), signal).catch((error: unknown) => {
        if (signal.aborted) throw error
        log.warn({ err: error, upstream: name }, 'the upstream did not take notifications/initialized')
      })
      if (dead !== undefined) throw dead
      greeted = true
      return greeting
    },
    // Nothing has to be said: the end of the stream is the end of the session.
    async close () { shut(closedError(name)) },
    destroy: shut
  }
}
