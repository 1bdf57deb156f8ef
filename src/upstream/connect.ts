// From a definition to a connection that is ready for requests.

import { GatewayError } from '../protocol/errors.ts'
import { isModernRevision } from '../protocol/revisions.ts'
import { createAskRooms } from './ask-room.ts'
import { deadline } from './clock.ts'
import { createComplaints } from './complaints.ts'
import { Down } from './endings.ts'
import { createEras, Undiscovered } from './era.ts'
import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import type { Handshake, Upstream, UpstreamEvents } from '../protocol/seams.ts'
import type { AskRooms } from './ask-room.ts'
import type { Clock } from './clock.ts'
import type { Egress } from './egress.ts'
import type { Greeting, Link, LinkOptions } from './link.ts'
import type { Supervisor, Use } from './process.ts'

export interface Connector {
  /**
   * Opens a connection and does the handshake, within `connectMs`. `use` counts for the limits of processes; default `calls`.
   * @throws GatewayError upstream_unavailable (a `Down` where that is so whoever asks), upstream_protocol, too_many; cancelled where the signal says so
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
  /** For what servers ask; default that of a whole process. */
  readonly askRooms?: AskRooms
}

export function createConnector ({ supervisor, egress, clock, random, log, askRooms = createAskRooms() }: ConnectorOptions): Connector {
  const eras = createEras({ egress, supervisor })

  return {
    async connect (definition, handshake, events, signal, use = 'calls') {
      const { name, connectMs } = definition
      if (signal?.aborted === true) throw new GatewayError('cancelled', `Connecting to upstream ${name} was given up.`)
      // Two tenants may call their upstreams by the same name.
      const placed = log.child({ tenant: definition.tenant })
      const options: LinkOptions = { handshake, events, clock, random, log: placed, complaints: createComplaints(name, clock, placed), askRoom: askRooms.open(definition), use }
      const limit = deadline(clock, connectMs, signal)
      try {
        return upstreamOf(definition, await eras.connect(definition, options, limit.signal))
      } catch (found) {
        const undiscovered = found instanceof Undiscovered
        // A caller may declare what a server chokes on.
        const undeclared = undiscovered || Object.keys(handshake.capabilities).length === 0
        const told = limit.passed() ? lateError(definition, undeclared ? Down : GatewayError) : startError(definition, undiscovered ? found.cause : found)
        throw undiscovered && told instanceof GatewayError ? undiscoveredError(told) : told
      } finally {
        limit.close()
      }
    }
  }
}

function lateError ({ name, connectMs }: UpstreamDefinition, Kind: typeof GatewayError): GatewayError {
  return new Kind('upstream_unavailable', `Upstream ${name} did not answer initialize or server/discover within ${connectMs / 1000} s (connectMs).`, { data: { upstream: name } })
}

/** A server that keeps silent, or fails, when it is asked what it does not know would be served well in its own era. */
function undiscoveredError (error: GatewayError): GatewayError {
  const { code, message, cause, data: { outcome: _none, ...data } } = error
  return new (error instanceof Down ? Down : GatewayError)(code, `${message} Only server/discover was sent to it. If it is an older server, which does not answer what it does not know, set era: legacy in its configuration.`, { cause, data })
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

