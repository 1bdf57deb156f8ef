// MCP over the standard input and output of a child process: one process, one session, one JSON-RPC message a line
// (2025-11-25 basic/transports "stdio").

import { GatewayError } from '../protocol/errors.ts'
import { isObject } from '../protocol/messages.ts'
import { createBucket } from './bucket.ts'
import { decodeJson, idIn, printable } from './decode.ts'
import { closedError } from './endings.ts'
import { createExchange } from './exchange.ts'
import { createLines } from './lines.ts'
import { createMask } from './mask.ts'
import { initialize } from './link.ts'
import { createStderr } from './stderr.ts'
import type { StdioDefinition } from '../config/snapshot.ts'
import type { Greeting, Link, LinkOptions } from './link.ts'
import type { Ending, Supervisor } from './process.ts'

// Debug prints of a busy server pass; what goes on and on above this keeps us from everybody else's messages.
const strayPerSecond = 200
const strayBurst = 10_000
/** Enough of a line to mask what is secret in it, and to show what it is. */
const strayBytes = 4_096
const strayLength = 200

/**
 * Starts the child. What goes wrong at the start rejects the handshake.
 * @throws GatewayError too_many
 */
export function openStdio (definition: StdioDefinition, supervisor: Supervisor, options: LinkOptions): Link {
  const { name, maxMessageBytes, timeoutMs } = definition
  const { handshake, events, clock, log, complaints } = options
  let greeting: Greeting | undefined
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
  }, options.use)

  const exchange = createExchange({
    name,
    timeoutMs,
    declared: handshake.capabilities,
    exclusive: definition.isolation === 'session',
    events,
    clock,
    log,
    complaints,
    batches: () => greeting?.revision === '2025-03-26',
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

  return {
    exchange,
    get greeting () { return greeting },
    async greet (signal) {
      const answer = await initialize(exchange, name, handshake, signal)
      greeting = answer
      exchange.notify({ method: 'notifications/initialized' })
      return answer
    },
    close () {
      asked = true
      exchange.end(closedError(name))
      return child.close()
    },
    destroy (reason) {
      asked = true
      exchange.end(reason)
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
