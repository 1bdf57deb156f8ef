// An HTTP upstream that takes requests and answers none would hold every call until its timeout. Where it has answered
// nothing for `checkAfterMs` while a request waits, a handshake of the gateway's own finds out whether it is only slow.
// If that is not answered either, calls are refused at once, until the upstream answers again: a handshake, which the
// pool tries by itself or because of a call (one at a time), or a request that still waits. A call is never used as the
// probe, so no call is lost to one. Stdio upstreams have no breaker: one silent process proves nothing about the
// others.

import { GatewayError, type Request, RpcError } from '../../protocol/messages.ts'
import { type Clock, noReason, settledWithin } from '../../time/clock.ts'
import { socketUseOf } from '../http/socket-pool.ts'
import { UnreachableError } from '../rpc/errors.ts'
import { type Attempts, probeWaitMs } from './attempts.ts'
import { connectionKeyOf } from './open-connections.ts'
import type { HttpDefinition, UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { type HandshakeParams, noClient, type UpstreamEvents } from '../../protocol/seams.ts'
import type { Connector } from '../connect/connect.ts'

interface WatchedUpstream {
  readonly definition: HttpDefinition
  /** The handshake of the probe. It declares no capabilities, so that it would fail for every caller. */
  readonly handshake: HandshakeParams
  /** The number of requests that wait for an answer. */
  waiting: number
  /** Since when a request waits and no request was answered; undefined: none waits. */
  quietSince: number | undefined
  /** The number of answers so far, to requests and to probes. */
  answers: number
  /** Whether the last probe was not answered. */
  silent: boolean
  checking: Promise<void> | undefined
}

const noEvents: UpstreamEvents = {
  listChanged() {},
  notification() {},
  ask: (request) => noClient.ask(request),
  closed() {}
}

export type Breaker = ReturnType<typeof createBreaker>

export function createBreaker(connector: Connector, attempts: Attempts, clock: Clock, log: Log) {
  /** By hash of the definition. */
  const watched = new Map<string, WatchedUpstream>()
  const stop = new AbortController()
  const { backoff } = attempts
  const isSilent = (hash: string): boolean => watched.get(hash)?.silent === true && backoff.isAway(hash)

  function noteQuiet(upstream: WatchedUpstream): void {
    upstream.quietSince = upstream.waiting > 0 ? clock.now() : undefined
  }

  function answered(upstream: WatchedUpstream): void {
    upstream.answers++
    noteQuiet(upstream)
    if (!upstream.silent) return
    upstream.silent = false
    const { name, tenant } = upstream.definition
    log.info({ upstream: name, tenant }, 'an upstream that answered nothing answers again')
  }

  async function check(upstream: WatchedUpstream): Promise<void> {
    const { definition, handshake, answers } = upstream
    const connect = () => connector.connect(definition, handshake, noEvents, stop.signal)
    try {
      const connection = await attempts.run(definition, connectionKeyOf(definition, 'check'), 'calls', connect)
      answered(upstream)
      connection.close().catch((err: unknown) => log.debug({ err }, 'the connection of a check would not close'))
    } catch (err) {
      // The probe was not sent: the gateway is at a limit of its own, or is stopping.
      if (err instanceof GatewayError && (err.code === 'too_many' || err.code === 'cancelled')) return
      if (!(err instanceof UnreachableError)) return answered(upstream)
      if (upstream.silent || upstream.answers !== answers) return
      upstream.silent = true
      const { name, tenant } = definition
      log.warn({ err, upstream: name, tenant }, 'an upstream answers nothing: its calls are refused until it does')
    } finally {
      upstream.checking = undefined
    }
  }

  return {
    isSilent,
    /** Notes that a request is sent. @returns a function to call with its error; undefined: the upstream answered */
    began(
      definition: UpstreamDefinition,
      { method }: Request,
      { clientInfo, era }: HandshakeParams
    ): (error?: unknown) => void {
      // A stream without end may be silent for a long time.
      if (definition.type !== 'http' || definition.checkAfterMs === 0 || socketUseOf(method) === 'streams')
        return () => {}
      const { hash } = definition
      let upstream = watched.get(hash)
      if (upstream === undefined) {
        const handshake = { clientInfo, capabilities: {}, ...(era && { era }) }
        const nothing = { waiting: 0, quietSince: undefined, answers: 0, silent: false, checking: undefined }
        upstream = { definition, handshake, ...nothing }
        watched.set(hash, upstream)
      }
      upstream.waiting++
      upstream.quietSince ??= clock.now()
      return (error) => {
        upstream.waiting--
        // A broken connection and the error of a proxy are no answers, but neither did this request wait.
        if (error instanceof UnreachableError) noteQuiet(upstream)
        if (error !== undefined && !(error instanceof RpcError)) return
        backoff.reached(definition)
        answered(upstream)
      }
    },
    /** Called before a request to a silent upstream. @returns why the request is not sent; undefined: it may be */
    async refusal({ hash, name }: UpstreamDefinition): Promise<GatewayError | undefined> {
      const upstream = watched.get(hash)
      if (upstream === undefined) return undefined
      const { definition } = upstream
      if (attempts.refusal(definition, hash, 'calls') === undefined) upstream.checking ??= check(upstream)
      if (upstream.checking !== undefined) await settledWithin(clock, probeWaitMs, upstream.checking)
      if (!isSilent(hash)) return undefined
      const { text, data } = backoff.outlook(hash)
      const message = `Upstream ${name} answers nothing, so the request was not sent. ${text}`
      return new GatewayError('upstream_unavailable', message, { data: { upstream: name, ...data } })
    },
    sweep(): void {
      for (const [hash, upstream] of watched) {
        const { definition, quietSince, waiting } = upstream
        const due = isSilent(hash)
          ? attempts.refusal(definition, hash, 'view') === undefined
          : quietSince !== undefined && clock.now() - quietSince >= definition.checkAfterMs
        if (due) upstream.checking ??= check(upstream)
        else if (waiting === 0 && quietSince === undefined && upstream.checking === undefined) watched.delete(hash)
      }
    },
    retain(hashes: Pick<ReadonlySet<string>, 'has'>): void {
      for (const hash of watched.keys()) if (!hashes.has(hash)) watched.delete(hash)
    },
    close: (): void => stop.abort(noReason)
  }
}
