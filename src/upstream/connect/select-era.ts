// Selects the protocol era for a server: the one that the definition names, or the one that the server answers in
// (2026-07-28 basic/versioning "Backward Compatibility"). The probes are `server/discover`, `initialize` and a GET,
// nothing else. A server that is down or refuses the credential proves nothing about its era.

import { GatewayError, RpcError } from '../../protocol/messages.ts'
import { missesSessionId } from '../http/discover-http.ts'
import { openModernHttp } from '../http/modern-link.ts'
import { openTarget } from '../http/target.ts'
import { type NotModern, isNotModern, modernCodes } from '../modern/discover.ts'
import { createParamHeaderCaches } from '../modern/param-header-cache.ts'
import { type Link, discard } from '../rpc/link.ts'
import { type StdioLink, openStdio } from '../stdio/stdio-link.ts'
import { continuedLink } from './continued-link.ts'
import { createDiscoveryCache, createTransportSelector } from './select-transport.ts'
import { upstreamError } from '../rpc/errors.ts'
import { ProcessEndedError } from '../stdio/start-error.ts'
import type { HttpDefinition, StdioDefinition, UpstreamDefinition } from '../../config/snapshot.ts'
import type { Clock } from '../../time/clock.ts'
import type { Egress } from '../http/socket-pool.ts'
import type { LinkContext } from '../rpc/transport.ts'
import type { Supervisor } from '../stdio/supervisor.ts'

/** A legacy server is probed again after this time: an upgraded one would go on working in the legacy era. */
const legacyLifetimeMs = 10 * 60_000
/** A server that has not answered `server/discover` by then is taken for a legacy one that ignores unknown methods. */
const maxSilenceMs = 5_000

/** The ways to connect to one server; each era may be tried more than once. */
interface Attempts {
  legacy(): Promise<Link>
  /** @param known the server was modern before, so that silence does not make it a legacy one */
  modern(known: boolean): Promise<Link | NotModern>
  /** Over HTTP: finds out by a GET whether the server keeps sessions of the legacy era. Sends no MCP message. */
  showsSessions?(): Promise<boolean>
  /** Releases sockets or the process that no connection uses. @param connected whether a link was opened */
  end(connected: boolean): void
}

/** Thrown where `server/discover`, the only request sent, did not tell the era; `cause` says why. */
export class Undiscovered extends Error {}

/**
 * @returns a function that opens a link and does its handshake: in the era that the definition names, else in the one
 * that the caller prefers, if the server supports that
 */
export function createEraSelector(egress: Egress, supervisor: Supervisor, clock: Clock) {
  const openLegacyHttp = createTransportSelector(egress, clock)
  const paramHeaders = createParamHeaderCaches()
  /** `onlyModern`: the server has refused the legacy era. */
  const eras = createDiscoveryCache<'legacy' | 'modern' | 'onlyModern' | 'both'>(clock)
  /** The servers of both eras that keep no sessions in the legacy one. */
  const sessionless = createDiscoveryCache<true>(clock)

  function httpAttempts(definition: HttpDefinition, context: LinkContext, signal: AbortSignal): Attempts {
    // Leased for all attempts, so that the second attempt uses the socket of the first.
    const sockets = egress.open(definition, context)
    return {
      legacy: () => openLegacyHttp(definition, context, signal),
      async modern() {
        const link = openModernHttp(definition, egress, paramHeaders, context)
        const found = await link.discover(signal).catch((error: unknown) => {
          discard(link, context.log)
          throw error
        })
        if (!isNotModern(found)) return link
        discard(link, context.log)
        return found
      },
      async showsSessions() {
        const target = openTarget(definition, egress, context)
        return await missesSessionId(target, signal).finally(target.release)
      },
      end: sockets.release
    }
  }

  function stdioAttempts(definition: StdioDefinition, context: LinkContext, signal: AbortSignal): Attempts {
    let link: StdioLink | undefined
    // Both eras are tried with one process, unless the first probe ended it.
    const alive = () => (link = link === undefined || link.isDead() ? openStdio(definition, supervisor, context) : link)
    return {
      async legacy() {
        const used = alive()
        await used.handshake(signal)
        return used
      },
      async modern(known) {
        const before = link
        const used = alive()
        const { connectMs } = definition
        const found = await used.discover(known ? connectMs : Math.min(connectMs / 3, maxSilenceMs), signal)
        if (!isNotModern(found)) return used
        // The probe of the other era had ended the process: the question is repeated to a new one.
        return used === before && used.isDead() ? await this.modern(known) : found
      },
      end(connected) {
        if (!connected && link !== undefined) discard(link, context.log)
      }
    }
  }

  /** Connects for legacy callers: in the legacy era, unless the server has only the modern one or is better in it. */
  async function legacyFirst(definition: UpstreamDefinition, context: LinkContext, attempts: Attempts): Promise<Link> {
    const { hash, name } = definition
    try {
      const link = await attempts.legacy()
      const known = eras.get(hash)
      if (link.hasSession?.() === true && known === 'modern') eras.set(hash, 'both')
      if (link.hasSession?.() !== false || known === 'legacy') return link
      const found = await attempts.modern(true).catch(() => undefined)
      if (found !== undefined && isNotModern(found)) eras.set(hash, 'legacy', legacyLifetimeMs)
      if (found === undefined || isNotModern(found)) return link
      discard(link, context.log)
      sessionless.set(hash, true, legacyLifetimeMs)
      return found
    } catch (refusal) {
      if (!isModernRefusal(refusal)) throw refusal
      const found = await attempts.modern(false)
      if (isNotModern(found)) throw refusal
      context.log.info({ upstream: name }, 'the upstream speaks 2026-07-28 only')
      eras.set(hash, 'onlyModern')
      return found
    }
  }

  async function modernFirst(definition: UpstreamDefinition, context: LinkContext, attempts: Attempts): Promise<Link> {
    const { hash, name, type } = definition
    const known = eras.get(hash)
    const found = await attempts.modern(known !== undefined).catch((error: unknown) => {
      // Over stdio a silent server costs a known era a long wait: the next connection probes anew.
      if (type === 'stdio') eras.delete(hash)
      throw type === 'http' && known === undefined && isSilence(error)
        ? new Undiscovered('nothing but server/discover was sent', { cause: error })
        : error
    })
    if (!isNotModern(found)) {
      eras.set(hash, known ?? (found.handshakeResult()?.namesLegacy === true ? 'both' : 'modern'))
      return found
    }
    eras.delete(hash)
    const reason = found.reason.message
    context.log.debug({ upstream: name, reason }, 'the upstream is spoken to in the legacy era')
    // A server that did not answer may only have been slow to start.
    const link = await (found.silent ? legacyFirst(definition, context, attempts) : attempts.legacy())
    if (link.handshakeResult()?.revision !== '2026-07-28') eras.set(hash, 'legacy', legacyLifetimeMs)
    return link
  }

  /**
   * Connects for a view over HTTP. A server that has only 2026-07-28 is not sent an `initialize`; one that keeps no
   * sessions in the legacy era is used in the modern one, because without a session it cannot send server requests.
   */
  async function sessionFirst(definition: UpstreamDefinition, context: LinkContext, attempts: Attempts): Promise<Link> {
    if (eras.get(definition.hash) === 'both' || (await attempts.showsSessions?.()) === true) {
      const link = await legacyFirst(definition, context, attempts)
      if (link.hasSession?.() === true || link.handshakeResult()?.revision === '2026-07-28') return link
      discard(link, context.log)
    }
    return await modernFirst(definition, context, attempts)
  }

  async function connect(definition: UpstreamDefinition, context: LinkContext, attempts: Attempts): Promise<Link> {
    const { era, hash, type } = definition
    if (era === 'legacy' || (type === 'http' && definition.transport === 'sse')) return await attempts.legacy()
    if (era === 'modern') {
      const found = await attempts.modern(true)
      if (isNotModern(found)) throw pinnedError(definition, found.reason)
      return found
    }
    const known = eras.get(hash)
    // Without a session, server requests, change notifications and cancellation do not work; in 2026-07-28 they do.
    const onlyModern = known === 'onlyModern' || (sessionless.get(hash) === true && known !== 'legacy')
    if (context.use === 'view' && type === 'http' && known !== 'legacy' && !onlyModern)
      return await sessionFirst(definition, context, attempts)
    const modern = context.handshake.era === 'modern' ? known !== 'legacy' : onlyModern
    return await (modern ? modernFirst : legacyFirst)(definition, context, attempts)
  }

  return async (definition: UpstreamDefinition, given: LinkContext, signal: AbortSignal): Promise<Link> => {
    const context: LinkContext = { ...given, eraChanged: () => eras.delete(definition.hash) }
    const attempts =
      definition.type === 'stdio'
        ? stdioAttempts(definition, context, signal)
        : httpAttempts(definition, context, signal)
    let connected = false
    try {
      const begin = (): Promise<Link> => connect(definition, context, attempts)
      const link = await continuedLink(definition, egress, context, signal, begin)
      connected = true
      return link
    } finally {
      attempts.end(connected)
    }
  }
}

/** Whether the server did not answer, or the answer may come from a proxy in front of a server that is down. */
function isSilence(error: unknown): boolean {
  if (!(error instanceof GatewayError)) return false
  return error.code === 'cancelled' || error.code === 'upstream_lost' || Number(error.data['status']) >= 500
}

/**
 * Whether a server refused `initialize` as one of 2026-07-28 does: for a missing header, a missing envelope, or the
 * method.
 */
function isModernRefusal(error: unknown): boolean {
  return error instanceof GatewayError && error.cause instanceof RpcError && modernCodes.has(error.cause.error.code)
}

export const leaveEraOut =
  'It is configured with era: modern; leave era out to have it spoken to in whatever it speaks.'

/**
 * The error where `era` in the definition does not fit; a process that ended keeps its own error
 * (stdio/start-error.ts).
 */
const pinnedError = ({ name }: UpstreamDefinition, reason: GatewayError): GatewayError =>
  reason.cause instanceof ProcessEndedError
    ? reason.cause
    : upstreamError(name, 'upstream_protocol', `${reason.message} ${leaveEraOut}`, reason)
