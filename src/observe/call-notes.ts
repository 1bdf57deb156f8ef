// What is noted of a call on its way to its upstream and back.

import type { ErrorCode } from '../protocol/error-table.ts'
import { errorMessage, GatewayError, isObject, type JsonObject, type Request } from '../protocol/messages.ts'
import type { SentAgain } from '../protocol/seams.ts'
import { firstOf } from '../protocol/own-text.ts'
import { errorObject } from '../protocol/translate/error-object.ts'
import type { CallStep } from './call-step.ts'
import type { CallRecord } from './calls.ts'
import { sampleOfResult } from './samples.ts'

/** Of one call: further ones are counted only. */
const maxSteps = 64
const maxStepNameChars = 64

function noteStep(record: CallRecord, kind: CallStep['kind'], name: string, now: number, ms?: number): CallStep {
  const at = Math.round((now - (record.startedAt ?? now)) * 10) / 10
  const step: CallStep = { kind, name: firstOf(name, maxStepNameChars), at, ...(ms !== undefined && { ms }) }
  record.steps ??= []
  if (record.steps.length < maxSteps) record.steps.push(step)
  return step
}

/** Its client is sent something ahead of the answer. */
export function noteNotification(record: CallRecord, clock: { now(): number }, method: string): void {
  record.notifications = (record.notifications ?? 0) + 1
  noteStep(record, 'notified', method, clock.now())
}

/** Its client is asked something. @returns what passes the response on, and notes when it came */
export function noteServerRequest(record: CallRecord, clock: { now(): number }, method: string) {
  record.serverRequests = (record.serverRequests ?? 0) + 1
  const began = clock.now()
  const step = noteStep(record, 'asked', method, began)
  return async <T>(response: Promise<T>): Promise<T> => {
    try {
      const given = await response
      step.answer = answerOf(given)
      return given
    } catch (error) {
      step.answer = 'failed'
      throw error
    } finally {
      step.ms = Math.round((clock.now() - began) * 10) / 10
    }
  }
}

/** What a person did; never what they said. */
function answerOf(response: unknown): NonNullable<CallStep['answer']> {
  const action = isObject(response) ? response['action'] : undefined
  return action === 'accept' || action === 'decline' || action === 'cancel' ? action : 'answered'
}

/** It goes to its upstream now, or waits for that no longer. @returns when, in milliseconds */
export function noteSent(record: CallRecord | undefined, clock: { now(): number }): number {
  const now = clock.now()
  if (record?.startedAt !== undefined) record.waitMs ??= now - record.startedAt
  return now
}

/** The request as it goes to an upstream: with its trace context, where traces are sent. */
export const tracedRequest = (record: CallRecord | undefined, request: Request, upstream: string): Request =>
  record?.trace === undefined ? request : record.trace.sent(request, upstream, record.route)

/** The upstream has answered, or will not. */
export function noteAnswered(record: CallRecord | undefined, clock: { now(): number }, sentAt: number): void {
  if (record === undefined) return
  const ms = clock.now() - sentAt
  // Of the first round waitMs and upstreamMs tell, and most calls have no other.
  if (record.upstreamMs !== undefined) noteStep(record, 'round', record.route?.upstream ?? '', sentAt, ms)
  record.upstreamMs = (record.upstreamMs ?? 0) + ms
}

/** How the upstream answers what was sent last, for the trace. @returns the answer */
export function tracedAnswer<T>(record: CallRecord | undefined, answer: Promise<T>): Promise<T> {
  const trace = record?.trace
  if (trace === undefined) return answer
  const over = (given: unknown): void => trace.answered(given)
  answer.then(over, over)
  return answer
}

/** It goes to its server once more, or the rest of its answer is asked for. */
export function noteAgain(record: CallRecord | undefined, why: SentAgain): void {
  if (record === undefined) return
  if (record.clock !== undefined) noteStep(record, 'again', why, record.clock.now())
  if (why === 'stream') record.resumed = (record.resumed ?? 0) + 1
  else {
    record.trace?.again(why)
    record.attempts = (record.attempts ?? 1) + 1
    record.sentAgain = (record.sentAgain ?? new Set()).add(why)
  }
}

/** It goes to its server once more with what its client was asked for. */
export function noteRound(record: CallRecord | undefined): void {
  if (record !== undefined) record.rounds = (record.rounds ?? 1) + 1
}

/** The gateway itself answers a call of a tool with a result that says that it has failed. */
export function noteFailure(record: CallRecord | undefined, code: ErrorCode, message: string): void {
  if (record !== undefined) record.failure = { code, message }
}

/** What the answer says of the call. @param bytes of it, as it is sent */
export function noteAnswer(
  record: CallRecord,
  { method }: { readonly method: string },
  result: JsonObject,
  bytes: number
): void {
  record.failure =
    method === 'tools/call' && result['isError'] === true ? (record.failure ?? { code: 'tool_error' }) : undefined
  const { resultType } = result
  if (resultType === 'input_required' || resultType === 'task') record.resultType = resultType
  record.answerBytes = bytes
  if (record.sample !== undefined) record.sample.result = sampleOfResult(record.sample.config, result)
}

/** It was not refused, but ended while it ran, or waited for its upstream. */
const endsWait = ({ code }: GatewayError): boolean => code === 'cancelled' || code.startsWith('upstream_')

/** It is answered with an error. */
export function noteError(record: CallRecord | undefined, error: unknown): void {
  if (record?.clock !== undefined && error instanceof GatewayError && endsWait(error)) noteSent(record, record.clock)
  // Whoever has cancelled it gets none.
  if (record?.id === undefined || (error instanceof GatewayError && error.code === 'cancelled')) return
  const text = JSON.stringify(errorMessage(record.id, errorObject(error, record.requestId ?? '')))
  record.answerBytes = Buffer.byteLength(text)
}
