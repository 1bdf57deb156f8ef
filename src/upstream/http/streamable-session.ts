// The session of a connection over Streamable HTTP: its handshake, its GET stream, and its renewal once the server has
// forgotten it (2025-11-25 basic/transports "Session Management").

import { deadline, settledWithin } from '../../time/clock.ts'
import { createRestartDelay } from '../rpc/restart-delay.ts'
import { type HandshakeResult, initialize } from '../rpc/link.ts'
import { openGetStream } from './get-stream.ts'
import {
  askForSession,
  endMs,
  createPostQueue,
  postIn,
  pingRefusal,
  sendEnd,
  sessionOf,
  type SessionNames
} from './post-queue.ts'
import { checkId, isSessionId, notBegunAgain } from './sessions/session-errors.ts'
import { createSessionCheck, lentOf } from './sessions/lent-session.ts'
import { announce, type SessionReplay } from './sessions/session-replay.ts'
import type { HttpTarget } from './target.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { UpstreamSession } from '../../protocol/seams.ts'
import type { RpcClient } from '../rpc/rpc-client.ts'
import type { LinkContext } from '../rpc/transport.ts'
import type { HttpSession } from './streamable-calls.ts'

/**
 * How long the first call waits for the GET stream, in milliseconds: a server request that the server sends before the
 * stream is open would be lost. A server that sends the head of the stream only with its first event takes all of it.
 */
const firstStreamMs = 1_000
const asking = ['elicitation', 'sampling', 'roots'] as const

/** Whether a stored session can be continued; every outcome but `known` asks for a new session. */
export type Continuation = 'known' | 'gone' | 'unknown' | 'unclear' | 'held'

/** The client of the connection, and the secret and range from which its request ids are made. */
interface Series {
  readonly rpc: RpcClient
  readonly series: Pick<UpstreamSession, 'secret' | 'turn'>
  /** Sends, in the background, the DELETE of a session that this connection does not use. */
  endLater(session: SessionNames): void
}

/**
 * @param ended aborted when the connection ends
 * @param lost called when the server forgot the session and no new one could be begun
 */
export function createStreamableSession(
  { name, connectMs }: UpstreamDefinition,
  target: HttpTarget,
  link: LinkContext,
  { rpc, series, endLater }: Series,
  replay: SessionReplay,
  ended: AbortSignal,
  lost: (reason: Error) => void
) {
  const { events, clock, log } = link
  const { place } = link.handshake
  const restartDelay = createRestartDelay(clock)
  const state = { current: sessionOf(target), handshakeResult: undefined as HandshakeResult | undefined }
  let sessionId: string | undefined
  /** Whether the session is in the store, as far as this process knows. */
  let isKept = false
  let renewal: Promise<void> | undefined
  let stream: ReturnType<typeof openGetStream> | undefined
  let isStopped = false

  const queue = createPostQueue(target, log, (body, signal) => postIn(target, state.current, body, signal))

  async function begin(signal: AbortSignal): Promise<HandshakeResult> {
    ;[sessionId, isKept] = [undefined, false]
    const result = await initialize(rpc, name, link.handshake, signal).catch((error: unknown) => {
      // The handshake failed after the server had begun a session: without this nobody would end it.
      if (isSessionId(sessionId)) endLater({ id: sessionId })
      throw error
    })
    checkId(name, sessionId)
    state.handshakeResult = result
    const session = (state.current = sessionOf(target, { id: sessionId, revision: result.revision }))
    restartDelay.sessionBegan()
    await queue.postInitialized(signal)
    isKept = sessionId !== undefined && (await place?.keep({ id: sessionId, ...result, ...series })) === true
    await listen(session)
    return result
  }

  /**
   * Continues a stored session. A ping in place of the handshake tells whether the server is reachable and knows it.
   * @returns `held`: another connection has taken the session meanwhile, or the store does not say
   */
  async function goOn(kept: UpstreamSession, signal: AbortSignal): Promise<Continuation> {
    const session = sessionOf(target, kept)
    // Half of `connectMs`: if the server does not answer in this session, time must be left for a new handshake.
    const limit = deadline(clock, connectMs / 2, signal)
    const known = await askForSession(target, session.postHeaders, clock, limit)
    if (known !== 'known') return known
    isKept = (await place?.keep({ ...kept, ...series })) === true
    if (!isKept) return 'held'
    state.handshakeResult = kept
    state.current = session
    restartDelay.sessionBegan()
    await listen(session)
    return 'known'
  }

  /** Opens the GET stream. Resolves when calls may begin. */
  async function listen(session: HttpSession): Promise<void> {
    // Once stopped, no stream is opened: another process has the session, or will have it.
    if (isStopped) return
    stream?.stop()
    stream = openGetStream(target, session.headers, link, {
      message: (value) => (events.overheard?.(value) === true ? undefined : rpc.receive(value)),
      reconnected: announceAll,
      sessionLost: () => renewInBackground(session)
    })
    if (canBeAsked(link)) await settledWithin(clock, firstStreamMs, stream.answered)
  }

  const announceAll = (): void => announce(events, state.handshakeResult?.capabilities ?? {}, replay)

  /**
   * Begins a new session after a 404 (2025-11-25 "Session Management" 4): one for all callers that find out at once.
   * @returns the new session
   */
  async function renew(forgotten: HttpSession): Promise<HttpSession> {
    if (renewal !== undefined || state.current === forgotten) {
      await (renewal ??= begunAgain().finally(() => {
        renewal = undefined
      }))
    }
    return state.current
  }

  // A renewal that fails ends the connection itself.
  const renewInBackground = (forgotten: HttpSession): void => void renew(forgotten).catch(() => {})

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
    // The server forgot its own requests, the log level and the subscriptions, and its lists may be others.
    rpc.withdrawServerRequests('the server forgot its session')
    replay.repeat(ended)
    announceAll()
  }

  const check = createSessionCheck(
    (suspect) => pingRefusal(target, suspect, deadline(clock, connectMs, ended)),
    (suspect, status) => {
      renewInBackground(suspect)
      if (status === 400) endLater({ id: suspect.id, revision: state.handshakeResult?.revision })
    }
  )

  /** Tells the server that the session is over, unless another process has it now. In bounded time; never rejects. */
  async function close(): Promise<void> {
    // Responses and cancels of the last call: the end of the session must not overtake them.
    await settledWithin(clock, endMs, queue.drained())
    const { id } = state.current
    if (id !== undefined && (await place?.end(id)) !== false) await sendEnd(target, state.current, clock)
  }

  return Object.assign(state, {
    begin,
    goOn,
    async lend(forgotten?: string): Promise<UpstreamSession | undefined> {
      if (forgotten !== undefined && forgotten === state.current.id && renewal === undefined) await check(state.current)
      await renewal?.catch(() => {})
      return isKept && !isStopped && state.current.id !== forgotten ? lentOf(state, series) : undefined
    },
    /** Takes the session id of the handshake's response. @param isWanted whether the handshake was not cancelled */
    identify(id: string | undefined, isWanted: boolean): void {
      if (isWanted) sessionId = id
      else if (isSessionId(id)) endLater({ id })
    },
    renew,
    refused: (suspect: HttpSession, status: number): void =>
      void (status === 400 && state.current === suspect ? check(suspect) : undefined),
    queue,
    stop(): void {
      isStopped = true
      stream?.stop()
    },
    /** Leaves the session to the next process if it is stored; else ends it, because no process could continue it. */
    leave: (): Promise<unknown> => (isKept ? settledWithin(clock, endMs, queue.drained()) : close()),
    close
  })
}

const canBeAsked = ({ handshake: { capabilities } }: LinkContext): boolean =>
  asking.some((capability) => capabilities[capability] !== undefined)
