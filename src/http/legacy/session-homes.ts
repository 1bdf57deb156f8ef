// Requests of sessions that need what one process alone has: a child process, a session at an upstream, a subscription,
// a task. They run at the home of their session, whichever process they come to. A home that is gone is replaced, once.

import { bytesPerChar, type HeldMemory } from '../../limits/memory.ts'
import type { Log } from '../../observe/log.ts'
import { type JsonText, stringOf } from '../../protocol/json-text.ts'
import {
  type EndpointName,
  GatewayError,
  type JsonObject,
  type Message,
  type TenantId
} from '../../protocol/messages.ts'
import { type ContextOf, quotaKeyOf } from '../../relay/call/call.ts'
import type { Bus } from '../../session/bus/bus.ts'
import { ProcessGone } from '../../session/bus/bus-errors.ts'
import type { ServedCall } from '../../session/bus/bus-server.ts'
import { sayInParts } from '../../session/bus/long-questions.ts'
import type { LiveSession, LiveSessions } from '../../session/live-sessions.ts'
import type { SessionBus } from '../../session/elsewhere/session-bus.ts'
import { endedMeanwhile } from '../../session/session-end.ts'
import type { Sessions } from '../../session/sessions.ts'
import { sessionHomeKey } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import type { CallContext, RequestContext } from '../admission.ts'
import { answerRefusal, requestOverheadBytes, reserveAnswer } from '../request-memory.ts'
import { type CarriedContext, carriedContext, contextOfCarried } from './carried.ts'

type RequestMessage = Message & { readonly kind: 'request' }

/** As one process sends it to another. */
interface ForwardedRequest extends CarriedContext {
  readonly tenant: TenantId
  readonly endpoint: EndpointName
  /** Of the session. */
  readonly key: string
  readonly message: Pick<RequestMessage, 'id' | 'request'>
  /** Whether messages can precede the answer. */
  readonly streams: boolean
}

/** Ahead of the answer: a message for the client, or a part of the answer's text. */
type Ahead = { readonly message: JsonObject } | { readonly part: string }

/**
 * `left`: the process is stopping, and has done nothing. No text: the request was cancelled, and is not answered.
 * `chars`: of the text with the parts ahead of it, of which any may be lost.
 */
type Answer = { readonly text?: string; readonly chars?: number; readonly left?: boolean }

export type RunForwarded = (
  context: CallContext,
  session: LiveSession,
  message: RequestMessage,
  push: (message: JsonObject) => boolean,
  signal: AbortSignal
) => Promise<JsonText | undefined>

export interface SessionHomesOptions {
  readonly bus: Bus
  readonly store: Store
  readonly sessions: Sessions
  readonly live: LiveSessions
  readonly contextOf: ContextOf
  readonly isDraining: () => boolean
  readonly log: Log
}

/** Of a call: while more waits to leave, progress is left out, as 2025-11-25 basic/utilities/progress allows. */
const maxProgressBytes = 1024 * 1024
/** Homes that are tried for one request, each of them the successor of one that is gone. */
const maxHomes = 4

export function createSessionHomes(options: SessionHomesOptions, { becameHome }: Pick<SessionBus, 'becameHome'>) {
  const { bus, store, sessions, log } = options
  const { node, shared } = bus
  const { contextOf } = options
  const replacements = new Map<string, Promise<string>>()

  /**
   * The process that follows a home that is gone: whoever asks for it first.
   * @throws GatewayError session_unknown, unavailable
   */
  async function replace(session: LiveSession, gone: string, ttlMs: number): Promise<string> {
    const key = sessionHomeKey(session.key, gone)
    await sessions.keepers.follow(session.session, gone, ttlMs)
    const isOurs = await store.set(key, node, { ttlMs, when: 'absent' })
    // Who once followed this process follows it no more: the two would name each other when both are gone.
    if (isOurs) await store.delete(sessionHomeKey(session.key, node))
    const home = isOurs ? node : ((await store.get(key)) ?? node)
    // Also where another process won: a copy that was out of date may have brought back the home before.
    const now = await sessions.update(session.session, { home })
    if (now === undefined) throw endedMeanwhile()
    session.session = now
    if (isOurs) becameHome(session)
    log.info({ tenant: session.tenant, gone, home }, 'the process of a session is gone; another one takes over')
    return home
  }

  /** For all requests of the session that find out here at the same time. */
  function replaceOnce(session: LiveSession, gone: string, ttlMs: number): Promise<string> {
    const name = `${session.key} ${gone}`
    const replacing = replacements.get(name) ?? replace(session, gone, ttlMs).finally(() => replacements.delete(name))
    replacements.set(name, replacing)
    return replacing
  }

  const isElsewhere = (session: LiveSession): boolean => shared && session.session.record.home !== node

  return {
    contextOf,
    /** Whether the requests of the session have to run at another process. */
    isElsewhere,
    /** Tells the connection of a request, before its answer, which other process its session has. */
    tell({ raw }: Pick<RequestContext, 'raw'>, session: LiveSession): void {
      if (isElsewhere(session)) raw.home = session.session.record.home
    },
    /**
     * Runs the request at the home of its session. What precedes the answer is pushed here.
     * @returns the text of the answer, which is undefined where the caller cancelled; undefined where this process has
     * become the home, and nothing has been run
     * @throws GatewayError upstream_lost where the home was lost while it worked, or a part of its answer; too_many,
     * unavailable
     */
    async forward(
      context: CallContext,
      session: LiveSession,
      { id, request }: Pick<RequestMessage, 'id' | 'request'>,
      streams: boolean,
      { notify: push, signal }: { notify: (message: JsonObject) => void; signal: AbortSignal }
    ): Promise<{ readonly text: string | undefined } | undefined> {
      const { tenant, endpoint, principal, snapshot, memory } = context
      const forwarded: ForwardedRequest = {
        ...carriedContext(context),
        tenant: tenant.id,
        endpoint: endpoint.name,
        key: session.key,
        message: { id, request },
        streams
      }
      const whose = { tenant: tenant.id, caller: quotaKeyOf(principal) }
      const parts = createParts(memory)
      const notify = (ahead: unknown): void => {
        const given = ahead as Ahead
        if ('message' in given) push(given.message)
        else parts.add(given.part)
      }
      let { home } = session.session.record
      for (let tries = 0; tries < maxHomes && home !== node; tries++) {
        try {
          const answer = (await bus.request(home, 'request', whose, forwarded, { notify, signal })) as Answer
          if (answer.left !== true) return { text: parts.join(answer) }
        } catch (error) {
          // Nothing was run, so it can be run elsewhere.
          if (!(error instanceof ProcessGone)) throw error
        }
        home = await replaceOnce(session, home, snapshot.limits.sessionMaxMs)
      }
      if (home === node) return undefined
      throw new GatewayError('unavailable', 'No process of the gateway holds this session. Retry in a second.', {
        headers: { 'Retry-After': '1' }
      })
    },
    /** Takes the requests that other processes forward to this one. */
    serve(run: RunForwarded): void {
      bus.serve('request', (question, call) => {
        if (options.isDraining()) return Promise.resolve({ left: true } satisfies Answer)
        return runForwarded(options, question as ForwardedRequest, call, run)
      })
    }
  }
}

/** Of the text of an answer, as they come; at the expense of the request. */
function createParts(memory: HeldMemory) {
  const parts: string[] = []
  let reserved = 0
  let refusal: unknown
  return {
    /** Throws nothing: the bus would drop this part, and go on with the next. */
    add(part: string): void {
      if (refusal !== undefined) return
      const bytes = part.length * bytesPerChar
      try {
        reserveAnswer(memory, bytes)
        reserved += bytes
        parts.push(part)
      } catch (error) {
        refusal = error
      }
    },
    /** @throws GatewayError too_many, upstream_lost: the call was made, and not all of its answer is here */
    join({ text, chars }: Answer): string | undefined {
      const whole = text === undefined ? undefined : parts.join('') + text
      if (refusal === undefined && whole?.length === chars) return whole
      memory.set(memory.bytes - reserved)
      throw refusal ?? partLost()
    }
  }
}

async function runForwarded(
  { sessions, live, contextOf }: SessionHomesOptions,
  { tenant, endpoint, key, message, streams, ...carried }: ForwardedRequest,
  { notify, waitingBytes, signal, memory: held }: ServedCall,
  run: RunForwarded
): Promise<Answer> {
  const came = contextOfCarried(carried)
  const { principal } = came
  const place = await contextOf.load(tenant, endpoint, principal)
  const found = place === undefined ? undefined : await sessions.find(key, principal, endpoint)
  if (place === undefined || found === undefined) throw endedMeanwhile()
  const person = quotaKeyOf(principal)
  held.require(requestOverheadBytes, 'The request')
  try {
    const session = live.use(found, held.share)
    const context: CallContext = { ...place, ...came, person, memory: held }
    const push = (each: JsonObject): boolean => {
      if (!streams) return false
      if (each['method'] === 'notifications/progress' && waitingBytes() > maxProgressBytes) return true
      // Where there is no room for it, who sends it tries the next stream.
      return notify({ message: each } satisfies Ahead) !== undefined
    }
    const answer = await run(context, session, { kind: 'request', ...message }, push, signal)
    if (answer === undefined) return {}
    const text = stringOf(answer)
    return { text: await sayInParts(text, notify, (chars) => answerRefusal(held, chars)), chars: text.length }
  } finally {
    held.set(0)
  }
}

const partLost = (): GatewayError =>
  new GatewayError(
    'upstream_lost',
    'A part of the answer was lost on the way from the process that holds the session. The call has been made.',
    { data: { outcome: 'unknown' } }
  )
