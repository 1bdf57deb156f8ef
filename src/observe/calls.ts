// The record of a call: who asked for what, from where, by which client; where it led, how it ended, what it took. Made
// once and filled in on its way; log line and audit record are written from it alone, so that they cannot disagree.
// Never a token; arguments and results only where their tenant wants a sample.

import type { Tenant } from '../config/snapshot.ts'
import type { ErrorCode } from '../protocol/error-table.ts'
import {
  GatewayError,
  RpcError,
  rpcCodeOf,
  type Implementation,
  type Request,
  type RequestId,
  type Revision
} from '../protocol/messages.ts'
import { firstOf } from '../protocol/own-text.ts'
import type { SentAgain } from '../protocol/seams.ts'
import { callLine, rounded } from './call-text.ts'
import { type Log, writeCall } from './log.ts'
import { type CallSample, sampleFields, sampleOf } from './samples.ts'
import type { TraceHeaders } from './traces/trace-context.ts'
import { noteError } from './call-notes.ts'
import type { CallStep } from './call-step.ts'
import type { Outcome } from './outcomes.ts'

/** Of who was let in, what may be written down. */
export type ObservedPrincipal = Readonly<Record<'kind' | 'issuer' | 'subject' | 'clientId', string>>

/** With what rules look at besides; none of it is written down. */
export interface ObservedCaller extends ObservedPrincipal {
  readonly scopes?: ReadonlySet<string>
  readonly groups?: readonly string[]
  readonly roles?: readonly string[]
}

export interface ObservedCall {
  readonly request: { readonly method: string; readonly params?: Record<string, unknown> }
  readonly tenant: Pick<Tenant, 'audit' | 'logSample'> & { readonly id: string }
  readonly endpoint: { readonly name: string }
  readonly principal: ObservedCaller
  readonly record?: CallRecord | undefined
}

/** Where a call came from, and what is learnt of it on its way. Times are in milliseconds. */
export interface CallRecord {
  /** Of the peer of the connection; undefined where another process passed the call on. */
  readonly address?: string | undefined
  /** In every answer as `X-Request-Id`, and in the data of every error of the gateway. */
  readonly requestId?: string
  /** As its caller numbers it, where an error is to be measured. */
  readonly id?: RequestId | undefined
  /** Of the request, where its body holds no other. */
  readonly bodyBytes?: number | undefined
  readonly revision?: Revision | undefined
  /** As the client names itself. */
  readonly software?: Implementation | undefined
  /** The key under which the session is kept: a digest of its id. */
  readonly session?: string | undefined
  /** Of the HTTP answer, while it has not begun; limits add theirs. */
  readonly replyHeaders?: Record<string, string> | undefined
  /** The longest answer that its caller gets, in bytes; undefined: any. */
  maxAnswerBytes?: number | undefined
  /** Trace context, as the headers of the request carry it. */
  readonly traceHeaders?: TraceHeaders | undefined
  /** Where traces are sent. */
  trace?: CallTrace
  /** As it is told; undefined: by its own names. */
  caller?: ObservedPrincipal
  /** Of its arguments and its result, where the tenant wants some. */
  sample?: CallSample
  startedAt?: number | undefined
  /** What measures it. */
  clock?: { now(): number } | undefined
  route?: RecordedRoute | undefined
  /** What was stopped while it was not known yet where the call leads; undefined: nothing. */
  stopped?: Pick<Tenant, 'kills'> | undefined
  /** The rule by which a name is as unknown to the caller as what nobody has; `default` where no rule allows it. */
  denied?: string | undefined
  /** The rules by which its tenant and its endpoint allow it; undefined where neither has a policy. */
  allowedBy?: readonly string[] | undefined
  /** From its start until it was sent to its upstream. */
  waitMs?: number | undefined
  /** From then until the upstream had answered, what its user was asked included. */
  upstreamMs?: number | undefined
  /** The result says that the tool has failed: the upstream's own does, or one that the gateway has made. */
  failure?: { readonly code: 'tool_error' | ErrorCode; readonly message?: string } | undefined
  /** Of the answer as it is sent, in bytes. */
  answerBytes?: number | undefined
  /** Notifications that the client was sent ahead of the answer, progress above all. */
  notifications?: number
  /** Server requests that were put to the client. */
  serverRequests?: number
  /** Of a result of 2026-07-28 that is not the last word. */
  resultType?: 'input_required' | 'task'
  /** How often it was sent to its upstream, where that was more than once; and why. */
  attempts?: number
  sentAgain?: Set<SentAgain>
  /** How often the rest of its upstream's answer was asked for on a new connection. */
  resumed?: number
  /** How often it was sent to an upstream that asked for input in its answer, where that was more than once. */
  rounds?: number
  /** What happened between the call and its answer, for those who look at it: most calls have nothing of it. */
  steps?: CallStep[]
}

/** Of a resource, as what it is listed. An unlisted name is its caller's own: shown, but nothing is counted by it. */
export interface RecordedRoute {
  readonly upstream: string
  readonly name: string
  readonly listedAs?: string
  readonly isUnlisted?: boolean
}

/** What a call may be counted by: the name of something that its upstream has listed. */
export const countedName = (route: RecordedRoute | undefined): string | undefined =>
  route?.isUnlisted === true ? undefined : route?.name

export interface CallOutcome {
  readonly outcome: Outcome
  /** Of an error, as the client gets it (JSON-RPC 2.0 section 5.1). */
  readonly code?: number | undefined
  /** Milliseconds. */
  readonly ms: number
  /** By which the call was refused. */
  readonly rule: string | undefined
  /** The limit that it is beyond. */
  readonly limit?: string | undefined
  /** The scopes that its caller needs, where it lacks some. */
  readonly scopes?: readonly string[] | undefined
  /** What is told of the error; for those who run the gateway. */
  readonly error?: string | undefined
}

export type EndedCall = Readonly<{ call: ObservedCall; ended: CallOutcome }>

/** The audit log, as seen by a call. */
export interface CallAuditor {
  /**
   * Before the call.
   * @throws GatewayError unavailable where the tenant lets no call through unrecorded, and records cannot be written
   */
  begin(call: ObservedCall): {
    /** What has to be waited for before the call runs. */
    readonly ready: Promise<void> | undefined
    /** What has to be waited for before it is answered. */
    end(outcome: CallOutcome): Promise<void> | undefined
  }
}

/** The trace of a call, from when it came until it is answered. */
export interface CallTrace {
  readonly traceId: string
  /** Of the gateway's own span. */
  readonly spanId: string
  /** It is sent to the collector. */
  readonly isSampled: boolean
  /** It goes to an upstream. @returns the request with the trace context in its `_meta` (SEP-414) */
  sent(request: Request, upstream: string, route: RecordedRoute | undefined): Request
  /** What was sent last was refused unread, and is sent once more. */
  again(why: SentAgain): void
  /** The upstream has answered what was sent last, or will not. @param answer a result, or why there is none */
  answered(answer: unknown): void
  ended(call: ObservedCall, ended: CallOutcome): void
}

/** Metrics, as seen by a call. */
export interface CallMeter {
  callEnded(call: ObservedCall, ended: CallOutcome): void
  sessionEnded?(seconds: number, session: Readonly<Record<'tenant' | 'endpoint' | 'revision', string>>): void
}

export interface CallObservers {
  readonly clock: { now(): number }
  readonly log: Log
  readonly audit?: CallAuditor | undefined
  readonly metrics?: CallMeter | undefined
  readonly traces?: { begin(call: ObservedCall): CallTrace | undefined } | undefined
  readonly shownCaller?: ((tenant: string, caller: ObservedPrincipal) => ObservedPrincipal) | undefined
}

/** Bytes of a request that is held until its line is written, which is when that is made. */
const maxHeldBytes = 16_384
/** It is small enough to be held for a moment after it has ended. */
export const mayBeHeld = ({ record }: ObservedCall): boolean =>
  record?.sample === undefined && (record?.bodyBytes ?? Infinity) <= maxHeldBytes

/** Of what a client, a caller, an upstream or a stranger chose, in characters. */
export const maxLoggedChars = 200

/** Runs the call, and writes down how it ended. Never changes its outcome. */
export async function observe<T>(call: ObservedCall, observers: CallObservers, run: () => Promise<T>): Promise<T> {
  const { clock, audit, metrics, traces, shownCaller } = observers
  const { record } = call
  const startedAt = clock.now()
  if (record !== undefined) {
    record.startedAt = startedAt
    record.clock = clock
    if (shownCaller !== undefined) record.caller = shownCaller(call.tenant.id, call.principal)
    const trace = traces?.begin(call)
    if (trace !== undefined) record.trace = trace
  }
  const sample = call.tenant.logSample && sampleOf(call.tenant.logSample, call.request, record?.requestId)
  if (record !== undefined && sample !== undefined) record.sample = sample
  let err: unknown
  let audited: ReturnType<CallAuditor['begin']> | undefined
  try {
    audited = audit?.begin(call)
    if (audited?.ready !== undefined) await audited.ready
    return await run()
  } catch (error) {
    err = error
    noteError(record, error)
    throw error
  } finally {
    const ended = outcomeOf(record, err, rounded(clock.now() - startedAt))
    writeLine(call, ended, err, observers.log)
    metrics?.callEnded(call, ended)
    record?.trace?.ended(call, ended)
    const recorded = audited?.end(ended)
    if (recorded !== undefined) await recorded
  }
}

function outcomeOf(record: CallRecord | undefined, err: unknown, ms: number): CallOutcome {
  if (err === undefined) {
    const { code: outcome = 'ok', message } = record?.failure ?? {}
    return { outcome, code: undefined, ms, rule: undefined, error: message && firstOf(message, maxLoggedChars) }
  }
  const error = err instanceof Error ? firstOf(err.message, maxLoggedChars) : undefined
  if (err instanceof RpcError)
    return { outcome: err.reason ?? 'rpc_error', code: err.error.code, ms, rule: undefined, error }
  if (!(err instanceof GatewayError)) return { outcome: 'internal', code: undefined, ms, rule: undefined, error }
  const { rule = record?.denied, limit, scopes } = err.data as Partial<Pick<CallOutcome, 'rule' | 'limit' | 'scopes'>>
  // Whoever has cancelled it gets none.
  const code = err.code === 'cancelled' ? undefined : rpcCodeOf(err.code)
  return { outcome: record?.denied === undefined ? err.code : 'denied', code, ms, rule, limit, scopes, error }
}

function writeLine(call: ObservedCall, ended: CallOutcome, err: unknown, log: Log): void {
  const sample = call.record?.sample
  // What is the matter with an upstream or the store is said once, by whoever watches it.
  if (ended.outcome === 'internal')
    log.error({ ...callLine(call, ended), ...(sample && sampleFields(sample)), err }, 'call')
  else if (log.isLevelEnabled('info')) writeCall(log, { call, ended }, mayBeHeld(call))
}
