// Which era a server is spoken to in: found out by asking (2026-07-28 basic/versioning "Backward Compatibility"), or as the definition
// says. Only `server/discover` and `initialize` are ever sent to find out; whoever is down, or lets us not in, has said nothing.

import { GatewayError, RpcError } from '../protocol/errors.ts'
import { createDetector } from './detect.ts'
import { discard } from './link.ts'
import { openModernHttp } from './modern/http.ts'
import { isAbsence, modernCodes } from './modern/probe.ts'
import { createSchemaShelf } from './modern/schemas.ts'
import { openStdio } from './stdio.ts'
import { createVerdicts } from './verdicts.ts'
import type { HttpDefinition, StdioDefinition, UpstreamDefinition } from '../config/snapshot.ts'
import type { Egress } from './egress.ts'
import type { Link, LinkOptions } from './link.ts'
import type { Absence } from './modern/probe.ts'
import type { Supervisor } from './process.ts'
import type { Verdict } from './verdicts.ts'

export interface Eras {
  /** A link that is ready for use, in the era that the definition names or the handshake wants, as far as the server has it. */
  connect (definition: UpstreamDefinition, options: LinkOptions, signal: AbortSignal): Promise<Link>
}

/** A server may be upgraded in its place, and the older era would go on working: so the newer one is tried again now and then. */
const horizonMs = 10 * 60_000
/** A server that has not answered by then is taken for one that never answers what it does not know. */
const longestPatienceMs = 5_000

/** The ways to one server; each may be tried more than once. */
interface Ways {
  legacy (): Promise<Link>
  /** `known`: it was a modern one before, so its silence says nothing. */
  modern (known: boolean): Promise<Link | Absence>
  /** Nothing came of it. */
  giveUp (): void
  /** It is over: what is not in use is let go. */
  done (): void
}

/** The server said nothing of itself, and nothing but `server/discover` was sent to it. `cause` says how it said nothing. */
export class Undiscovered extends Error {}

export function createEras ({ egress, supervisor }: { readonly egress: Egress, readonly supervisor: Supervisor }): Eras {
  const detector = createDetector({ egress })
  const shelf = createSchemaShelf()
  /** By hash of the definition, which holds the credentials: others may be shown another server. */
  const verdicts = createVerdicts()

  function httpWays (definition: HttpDefinition, options: LinkOptions, signal: AbortSignal): Ways {
    // Held meanwhile, so that the second question goes over the socket of the first.
    const lane = egress.open(definition)
    return {
      legacy: () => detector.connect(definition, options, signal),
      async modern () {
        const link = openModernHttp(definition, egress, shelf, options)
        const found = await link.discover(signal).catch((error: unknown) => {
          discard(link, options.log)
          throw error
        })
        if (!isAbsence(found)) return link
        discard(link, options.log)
        return found
      },
      giveUp () {},
      done: () => lane.release()
    }
  }

  function stdioWays (definition: StdioDefinition, options: LinkOptions, signal: AbortSignal): Ways {
    let link: ReturnType<typeof openStdio> | undefined
    // One process is asked both ways, unless the first question was the end of it.
    const alive = () => link = link === undefined || link.dead ? openStdio(definition, supervisor, options) : link
    async function modern (known: boolean): Promise<Link | Absence> {
      const before = link
      const mine = alive()
      const patienceMs = known ? definition.connectMs : Math.min(definition.connectMs / 3, longestPatienceMs)
      const found = await mine.discover(patienceMs, signal)
      if (!isAbsence(found)) return mine
      // It was ending already, of what it had been asked before.
      if (mine === before && mine.dead) return await modern(known)
      return found
    }

    return {
      modern,
      async legacy () {
        const mine = alive()
        await mine.greet(signal)
        return mine
      },
      giveUp: () => { if (link !== undefined) discard(link, options.log) },
      done () {}
    }
  }

  /** For callers of the older era: as they wish, unless the server knows only the newer one. */
  async function olderFirst (definition: UpstreamDefinition, { log }: LinkOptions, ways: Ways): Promise<Link> {
    try {
      return await ways.legacy()
    } catch (refusal) {
      if (!isModernRefusal(refusal)) throw refusal
      const found = await ways.modern(false)
      if (isAbsence(found)) throw refusal
      log.info({ upstream: definition.name }, 'the upstream speaks 2026-07-28 only')
      verdicts.set(definition.hash, { era: 'modern', only: true })
      return found
    }
  }

  async function newerFirst (definition: UpstreamDefinition, options: LinkOptions, ways: Ways, verdict: Verdict | undefined): Promise<Link> {
    const { clock, log } = options
    const found = await ways.modern(verdict?.era === 'modern').catch((error: unknown) => {
      // Over stdio a verdict makes us wait long; the next one is found out anew.
      if (definition.type === 'stdio') verdicts.drop(definition.hash)
      throw definition.type === 'http' && verdict === undefined && isSilence(error) ? new Undiscovered('nothing but server/discover was sent', { cause: error }) : error
    })
    if (!isAbsence(found)) {
      verdicts.set(definition.hash, { era: 'modern', only: verdict?.era === 'modern' && verdict.only })
      return found
    }
    verdicts.drop(definition.hash)
    log.debug({ upstream: definition.name, reason: found.reason.message }, 'the upstream is spoken to in the legacy era')
    // What said nothing may only have been slow to start.
    const link = await (found.silent ? olderFirst(definition, options, ways) : ways.legacy())
    if (link.greeting?.revision !== '2026-07-28') verdicts.set(definition.hash, { era: 'legacy', until: clock.now() + horizonMs })
    return link
  }

  async function chosen (definition: UpstreamDefinition, options: LinkOptions, ways: Ways): Promise<Link> {
    if (definition.era === 'legacy' || (definition.type === 'http' && definition.transport === 'sse')) return await ways.legacy()
    if (definition.era === 'modern') {
      const found = await ways.modern(true)
      if (isAbsence(found)) throw pinnedError(definition, found.reason)
      return found
    }
    const verdict = verdicts.get(definition.hash, options.clock)
    const newer = options.handshake.era === 'modern' ? verdict?.era !== 'legacy' : verdict?.era === 'modern' && verdict.only
    if (newer) return await newerFirst(definition, options, ways, verdict)
    return await olderFirst(definition, options, ways)
  }

  return {
    async connect (definition, given, signal) {
      const options: LinkOptions = { ...given, disproved: () => verdicts.drop(definition.hash) }
      const ways = definition.type === 'stdio' ? stdioWays(definition, options, signal) : httpWays(definition, options, signal)
      try {
        return await chosen(definition, options, ways)
      } catch (error) {
        ways.giveUp()
        throw error
      } finally {
        ways.done()
      }
    }
  }
}

/** No answer, or one that may come from what stands in front of a server that is down. */
function isSilence (error: unknown): boolean {
  if (!(error instanceof GatewayError)) return false
  return error.code === 'cancelled' || error.code === 'upstream_lost' || Number(error.data['status']) >= 500
}

/** `initialize` refused as a server refuses it that has no handshake: it misses a header, the envelope, or the method itself. */
function isModernRefusal (error: unknown): boolean {
  return error instanceof GatewayError && error.cause instanceof RpcError && modernCodes.has(error.cause.error.code)
}

function pinnedError ({ name }: UpstreamDefinition, reason: GatewayError): GatewayError {
  return new GatewayError('upstream_protocol', `${reason.message} It is configured with era: modern; leave era out to have it spoken to in whatever it speaks.`, { cause: reason, data: { upstream: name } })
}
