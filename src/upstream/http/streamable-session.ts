// The session of a connection over Streamable HTTP: its handshake, its GET stream, and its renewal once the server has
// forgotten it (2025-11-25 basic/transports "Session Management").

import { GatewayError, isObject, requestMessage } from '../../protocol/messages.ts'
import { deadline, settledWithin } from '../../time/clock.ts'
import { type HandshakeResult, initialize } from '../rpc/link.ts'
import { openGetStream } from './get-stream.ts'
import { createPostQueue, type PostQueue, sendForStatus } from './post-queue.ts'
import { createRestartDelay } from './restart-delay.ts'
import { type HttpTarget, postHeaders, revisionHeader } from './target.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { RpcClient } from '../rpc/rpc-client.ts'
import type { LinkContext } from '../rpc/transport.ts'
import type { HttpOutcome } from './request.ts'
import type { SessionReplay } from './session-replay.ts'
import type { HttpSession } from './streamable-calls.ts'

export interface StreamableSessionOptions {
  readonly definition: UpstreamDefinition
  readonly target: HttpTarget
  readonly link: LinkContext
  readonly rpc: RpcClient
  readonly replay: SessionReplay
  /** Aborted when the connection ends. */
  readonly ended: AbortSignal
  /** There is no new session in place of the forgotten one. */
  lost(reason: Error): void
}

export interface StreamableSession {
  readonly current: HttpSession
  readonly handshakeResult: HandshakeResult | undefined
  /** Does the handshake. */
  begin(signal: AbortSignal): Promise<HandshakeResult>
  /** The server answered the handshake with this session id. */
  identify(sessionId: string | undefined): void
  /** Makes a new session in place of the one that the server forgot. Once for all who find out at the same time. */
  renew(forgotten: HttpSession): Promise<void>
  /**
   * Some servers answer 400, not 404, once they have forgotten a session: asks this one, and renews the session if it
   * has.
   */
  check(suspect: HttpSession): void
  /** Notifications and responses. */
  readonly queue: PostQueue
  /** Ends the GET stream. */
  stop(): void
  /** Tells the server that the session is over. In bounded time; never rejects. */
  close(): Promise<void>
}

/** For each step of the close. */
const closeMs = 1_000

/** Before the handshake. */
export const blankSession = (target: HttpTarget): HttpSession => sessionOf(target, undefined, undefined)

export function createStreamableSession(options: StreamableSessionOptions): StreamableSession {
  const { definition, target, link, rpc, replay, ended } = options
  const { name, connectMs } = definition
  const { events, clock, log } = link
  const restartDelay = createRestartDelay(clock)
  let current = blankSession(target)
  let handshakeResult: HandshakeResult | undefined
  let sessionId: string | undefined
  let renewal: Promise<void> | undefined
  let checking = false
  let stopStream = (): void => {}

  const send = (
    session: HttpSession,
    method: 'POST' | 'DELETE',
    body: string | null,
    signal: AbortSignal
  ): Promise<HttpOutcome> =>
    sendForStatus(
      target,
      { method, headers: method === 'POST' ? session.postHeaders : [...session.headers], body },
      signal
    )

  const queue = createPostQueue(target, log, (body, signal) => send(current, 'POST', body, signal))

  async function begin(signal: AbortSignal): Promise<HandshakeResult> {
    sessionId = undefined
    const result = await initialize(rpc, name, link.handshake, signal)
    if (sessionId !== undefined && !/^[\x21-\x7e]{1,4096}$/.test(sessionId)) {
      throw new GatewayError('upstream_protocol', `Upstream ${name} issued a session id that is not visible ASCII.`, {
        data: { upstream: name }
      })
    }
    handshakeResult = result
    const session = (current = sessionOf(target, sessionId, result))
    restartDelay.sessionBegan()
    await queue.postInitialized(signal)
    stopStream()
    stopStream = openGetStream({
      target,
      headers: session.headers,
      clock,
      random: link.random,
      log,
      message: (value) => rpc.receive(value),
      reconnected: announceAll,
      sessionLost: () => renewInBackground(session)
    })
    return result
  }

  /** Something may have changed without a notification that reached us. */
  function announceAll(): void {
    for (const kind of ['tools', 'prompts', 'resources'] as const) {
      if (isObject(handshakeResult?.capabilities[kind])) events.listChanged(kind)
    }
    for (const uri of replay.subscriptions) {
      events.notification({ method: 'notifications/resources/updated', params: { uri } })
    }
  }

  /** 2025-11-25 "Session Management" 4: a 404 means a new session. */
  function renew(forgotten: HttpSession): Promise<void> {
    if (renewal === undefined && current !== forgotten) return Promise.resolve()
    return (renewal ??= begunAgain().finally(() => {
      renewal = undefined
    }))
  }

  function renewInBackground(forgotten: HttpSession): void {
    // A renewal that fails ends the connection itself.
    renew(forgotten).catch(() => {})
  }

  async function begunAgain(): Promise<void> {
    await restartDelay.wait(ended)
    log.info({ upstream: name }, 'the upstream forgot its session; starting a new one')
    const limit = deadline(clock, connectMs, ended)
    try {
      await begin(limit.signal)
    } catch (cause) {
      const error = limit.passed()
        ? new GatewayError(
            'upstream_unavailable',
            `Upstream ${name} forgot its session and did not start a new one within ${connectMs / 1000} s (connectMs).`,
            { cause, data: { upstream: name } }
          )
        : cause
      options.lost(error as Error)
      throw error
    } finally {
      limit.close()
    }
    // The new session knows neither what the old one was told nor what it had asked, and may offer something else.
    rpc.withdrawServerRequests('the server forgot its session')
    replay.repeat(ended)
    announceAll()
  }

  function check(suspect: HttpSession): void {
    if (checking || current !== suspect) return
    checking = true
    const limit = deadline(clock, connectMs, ended)
    void send(suspect, 'POST', JSON.stringify(requestMessage('still-there', { method: 'ping' })), limit.signal)
      .then((outcome) => {
        if (outcome.kind === 'refused' && (outcome.status === 400 || outcome.status === 404)) renewInBackground(suspect)
      })
      .finally(() => {
        checking = false
        limit.close()
      })
  }

  return {
    get current() {
      return current
    },
    get handshakeResult() {
      return handshakeResult
    },
    begin,
    identify(id) {
      sessionId = id
    },
    renew,
    check,
    queue,
    stop: () => stopStream(),
    async close() {
      // Responses and cancels of the last call: the end of the session must not overtake them.
      await settledWithin(clock, closeMs, queue.drained())
      if (current.id === undefined) return
      const stop = new AbortController()
      // 2025-11-25 "Session Management" 5; the server may say 405.
      await settledWithin(clock, closeMs, send(current, 'DELETE', null, stop.signal))
      stop.abort()
    }
  }
}

function sessionOf(target: HttpTarget, id: string | undefined, result: HandshakeResult | undefined): HttpSession {
  const headers = [
    ...target.headers,
    ...(id === undefined ? [] : ['mcp-session-id', id]),
    ...revisionHeader(result?.revision)
  ]
  return { id, headers, postHeaders: [...postHeaders, ...headers] }
}
