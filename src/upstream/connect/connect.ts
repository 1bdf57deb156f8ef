// Opens a connection for an upstream definition: selects era and transport, does the handshake, masks secrets.

import { randomBytes } from 'node:crypto'
import { createMemoryAccount, type MemoryAccount } from '../../limits/memory.ts'
import { GatewayError, isModernRevision } from '../../protocol/messages.ts'
import { type Clock, deadline } from '../../time/clock.ts'
import {
  countedRequest,
  presentedRequest,
  presenting,
  type UpstreamCredential,
  type UpstreamCredentials
} from '../rpc/credential.ts'
import { endSession } from '../http/post-queue.ts'
import { uncertainty, UnreachableError, upstreamError } from '../rpc/errors.ts'
import { type Mask, createResultMask } from '../rpc/mask.ts'
import { createLimitedWarnings } from '../rpc/notifications.ts'
import { type ServerRequestQuotas, createServerRequestQuotas } from '../rpc/server-requests.ts'
import { unaskedUpstream, unconnectedUpstream } from './unconnected-upstream.ts'
import { maskedError, maskedEvents, maskedRequest } from './masked-upstream.ts'
import { Undiscovered, createEraSelector, leaveEraOut } from './select-era.ts'
import { ProcessEndedError } from '../stdio/start-error.ts'
import type { HttpDefinition, UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { HandshakeParams, Upstream, UpstreamEvents, UpstreamSession } from '../../protocol/seams.ts'
import type { Egress } from '../http/socket-pool.ts'
import type { HandshakeResult, Link } from '../rpc/link.ts'
import type { ConnectionUse, LinkContext } from '../rpc/transport.ts'
import type { Supervisor } from '../stdio/supervisor.ts'

interface ConnectorOptions {
  readonly supervisor: Supervisor
  readonly egress: Egress
  readonly clock: Clock
  /** Returns a number from 0 to 1 (1 excluded); spreads reconnections in time. */
  readonly random: () => number
  readonly log: Log
  /** Limits the memory of server requests that wait for an answer. Default: the quotas of a whole process. */
  readonly serverRequestQuotas?: ServerRequestQuotas
  /** Counts the memory of messages. Default: without limits. */
  readonly memory?: MemoryAccount
  /** Credentials of callers. Default: upstreams are sent nothing but the headers of their definition. */
  readonly credentials?: UpstreamCredentials
}

export type Connector = ReturnType<typeof createConnector>

export function createConnector(options: ConnectorOptions) {
  const { supervisor, egress, clock, random, serverRequestQuotas = createServerRequestQuotas() } = options
  const { memory = createMemoryAccount(), credentials } = options
  const openLink = createEraSelector(egress, supervisor, clock)
  const masks = new WeakMap<UpstreamDefinition, Mask | undefined>()

  function maskOf(definition: UpstreamDefinition, credential: UpstreamCredential | undefined): Mask | undefined {
    if (!masks.has(definition)) {
      const given = definition.type === 'stdio' ? supervisor.maskedEnvironment(definition) : definition.headers
      masks.set(definition, createResultMask(definition, given, credential))
    }
    return masks.get(definition)
  }

  return {
    /**
     * Opens a connection and does the handshake, within `connectMs`.
     * @param use what the connection is for; the limits of child processes depend on it
     * @throws GatewayError upstream_unavailable (an UnreachableError where every caller would fail in the same way),
     * upstream_protocol, too_many; cancelled if the signal is aborted
     */
    async connect(
      definition: UpstreamDefinition,
      handshake: HandshakeParams,
      given: UpstreamEvents,
      signal?: AbortSignal,
      use: ConnectionUse = 'calls'
    ): Promise<Upstream> {
      const { name, tenant, connectMs } = definition
      if (credentials?.isForNobody(definition) === true) return unaskedUpstream(definition)
      const page = credentials?.pageOf(definition)
      if (page !== undefined) {
        const others = credentials?.toolsOfOthers?.(definition)
        // Only the connection of the shared listing reports that the credential changed the list of tools.
        const changed = use === 'listing' ? () => given.listChanged('tools', 'server') : undefined
        return unconnectedUpstream(definition, page, { person: handshake.quotaKey, others, changed })
      }
      if (signal?.aborted === true) throw new GatewayError('cancelled', `Connecting to upstream ${name} was given up.`)
      // Two tenants may call their upstreams by the same name.
      const log = options.log.child({ tenant })
      const warnings = createLimitedWarnings(name, clock, log)
      const credential = credentials?.of(definition)
      const mask = maskOf(definition, credential)
      const share = memory.share(tenant, handshake.quotaKey ?? `upstream ${name}`)
      const events = mask === undefined ? given : maskedEvents(mask, given, share)
      const serverRequestQuota = serverRequestQuotas.open(definition)
      const context: LinkContext = {
        handshake,
        events,
        clock,
        random,
        log,
        warnings,
        serverRequestQuota,
        memory: share,
        use,
        credential
      }
      // Not counted in connectMs, because the upstream has no part in it.
      const started =
        definition.type === 'stdio'
          ? await supervisor.waitToStart(definition, { use, quotaKey: handshake.quotaKey }, signal)
          : undefined
      const limit = deadline(clock, connectMs, signal)
      try {
        const open = (): Promise<Link> => openLink(definition, context, limit.signal)
        const link = await (credential === undefined ? open() : presenting(credential, limit.signal, open))
        const used = definition.person && credentials && (() => credentials.used(definition))
        return new LinkedUpstream(definition, link, context, { mask, used })
      } catch (error) {
        const undiscovered = error instanceof Undiscovered
        // A server may fail because of the capabilities that this caller declares; without any, every caller would
        // fail.
        const forAll = undiscovered || Object.keys(handshake.capabilities).length === 0
        const late = `did not answer initialize or server/discover within ${connectMs / 1000} s (connectMs).`
        const told = limit.passed()
          ? new (forAll ? UnreachableError : GatewayError)('upstream_unavailable', `Upstream ${name} ${late}`, {
              data: { upstream: name }
            })
          : startError(definition, undiscovered ? error.cause : error)
        throw maskedError(mask, undiscovered && told instanceof GatewayError ? undiscoveredError(told) : told)
      } finally {
        limit.close()
        started?.()
      }
    },
    /** Sends one DELETE for a session that no connection uses. Takes bounded time; never rejects. */
    async endSession(
      definition: HttpDefinition,
      session: UpstreamSession,
      handshake: Pick<HandshakeParams, 'clientInfo' | 'quotaKey'>
    ): Promise<void> {
      const { tenant, name } = definition
      const log = options.log.child({ tenant })
      const share = memory.share(tenant, handshake.quotaKey ?? `upstream ${name}`)
      const credential = credentials?.of(definition)
      await endSession(definition, egress, { handshake, clock, log, memory: share, credential }, session)
    }
  }
}

/** The error where a server did not tell its era: advises `era: legacy` for a server that fails on unknown methods. */
function undiscoveredError(error: GatewayError): GatewayError {
  const { code, message, cause } = error
  const { outcome: _none, ...data } = error.data
  const remedy =
    'If it is an older server, which does not answer what it does not know, set era: legacy in its configuration.'
  return new (error instanceof UnreachableError ? UnreachableError : GatewayError)(
    code,
    `${message} Only server/discover was sent to it. ${remedy}`,
    { cause, data }
  )
}

/** Turns an uncertain error of a handshake into upstream_unavailable: no call was sent yet, so a retry is safe. */
function startError({ name, era }: UpstreamDefinition, cause: unknown): unknown {
  if (!(cause instanceof GatewayError) || (cause.code !== 'upstream_lost' && cause.code !== 'upstream_timeout')) {
    return cause
  }
  const text = cause.message.replace(uncertainty, '')
  const remedies = cause instanceof ProcessEndedError ? [cause.remedy, ...(era === 'modern' ? [leaveEraOut] : [])] : []
  const message = [`Upstream ${name} ended during its start.`, text, ...remedies].join(' ')
  return upstreamError(name, 'upstream_unavailable', message, cause)
}

interface Around {
  readonly mask: Mask | undefined
  /** Called for each call of the person whose own connection this is; undefined for a connection of no one person. */
  readonly used: (() => void) | undefined
}

/** A class, because there is one for each session: V8 makes a hidden class for each object literal with getters. */
class LinkedUpstream implements Upstream {
  readonly id = randomBytes(16).toString('base64url')
  readonly name: UpstreamDefinition['name']
  readonly era: Upstream['era']
  readonly transport: Link['transport']
  readonly serverRequestsNameCall: boolean | undefined
  readonly hasSession: boolean | undefined
  readonly abandonedCalls: Upstream['abandonedCalls']
  readonly sharing: Upstream['sharing']
  readonly request: Upstream['request']
  readonly notify: Upstream['notify']
  readonly close: Upstream['close']
  readonly leave: Upstream['leave']
  readonly stopListening: Upstream['stopListening']
  readonly destroy: Upstream['destroy']
  private readonly link: Link
  private readonly first: HandshakeResult
  private readonly mask: Mask | undefined

  constructor({ name }: UpstreamDefinition, link: Link, { memory, credential }: LinkContext, around: Around) {
    const { mask, used } = around
    const first = link.handshakeResult()
    if (first === undefined) throw new Error('a link is no upstream before its handshake')
    this.name = name
    this.link = link
    this.first = first
    this.mask = mask
    this.era = isModernRevision(first.revision) ? 'modern' : 'legacy'
    this.transport = link.transport
    this.serverRequestsNameCall = link.serverRequestsNameCall
    this.hasSession = link.hasSession?.()
    this.sharing = link.sharing
    this.abandonedCalls = link.rpc.abandonedCalls
    const request = credential === undefined ? link.rpc.request : presentedRequest(credential, link.rpc.request)
    const masked = mask === undefined ? request : maskedRequest(mask, request, memory)
    this.request = used === undefined ? masked : countedRequest(masked, used)
    this.notify = link.rpc.notify
    this.close = link.close
    this.leave = link.leave
    this.stopListening = link.stopListening
    this.destroy = link.destroy
  }

  /** The result of the latest handshake: the transport repeats it where the server forgot the session. */
  private get latest(): HandshakeResult {
    return this.link.handshakeResult() ?? this.first
  }
  get revision() {
    return this.latest.revision
  }
  get isContinued() {
    return this.link.isContinued?.()
  }
  get capabilities() {
    return this.latest.capabilities
  }
  get discoveryTtlMs() {
    return this.latest.ttlMs
  }
  get serverInfo() {
    return this.latest.serverInfo
  }
  get instructions() {
    const { instructions } = this.latest
    return instructions === undefined ? undefined : (this.mask?.text(instructions) ?? instructions)
  }
}
