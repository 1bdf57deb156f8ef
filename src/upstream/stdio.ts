// MCP over the standard input and output of a child process: one process, one session, one JSON-RPC message a line
// (2025-11-25 basic/transports "stdio").

import { GatewayError } from '../protocol/errors.ts'
import { decodeJson, idIn, printable } from './decode.ts'
import { closedError } from './endings.ts'
import { createExchange } from './exchange.ts'
import { createLines } from './lines.ts'
import { initialize } from './link.ts'
import { createStderr } from './stderr.ts'
import type { StdioDefinition } from '../config/snapshot.ts'
import type { Greeting, Link, LinkOptions } from './link.ts'
import type { Ending, Supervisor } from './process.ts'

/**
 * Starts the child. What goes wrong at the start rejects the handshake.
 * @throws GatewayError too_many
 */
export function openStdio (definition: StdioDefinition, supervisor: Supervisor, options: LinkOptions): Link {
  const { name, maxMessageBytes, timeoutMs } = definition
  const { handshake, events, clock, log } = options
  let greeting: Greeting | undefined
  let asked = false
  const stderr = createStderr({ upstream: name, secrets: Object.values(definition.env), clock, log })

  const lines = createLines({
    maxBytes: maxMessageBytes,
    line (line) {
      let message: unknown
      try {
        message = decodeJson(line)
      } catch (error) {
        // Servers print banners on standard output although they must not; nothing is lost with them.
        log.warn({ upstream: name, line: printable(line.toString('utf8', 0, 400), 200), reason: (error as Error).message }, 'left out a line of the upstream that is no message')
        return
      }
      exchange.receive(message)
    },
    tooLong (head, tail) {
      log.warn({ upstream: name, maxMessageBytes }, 'left out a message of the upstream that is too large')
      const id = idIn(head.toString('latin1'), tail.toString('latin1')) ?? exchange.single()
      if (id !== undefined) exchange.fail(id, new GatewayError('upstream_protocol', `The answer of upstream ${name} is larger than its limit of ${maxMessageBytes} bytes.`, { data: { outcome: 'unknown', upstream: name } }))
    }
  })

  const child = supervisor.spawn(definition, {
    stdout: lines.push,
    stderr: stderr.push,
    ended (how) {
      stderr.end()
      const reason = endError(definition, how)
      exchange.end(reason)
      if (asked) return
      log.warn({ upstream: name, reason: reason.message }, 'the upstream process ended')
      if (greeting !== undefined) events.closed(reason)
    }
  })

  const exchange = createExchange({
    name,
    timeoutMs,
    declared: handshake.capabilities,
    events,
    clock,
    log,
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
