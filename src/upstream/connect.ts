// From a definition to a connection that is ready for requests.

import { GatewayError } from '../protocol/errors.ts'
import { isModernRevision } from '../protocol/revisions.ts'
import { deadline } from './clock.ts'
import { createComplaints } from './complaints.ts'
import { createEras, Undiscovered } from './era.ts'
import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import type { Handshake, Upstream, UpstreamEvents } from '../protocol/seams.ts'
import type { Clock } from './clock.ts'
import type { Egress } from './egress.ts'
import type { Greeting, Link, LinkOptions } from './link.ts'
import type { Supervisor, Use } from './process.ts'

export interface Connector {
  /**
   * Opens a connection and does the handshake, within `connectMs`. `use` counts for the limits of processes; default `calls`.
   * @throws GatewayError upstream_unavailable, upstream_protocol, too_many; cancelled where the signal says so
   */
  connect (definition: UpstreamDefinition, handshake: Handshake, events: UpstreamEvents, signal?: AbortSignal, use?: Use): Promise<Upstream>
}

export interface ConnectorOptions {
  readonly supervisor: Supervisor
  readonly egress: Egress
  readonly clock: Clock
  /** Between 0 and 1; spreads reconnections. */
  readonly random: () => number
  readonly log: Log
}

export function createConnector ({ supervisor, egress, clock, random, log }: ConnectorOptions): Connector {
  const eras = createEras({ egress, supervisor })

  return {
    async connect (definition, handshake, events, signal, use = 'calls') {
      const { name, connectMs } = definition
      if (signal?.aborted === true) throw new GatewayError('cancelled', `Connecting to upstream ${name} was given up.`)
      // Two tenants may call their upstreams by the same name.
      const placed = log.child({ tenant: definition.tenant })
      const options: LinkOptions = { handshake, events, clock, random, log: placed, complaints: createComplaints(name, clock, placed), use }
      const limit = deadline(clock, connectMs, signal)
      try {
        return upstreamOf(definition, await eras.connect(definition, options, limit.signal))
      } catch (found) {
        const error = found instanceof Undiscovered ? found.cause : found
        const told = limit.passed() ? lateError(definition) : startError(definition, error)
        throw found instanceof Undiscovered && told instanceof GatewayError ? undiscoveredError(told) : told
      } finally {
        limit.close()
      }
    }
  }
}

function lateError ({ name, connectMs }: UpstreamDefinition): GatewayError {
  return new GatewayError('upstream_unavailable', `Upstream ${name} did not answer initialize or server/discover within ${connectMs / 1000} s (connectMs).`, { data: { upstream: name } })
}

/** A server that keeps silent, or fails, when it is asked what it does not know would be served well in its own era. */
function undiscoveredError ({ code, message, cause, data: { outcome: _none, ...data } }: GatewayError): GatewayError {
  return new GatewayError(code, `${message} Only server/discover was sent to it. If it is an older server, which does not answer what it does not know, set era: legacy in its configuration.`, { cause, data })
}

// No call was sent yet, so its outcome is not unknown: it may be tried again.
function startError ({ name }: UpstreamDefinition, error: unknown): unknown {
  if (!(error instanceof GatewayError) || (error.code !== 'upstream_lost' && error.code !== 'upstream_timeout')) return error
  return new GatewayError('upstream_unavailable', `Upstream ${name} ended during its start. ${error.message.replace(/ The request is not sent again.*$/, '')}`, { cause: error, data: { upstream: name } })
}

function upstreamOf ({ name }: UpstreamDefinition, link: Link): Upstream {
  const first = link.greeting
  if (first === undefined) throw new Error('a link that has not shaken hands is no upstream')
  const latest = (): Greeting => link.greeting ?? first
  return {
    name,
    era: isModernRevision(first.revision) ? 'modern' : 'legacy',
    get revision () { return latest().revision },
    get capabilities () { return latest().capabilities },
    get serverInfo () { return latest().serverInfo },
    get instructions () { return latest().instructions },
    namesCalls: link.namesCalls,
    owed: link.exchange.owed,
    request: link.exchange.request,
    notify: link.exchange.notify,
    close: () => link.close(),
    destroy: (reason) => link.destroy(reason)
  }
}

