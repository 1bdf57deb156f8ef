// The session of a connection over Streamable HTTP: its handshake, its GET stream, and its renewal once the server has
// forgotten it (2025-11-25 basic/transports "Session Management").

import type { JsonText } from '../../protocol/json-text.ts'
import { GatewayError, isObject, type ServerCapabilities } from '../../protocol/messages.ts'
import { deadline, noReason, settledWithin } from '../../time/clock.ts'
import { upstreamError } from '../rpc/errors.ts'
import { createRestartDelay } from '../rpc/restart-delay.ts'
import { type HandshakeResult, initialize } from '../rpc/link.ts'
import { openGetStream } from './get-stream.ts'
import { askForSession, createPostQueue, pingText, sendForStatus } from './post-queue.ts'
import { headerText, type HttpTarget, postHeaders, revisionHeader } from './target.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { UpstreamEvents, UpstreamSession } from '../../protocol/seams.ts'
import type { RpcClient } from '../rpc/rpc-client.ts'
import type { LinkContext } from '../rpc/transport.ts'
import type { HttpOutcome } from './outcome.ts'
import type { HttpSession } from './streamable-calls.ts'

/** What a new session has to be told again. */
interface SessionReplay {
  repeat(signal: AbortSignal): void
  /** URIs. */
  readonly subscriptions: ReadonlySet<string>
}

/**
 * For each step of the close: both within what the pool gives a connection. Where many sessions end at once, or the
 * server is busy, one second passes before it has heard of each, and it keeps the rest.
 */
const closeMs = 3_000

/** Of a session that another connection had: all but `known` ask for a new one. */
export type Continuation = 'known' | 'unknown' | 'unclear' | 'held'

/** Before the handshake. */
export const blankSession = (target: HttpTarget): HttpSession => sessionOf(target, undefined, undefined)

/** The client of the connection, and what the ids of its requests are made from. */
interface Series {
  readonly rpc: RpcClient
  readonly series: Pick<UpstreamSession, 'secret' | 'turn'>
}

/**
 * @param ended aborted when the connection ends
 * @param lost there is no new session in place of the forgotten one
 */
export function createStreamableSession(
  { name, connectMs }: UpstreamDefinition,
  target: HttpTarget,
  link: LinkContext,
  { rpc, series }: Series,
  replay: SessionReplay,
  ended: AbortSignal,
  lost: (reason: Error) => void
) {
  const { events, clock, log } = link
  const { place } = link.handshake
  const restartDelay = createRestartDelay(clock)
  const state = { current: blankSession(target), handshakeResult: undefined as HandshakeResult | undefined }
  let sessionId: string | undefined
  let renewal: Promise<void> | undefined
  let checking = false
  let stopStream = (): void => {}
  let isStopped = false

  const post = ({ postHeaders: headers }: HttpSession, body: JsonText, signal: AbortSignal): Promise<HttpOutcome> =>
    sendForStatus(target, { method: 'POST', headers, body }, signal)
  const queue = createPostQueue(target, log, (body, signal) => post(state.current, body, signal))

  async function begin(signal: AbortSignal): Promise<HandshakeResult> {
    sessionId = undefined
    const result = await initialize(rpc, name, link.handshake, signal)
    checkId(name, sessionId)
    state.handshakeResult = result
    const session = (state.current = sessionOf(target, sessionId, result))
    restartDelay.sessionBegan()
    await queue.postInitialized(signal)
    if (sessionId !== undefined) await place?.keep({ id: sessionId, ...result, ...series })
    listen(session)
    return result
  }

  /**
   * A ping tells as much as a handshake would: whether the server is there, and whether it knows the session.
   * @returns `held`: another connection has taken it meanwhile, or nobody can say
   */
  async function goOn(kept: UpstreamSession, signal: AbortSignal): Promise<Continuation> {
    const session = sessionOf(target, kept.id, kept)
    // Time must be left for a handshake, where the session hangs and its server does not.
    const limit = deadline(clock, connectMs / 2, signal)
    const known = await askForSession(target, session.postHeaders, clock, limit)
    if (known !== 'known') return known
    if ((await place?.keep({ ...kept, ...series })) !== true) return 'held'
    state.handshakeResult = kept
    state.current = session
    restartDelay.sessionBegan()
    listen(session)
    return 'known'
  }

  function listen(session: HttpSession): void {
    // Once stopped it hears no more: another process has the session, or will have it.
    if (isStopped) return
    stopStream()
    stopStream = openGetStream(target, session.headers, link, {
      message: (value) => rpc.receive(value),
      reconnected: announceAll,
      sessionLost: () => renewInBackground(session)
    })
  }

  const announceAll = (): void => announce(events, state.handshakeResult?.capabilities ?? {}, replay)

  /**
   * 2025-11-25 "Session Management" 4: a 404 means a new session. Once for all who find out at the same time.
   * @returns the new one
   */
  async function renew(forgotten: HttpSession): Promise<HttpSession> {
    if (renewal !== undefined || state.current === forgotten) {
      await (renewal ??= begunAgain().finally(() => {
        renewal = undefined
      }))
    }
    return state.current
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
      const error = notBegunAgain(name, limit.passed() ? ` within ${connectMs / 1000} s (connectMs)` : '', cause)
      lost(error)
      throw error
    } finally {
      limit.close()
    }
    // The new session knows neither what the old one was told nor what it had asked, and may offer something else.
    rpc.withdrawServerRequests('the server forgot its session')
    replay.repeat(ended)
    announceAll()
  }

  /** Some servers answer 400, not 404, once they have forgotten a session: asks, and renews it then. */
  function check(suspect: HttpSession): void {
    if (checking || state.current !== suspect) return
    checking = true
    const limit = deadline(clock, connectMs, ended)
    void post(suspect, pingText(), limit.signal)
      .then((outcome) => {
        if (outcome.kind === 'refused' && (outcome.status === 400 || outcome.status === 404)) renewInBackground(suspect)
      })
      .finally(() => {
        checking = false
        limit.close()
      })
  }

  /** Responses and cancels of the last call: the end of the session must not overtake them. */
  const leave = (): Promise<unknown> => settledWithin(clock, closeMs, queue.drained())

  return Object.assign(state, {
    begin,
    goOn,
    /** The server answered the handshake with this session id. */
    identify(id: string | undefined): void {
      sessionId = id
    },
    renew,
    check,
    queue,
    stop(): void {
      isStopped = true
      stopStream()
    },
    leave,
    /** Tells the server that the session is over, unless another process has it now. In bounded time; never rejects. */
    async close(): Promise<void> {
      await leave()
      const { id, headers } = state.current
      if (id === undefined || (await place?.end()) === false) return
      const stop = new AbortController()
      const request = { method: 'DELETE' as const, headers, body: null }
      // 2025-11-25 "Session Management" 5; the server may say 405.
      await settledWithin(clock, closeMs, sendForStatus(target, request, stop.signal))
      stop.abort(noReason)
    }
  })
}

/** 2025-11-25 "Session Management" 1. @throws GatewayError upstream_protocol */
function checkId(name: UpstreamDefinition['name'], id: string | undefined): void {
  if (id === undefined || /^[\x21-\x7e]{1,4096}$/.test(id)) return
  throw upstreamError(name, 'upstream_protocol', `Upstream ${name} issued a session id that is not visible ASCII.`)
}

/** The 404 proves that whatever waits for the new session was not executed, however the handshake ended. */
function notBegunAgain(name: UpstreamDefinition['name'], late: string, cause: unknown): GatewayError {
  const why = `it did not start a new one${late === '' ? reasonIn(cause) : late}`
  const text = `Upstream ${name} forgot its session (HTTP 404), and ${why}; the request was not executed.`
  return upstreamError(name, 'upstream_unavailable', text, cause)
}

/** Of a refused handshake. One that broke says that its own outcome is unknown, which is not that of the call. */
const reasonIn = (cause: unknown): string =>
  cause instanceof GatewayError && cause.data['outcome'] === undefined ? ` (${cause.message.replace(/\.$/, '')})` : ''

function sessionOf(target: HttpTarget, id: string | undefined, result: HandshakeResult | undefined): HttpSession {
  const own = id === undefined ? '' : headerText(['mcp-session-id', id])
  const headers = target.headers + own + revisionHeader(result?.revision)
  return { id, headers, postHeaders: postHeaders + headers }
}

/** Notifications may have been missed. */
function announce(events: UpstreamEvents, capabilities: ServerCapabilities, { subscriptions }: SessionReplay): void {
  for (const kind of ['tools', 'prompts', 'resources'] as const) {
    if (isObject(capabilities[kind])) events.listChanged(kind, 'gateway')
  }
  for (const uri of subscriptions) {
    events.notification({ method: 'notifications/resources/updated', params: { uri } })
  }
}
