// MCP over the standard input and output of a child process, one JSON-RPC message a line (2025-11-25 basic/transports "stdio", 2026-07-28
// basic/transports/stdio). In the legacy era the process is one session; in the modern one it is nothing but a process.

import { GatewayError, RpcError } from '../protocol/errors.ts'
import { isObject } from '../protocol/messages.ts'
import { latestModern } from '../protocol/revisions.ts'
import { createBucket } from './bucket.ts'
import { deadline } from './clock.ts'
import { decodeJson, idIn, printable } from './decode.ts'
import { closedError } from './endings.ts'
import { createExchange, nobody } from './exchange.ts'
import { createLines } from './lines.ts'
import { createMask } from './mask.ts'
import { initialize } from './link.ts'
import { lostError } from './refusals.ts'
import { createDialect } from './modern/dialect.ts'
import { absent, discoverRequest, isAbsence, probe } from './modern/probe.ts'
import { createRequests } from './modern/requests.ts'
import { createWatches } from './modern/watches.ts'
import { createRetirement } from './retirement.ts'
import { createStderr } from './stderr.ts'
import type { StdioDefinition } from '../config/snapshot.ts'
import type { Era, ModernRevision } from '../protocol/revisions.ts'
import type { Exchange } from './exchange.ts'
import type { Greeting, Link, LinkOptions } from './link.ts'
import type { Absence, Answer, ModernGreeting } from './modern/probe.ts'
import type { Ending, Supervisor } from './process.ts'

// Debug prints of a busy server pass; what goes on and on above this keeps us from everybody else's messages.
const strayPerSecond = 200
const strayBurst = 10_000
/** Enough of a line to mask what is secret in it, and to show what it is. */
const strayBytes = 4_096
const strayLength = 200

export interface StdioLink extends Link {
  /**
   * Asks whether the server is one of 2026-07-28, and begins to use it as one if it is; if not, and the process lives, `greet` may follow.
   * @param patienceMs how long silence is waited for before it counts as a no
   * @throws GatewayError where there is nobody to ask, or there is no common revision
   */
  discover (patienceMs: number, signal: AbortSignal): Promise<ModernGreeting | Absence>
  /** The process has ended. */
  readonly dead: boolean
}

/**
 * Starts the child. What goes wrong at the start rejects the handshake.
 * @throws GatewayError too_many
 */
export function openStdio (definition: StdioDefinition, supervisor: Supervisor, options: LinkOptions): StdioLink {
  const { name, maxMessageBytes, timeoutMs, connectMs } = definition
  const { handshake, events, clock, log, complaints } = options
  let greeting: Greeting | undefined
  let era: Era = 'legacy'
  let version: ModernRevision = latestModern
  let asked = false
  let over = false
  const mask = createMask(definition)
  const stderr = createStderr({ upstream: name, mask, clock, log })
  const stray = createBucket(clock, strayPerSecond, strayBurst)

  const lines = createLines({
    maxBytes: maxMessageBytes,
    line (line) {
      if (over) return
      let message: unknown
      try {
        message = decodeJson(line)
      } catch (error) {
        complaints.warn({ line: printable(mask(line.toString('utf8', 0, strayBytes)), strayLength), reason: (error as Error).message }, 'left out a line of the upstream that is no message')
        return bear()
      }
      exchange.receive(message)
      if (!isObject(message) && !Array.isArray(message)) bear()
    },
    tooLong (head, tail) {
      if (over) return
      complaints.warn({ maxMessageBytes }, 'left out a message of the upstream that is too large')
      const id = idIn(head.toString('latin1'), tail.toString('latin1')) ?? exchange.single()
      if (id !== undefined) exchange.fail(id, new GatewayError('upstream_protocol', `The answer of upstream ${name} is larger than its limit of ${maxMessageBytes} bytes.`, { data: { outcome: 'unknown', upstream: name } }))
      bear()
    }
  })

  /** Servers print banners and debug lines on standard output although they must not; nothing is lost with a few of them. */
  function bear (): void {
    if (stray.take()) return
    lost(new GatewayError('upstream_protocol', `Upstream ${name} floods its standard output with lines that are no messages, so its process was ended: it has to write its log to standard error.`, { data: { outcome: 'unknown', upstream: name } }))
    child.kill()
  }

  function lost (reason: Error): void {
    if (over) return
    over = true
    exchange.end(reason)
    watches.end(reason)
    if (asked) return
    log.debug({ upstream: name, reason: reason.message }, 'the upstream process ended')
    if (greeting !== undefined) events.closed(reason)
  }

  const child = supervisor.spawn(definition, {
    stdout: lines.push,
    stderr: stderr.push,
    ended (how) {
      stderr.end()
      lost(endError(definition, how))
    }
  }, options.use, handshake.share)

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
    dialect: () => era === 'modern' ? dialect : undefined,
    carrier: {
      request (_id, body) {
        if (child.write(lineOf(body))) return
        throw new GatewayError('upstream_unavailable', `Upstream ${name} does not read its input, so the request was not sent. It is hung or overloaded.`, { data: { upstream: name } })
      },
      post (body) {
        if (!child.write(lineOf(body))) log.debug({ upstream: name }, 'dropped a message to an upstream that does not read its input')
      },
      drop () {}
    }
  })

  const dialect = createDialect({ name, clientInfo: handshake.clientInfo, version: () => version, sessionLevel: () => requests.level(), clock, exclusive: definition.isolation !== 'shared' })
  const watches = createWatches({ ...options, name, timeoutMs, exchange: () => exchange })
  const requests = createRequests({
    name, connectMs, clock, log, events, watches, schemas: undefined, exchange: () => exchange,
    // A tool may hand on what it was told itself, or have done half of its work: nothing on this channel says which.
    proves: (_error, { method }) => method !== 'tools/call',
    version: () => version,
    speak: (chosen) => { version = chosen },
    left () {
      if (over || asked) return
      const reason = lostError(name, 'ended: its process no longer speaks revision 2026-07-28')
      asked = true
      watches.end(reason)
      events.closed(reason)
      retirement.begin(reason)
    }
  })
  const retirement = createRetirement(name, requests.request, (reason) => {
    lost(reason)
    child.kill()
  })

  async function ask (revision: ModernRevision, patienceMs: number, signal: AbortSignal): Promise<Answer> {
    const patience = deadline(clock, patienceMs, signal)
    try {
      return { kind: 'result', result: await exchange.request(discoverRequest(revision, handshake.clientInfo), nobody, patience.signal) }
    } catch (error) {
      if (error instanceof RpcError) return { kind: 'error', error: error.error, proper: true }
      if (patience.passed()) return { kind: 'foreign', ...absent(name, `it did not answer server/discover within ${patienceMs / 1000} s`, error), silent: true }
      // Some end at once when anything comes ahead of initialize.
      if (error instanceof GatewayError && (error.code === 'upstream_lost' || error.data['outcome'] === 'unknown') && !signal.aborted) return { kind: 'foreign', ...absent(name, 'it ended, or answered with what is no result', error) }
      throw error
    } finally {
      patience.close()
    }
  }

  async function discover (patienceMs: number, signal: AbortSignal): Promise<ModernGreeting | Absence> {
    era = 'modern'
    const found = await probe(name, (revision) => ask(revision, patienceMs, signal))
    if (isAbsence(found)) {
      era = 'legacy'
      return found
    }
    greeting = found
    version = found.revision
    if (options.use === 'listing') watches.lists(found.capabilities)
    return found
  }

  const speaking: Pick<Exchange, 'request' | 'notify'> = {
    request: (request, client, signal) => (era === 'modern' ? retirement : exchange).request(request, client, signal),
    // A server of 2026-07-28 is told nothing but what a request says.
    notify: (notification) => { if (era === 'legacy') exchange.notify(notification) }
  }

  return {
    exchange: { ...exchange, ...speaking },
    get greeting () { return greeting },
    get dead () { return over },
    discover,
    async greet (signal) {
      const answer = await initialize(exchange, name, handshake, signal)
      greeting = answer
      exchange.notify({ method: 'notifications/initialized' })
      return answer
    },
    close () {
      asked = true
      const reason = closedError(name)
      exchange.end(reason)
      watches.end(reason)
      return child.close()
    },
    destroy (reason) {
      asked = true
      exchange.end(reason)
      watches.end(reason)
      child.kill()
    }
  }
}

function endError ({ name }: StdioDefinition, how: Ending): GatewayError {
  if (how.kind === 'failed') return how.error
  const exit = how.signal === null ? `exit code ${how.code}` : `signal ${how.signal}`
  return new GatewayError('upstream_lost', `The process of upstream ${name} ended (${exit}) before it answered. The request is not sent again; whether it took effect is unknown.`, { data: { outcome: 'unknown', upstream: name } })
}

/**
 * One message as one line. Many servers read with a line reader that also ends a line at U+2028 and U+2029 (Node's readline does),
 * which JSON lets stand in a string: escaped, they mean the same and cut nothing.
 */
function lineOf (body: string): string {
  return `${body.replace(/[\u2028\u2029]/g, (character) => character === '\u2028' ? '\\u2028' : '\\u2029')}\n`
}
