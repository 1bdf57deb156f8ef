// Selects the HTTP transport of a URL, Streamable HTTP or HTTP+SSE, by trying (2025-11-25 basic/transports "Backwards
// Compatibility"). The only message sent is `initialize`. A server that is down or refuses the credential proves
// nothing about its transport.

import { GatewayError } from '../../protocol/messages.ts'
import { type Clock, deadline } from '../../time/clock.ts'
import { openHttpSse } from '../http/http-sse-link.ts'
import { openStreamable } from '../http/streamable-link.ts'
import { type Link, discard, withHandshake } from '../rpc/link.ts'
import { upstreamError } from '../rpc/errors.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import type { Egress } from '../http/socket-pool.ts'
import type { LinkContext } from '../rpc/transport.ts'

type OpenLegacyHttp = (definition: HttpDefinition, context: LinkContext, signal: AbortSignal) => Promise<Link>

/** HTTP+SSE is tried first for so long, then Streamable HTTP again: an upgraded server may go on with HTTP+SSE. */
const lifetimeMs = 10 * 60_000
/** Statuses that say that the URL has no Streamable HTTP (2025-11-25); in 2025-06-18 any 4xx said so. */
const absentStatuses: ReadonlySet<unknown> = new Set([400, 404, 405])

/**
 * @returns a function that opens a link and does its handshake, over the transport that the definition names, or that
 * its URL supports
 */
export function createTransportSelector(egress: Egress, clock: Clock): OpenLegacyHttp {
  /** URLs that support only HTTP+SSE. Streamable HTTP is not remembered, because it is tried first anyway. */
  const httpSse = createDiscoveryCache<true>(clock)

  const openStreamableHttp: OpenLegacyHttp = (definition, context, signal) =>
    withHandshake(openStreamable(definition, egress, context), context.log, signal)

  /** @returns the link, or why the URL does not speak HTTP+SSE */
  async function tryHttpSse(
    definition: HttpDefinition,
    context: LinkContext,
    signal: AbortSignal
  ): Promise<Link | GatewayError> {
    const { name, connectMs } = definition
    const link = openHttpSse(definition, egress, context)
    // Half of `connectMs`: if this stream stays silent, time must be left for the other transport.
    const limit = deadline(clock, connectMs / 2, signal)
    const absence = await link
      .openStream(limit.signal)
      .catch((cause: unknown) => {
        discard(link, context.log)
        if (!limit.passed()) throw cause
        const text = `Upstream ${name} does not speak HTTP+SSE at its url: its stream says nothing.`
        return upstreamError(name, 'upstream_protocol', text, cause)
      })
      .finally(() => limit.close())
    if (absence === undefined) return await withHandshake(link, context.log, signal)
    discard(link, context.log)
    return absence
  }

  const detect: OpenLegacyHttp = async (definition, context, signal) => {
    const { hash, name } = definition
    if (httpSse.get(hash) === true) {
      const known = await tryHttpSse(definition, context, signal).catch((error: unknown) => {
        httpSse.delete(hash)
        throw error
      })
      if (!(known instanceof GatewayError)) return known
      httpSse.delete(hash)
      return await openStreamableHttp(definition, context, signal)
    }
    try {
      return await openStreamableHttp(definition, context, signal)
    } catch (refusal) {
      if (!(refusal instanceof GatewayError) || !absentStatuses.has(refusal.data['status'])) throw refusal
      const found = await tryHttpSse(definition, context, signal)
      // The error of Streamable HTTP is the more useful one: most URLs without it have no HTTP+SSE either.
      if (found instanceof GatewayError) throw refusal
      context.log.info({ upstream: name }, 'the upstream speaks HTTP+SSE, the transport of 2024-11-05')
      httpSse.set(hash, true, lifetimeMs)
      return found
    }
  }

  return (definition, context, signal) => {
    if (definition.transport === 'auto') return detect(definition, context, signal)
    if (definition.transport === 'streamable') return openStreamableHttp(definition, context, signal)
    return withHandshake(openHttpSse(definition, egress, context), context.log, signal)
  }
}

/** More than a gateway has upstreams. A server whose entry was dropped is probed again. */
const maxEntries = 10_000

/**
 * Results of probes, by hash of the definition. The hash covers the credentials: with others, another server may
 * answer. Bounded, because definitions come and go with the configuration.
 */
export function createDiscoveryCache<T>(clock: Clock) {
  /** In order of their last confirmation, the oldest first. */
  const entries = new Map<string, { readonly found: T; readonly until: number }>()
  return {
    get(hash: string): T | undefined {
      const entry = entries.get(hash)
      return entry !== undefined && entry.until > clock.now() ? entry.found : undefined
    },
    /** @param lifetimeMs how long it holds; default until it is deleted */
    set(hash: string, found: T, lifetimeMs = Infinity): void {
      entries.delete(hash)
      entries.set(hash, { found, until: clock.now() + lifetimeMs })
      const [oldest = hash] = entries.keys()
      if (entries.size > maxEntries) entries.delete(oldest)
    },
    delete(hash: string): void {
      entries.delete(hash)
    }
  }
}
