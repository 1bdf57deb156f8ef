// Which of the two HTTP transports a URL speaks, found out by speaking (2025-11-25 basic/transports "Backwards
// Compatibility"). Only `initialize` is ever sent to find out; a server that is down, or refuses us, has said nothing
// about its transport.

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

/** A server may be upgraded under its URL, and HTTP+SSE would go on working. */
const lifetimeMs = 10 * 60_000
/** Statuses that say that there is no Streamable HTTP; in 2025-06-18 it still was any 4xx. */
const absentStatuses: ReadonlySet<unknown> = new Set([400, 404, 405])

/**
 * @returns opens a link and does its handshake, over the transport that the definition names, or that its URL turns out
 * to speak
 */
export function createTransportSelector(egress: Egress, clock: Clock): OpenLegacyHttp {
  /** Streamable HTTP needs no memory: it is tried first. */
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
    // Time must be left for the other transport, where this stream says nothing.
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
      // The first refusal says more: most URLs without Streamable HTTP have no HTTP+SSE either.
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

/** Far more than a gateway has upstreams; one that was forgotten is asked again. */
const maxEntries = 10_000

/**
 * What was found out about servers, by hash of their definition, which holds the credentials: with others, another
 * server may answer. Bounded, because definitions come and go with the configuration.
 */
export function createDiscoveryCache<T>(clock: Clock) {
  /** The one confirmed least recently first. */
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
