// Which of the two HTTP transports a URL speaks, found out by speaking (2025-11-25 basic/transports "Backwards Compatibility"). Only
// `initialize` is ever sent to find out; a server that is down, or lets us not in, has said nothing about its transport.

import { GatewayError } from '../protocol/errors.ts'
import { deadline } from './clock.ts'
import { openHttp } from './http.ts'
import { discard, greeted } from './link.ts'
import { openSse } from './sse-link.ts'
import type { HttpDefinition } from '../config/snapshot.ts'
import type { Egress } from './egress.ts'
import type { Link, LinkOptions } from './link.ts'

export interface Detector {
  /** A link over the transport that the definition names, or that its URL turns out to speak; it has shaken hands. */
  connect (definition: HttpDefinition, options: LinkOptions, signal: AbortSignal): Promise<Link>
}

/** A server may be upgraded under its URL, and the older transport would go on working: so the newer one is tried again now and then. */
const horizonMs = 10 * 60_000
/** What says that there is no Streamable HTTP; in 2025-06-18 it still was any 4xx. */
const otherTransport: ReadonlySet<unknown> = new Set([400, 404, 405])

export function createDetector ({ egress }: { readonly egress: Egress }): Detector {
  /** Definitions by hash that speak HTTP+SSE, and until when that is believed. The other verdict needs no memory: it costs no probe. */
  const older = new Map<string, number>()

  function believe ({ hash }: HttpDefinition, now: number): void {
    for (const [known, until] of older) if (until <= now) older.delete(known)
    older.set(hash, now + horizonMs)
  }

  async function streamable (definition: HttpDefinition, options: LinkOptions, signal: AbortSignal): Promise<Link> {
    return await greeted(openHttp(definition, egress, options), options.log, signal)
  }

  /** @returns the link, or why the URL does not speak HTTP+SSE */
  async function sse (definition: HttpDefinition, options: LinkOptions, signal: AbortSignal): Promise<Link | GatewayError> {
    const link = openSse(definition, egress, options)
    // A stream that stays mute is none of ours, and time must be left for what else can be tried.
    const patience = deadline(options.clock, definition.connectMs / 2, signal)
    const absence = await link.reach(patience.signal).catch((error: unknown) => {
      discard(link, options.log)
      if (!patience.passed()) throw error
      return new GatewayError('upstream_protocol', `Upstream ${definition.name} does not speak HTTP+SSE at its url: its stream says nothing.`, { cause: error, data: { upstream: definition.name } })
    }).finally(() => patience.close())
    if (absence === undefined) return await greeted(link, options.log, signal)
    discard(link, options.log)
    return absence
  }

  async function automatic (definition: HttpDefinition, options: LinkOptions, signal: AbortSignal): Promise<Link> {
    const { clock, log } = options
    if ((older.get(definition.hash) ?? 0) > clock.now()) {
      const known = await sse(definition, options, signal).catch((error: unknown) => {
        older.delete(definition.hash)
        throw error
      })
      if (!(known instanceof GatewayError)) return known
      older.delete(definition.hash)
      return await streamable(definition, options, signal)
    }
    try {
      return await streamable(definition, options, signal)
    } catch (refusal) {
      if (!(refusal instanceof GatewayError) || !otherTransport.has(refusal.data['status'])) throw refusal
      const found = await sse(definition, options, signal)
      // The first refusal says more: to most URLs without MCP, the older transport is no better an answer.
      if (found instanceof GatewayError) throw refusal
      log.info({ upstream: definition.name }, 'the upstream speaks HTTP+SSE, the transport of 2024-11-05')
      believe(definition, clock.now())
      return found
    }
  }

  return {
    async connect (definition, options, signal) {
      if (definition.transport === 'auto') return await automatic(definition, options, signal)
      if (definition.transport === 'streamable') return await streamable(definition, options, signal)
      return await greeted(openSse(definition, egress, options), options.log, signal)
    }
  }
}
