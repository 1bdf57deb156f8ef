// MCP over Streamable HTTP as a client of 2026-07-28: no session, no stream but that of each request. What makes a connection of it is
// what the server said of itself, and the listening that is done here.

import { deadline } from '../clock.ts'
import { deliver } from '../delivery.ts'
import { boundedError, cancelledError, closedError, isRpcError, Refusal } from '../endings.ts'
import { createExchange } from '../exchange.ts'
import { baseHeaders } from '../headers.ts'
import { failureError, lostError } from '../refusals.ts'
import { createRetirement } from '../retirement.ts'
import { isObject, requestMessage } from '../../protocol/messages.ts'
import { latestModern } from '../../protocol/revisions.ts'
import { createDialect } from './dialect.ts'
import { modernHeaders } from './headers.ts'
import { createPost } from './post.ts'
import { discoverRequest, isAbsence, probe } from './probe.ts'
import { createRequests } from './requests.ts'
import { createWatches } from './watches.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import type { ModernRevision } from '../../protocol/revisions.ts'
import type { Egress } from '../egress.ts'
import type { Link, LinkOptions } from '../link.ts'
import type { Absence, Answer, ModernGreeting } from './probe.ts'
import type { SchemaShelf } from './schemas.ts'

export interface ModernLink extends Link {
  /** Asks what the server is, and begins to use it. @throws GatewayError where that proves nothing, or there is no common revision */
  discover (signal: AbortSignal): Promise<ModernGreeting | Absence>
}

/** What says that a server does not know this era; anything else of 4xx and 5xx says nothing about it. */
const foreign: ReadonlySet<number> = new Set([400, 404, 405])

export function openModernHttp (definition: HttpDefinition, egress: Egress, shelf: SchemaShelf, options: LinkOptions): ModernLink {
  const { name, maxMessageBytes: maxBytes, timeoutMs, connectMs } = definition
  const { handshake: { clientInfo }, events, clock, log, complaints } = options
  const url = new URL(definition.url)
  const path = url.pathname + url.search
  // Neither path nor query: many a service has the credential in them.
  const place = url.origin
  const lane = egress.open(definition)
  const { dispatcher } = lane
  const { schemas, release } = shelf.take(definition.hash)
  const base = baseHeaders(definition, clientInfo)
  let version: ModernRevision = latestModern
  let greeting: ModernGreeting | undefined
  let over = false
  let retired = false
  let doubting = false
  const ending = new AbortController()

  const post = createPost({ name, dispatcher, path, place, maxBytes, clock, complaints, exchange: () => exchange, doubt })
  const dialect = createDialect({ name, clientInfo, version: () => version, sessionLevel: () => requests.level(), clock })
  const exchange = createExchange({
    name,
    timeoutMs,
    declared: {},
    exclusive: false,
    events,
    clock,
    log,
    complaints,
    askRoom: options.askRoom,
    batches: () => false,
    dialect: () => dialect,
    carrier: {
      request: (id, body, request) => post.carry(id, body, modernHeaders(request, base, schemas)),
      // Nothing but requests is sent in this revision: closing the response cancels one.
      post () {},
      drop: post.drop
    }
  })
  const watches = createWatches({ ...options, name, timeoutMs, exchange: () => exchange })
  const requests = createRequests({
    name, connectMs, clock, log, events, watches, schemas,
    exchange: () => exchange,
    proves: (error) => error instanceof Refusal,
    version: () => version,
    speak: (chosen) => { version = chosen },
    left: retire
  })
  const retirement = createRetirement(name, requests.request, shut)

  const ask = (signal: AbortSignal) => (revision: ModernRevision): Promise<Answer> => {
    const request = discoverRequest(revision, clientInfo)
    return question({ dispatcher, path, method: 'POST', headers: modernHeaders(request, base, undefined), body: JSON.stringify(requestMessage(0, request)), maxBytes }, signal)
  }

  function question (delivery: Parameters<typeof deliver>[0], signal: AbortSignal): Promise<Answer> {
    return new Promise((resolve, reject) => {
      let streaming = false
      let abort = (): void => {}
      const done = (): void => signal.removeEventListener('abort', giveUp)
      const giveUp = (): void => {
        done()
        abort()
        reject(cancelledError(name))
      }
      const answered = (answer: Answer): void => {
        done()
        // A stream may go on after the answer; whatever else there is has been read.
        if (streaming) abort()
        resolve(answer)
      }
      abort = deliver(delivery, {
        begin (_sessionId, streamed) { streaming = streamed },
        message (value) {
          if (!isObject(value) || value['id'] !== 0) return
          if (isObject(value['result'])) answered({ kind: 'result', result: value['result'] })
          else if (isRpcError(value['error'])) answered({ kind: 'error', error: boundedError(value['error']), proper: false })
        },
        id () {},
        retry () {},
        end (outcome) {
          if (outcome.kind === 'answered') return answered({ kind: 'foreign', reason: failureError(name, place, { kind: 'garbled', reason: `it holds no response to the request (HTTP ${outcome.status})` }) })
          const reason = failureError(name, place, outcome)
          if (outcome.kind === 'garbled') return answered({ kind: 'foreign', reason })
          if (outcome.kind === 'refused' && foreign.has(outcome.status)) {
            const error = isObject(outcome.body) ? outcome.body['error'] : undefined
            return answered(isRpcError(error) ? { kind: 'error', error: boundedError(error), proper: outcome.status === 400 } : { kind: 'foreign', reason })
          }
          done()
          reject(reason)
        }
      })
      if (signal.aborted) giveUp()
      else signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  async function discover (signal: AbortSignal): Promise<ModernGreeting | Absence> {
    const found = await probe(name, ask(signal))
    if (isAbsence(found)) return found
    greeting = found
    version = found.revision
    if (options.use === 'listing') watches.lists(found.capabilities)
    return found
  }

  /** It may have been replaced by an older one under its URL. */
  function doubt (): void {
    if (doubting || over || retired || greeting === undefined) return
    doubting = true
    const limit = deadline(clock, connectMs, ending.signal)
    probe(name, ask(limit.signal))
      .then((found) => { if (isAbsence(found)) retire() })
      .catch((err: unknown) => log.debug({ err, upstream: name }, 'the upstream could not be asked whether it still speaks 2026-07-28'))
      .finally(() => {
        doubting = false
        limit.close()
      })
  }

  /** One refusal must not take away what others wait for: they have POSTs of their own, which end as they end. */
  function retire (): void {
    if (over || retired) return
    retired = true
    const reason = lostError(name, 'ended: the server no longer speaks revision 2026-07-28')
    watches.end(reason)
    options.disproved?.()
    events.closed(reason)
    retirement.begin(reason)
  }

  function shut (reason: Error): void {
    if (over) return
    over = true
    ending.abort()
    exchange.end(reason)
    watches.end(reason)
    release()
    lane.release()
  }

  return {
    exchange: { ...exchange, request: retirement.request, notify () {} },
    get greeting () { return greeting },
    discover,
    async greet (signal) {
      const found = await discover(signal)
      if (isAbsence(found)) throw found.reason
      return found
    },
    async close () { shut(closedError(name)) },
    destroy: shut
  }
}
