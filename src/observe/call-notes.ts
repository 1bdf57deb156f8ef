// What is noted of a call on its way to its upstream and back.

import type { JsonObject, Request } from '../protocol/messages.ts'
import type { CallRecord } from './calls.ts'
import { sampleOfResult } from './samples.ts'

/** It goes to its upstream now. @returns when, in milliseconds */
export function noteSent(record: CallRecord | undefined, clock: { now(): number }): number {
  const now = clock.now()
  if (record?.startedAt !== undefined) record.waitMs ??= now - record.startedAt
  return now
}

/** The request as it goes to an upstream: with its trace context, where traces are sent. */
export const tracedRequest = (record: CallRecord | undefined, request: Request, upstream: string): Request =>
  record?.trace === undefined ? request : record.trace.sent(request, upstream)

/** The upstream has answered, or will not. */
export function noteAnswered(record: CallRecord | undefined, clock: { now(): number }, sentAt: number): void {
  if (record === undefined) return
  record.upstreamMs = (record.upstreamMs ?? 0) + clock.now() - sentAt
  record.trace?.answered()
}

/** What the answer says of the call. @param text as it is sent */
export function noteAnswer(
  record: CallRecord,
  { method }: { readonly method: string },
  result: JsonObject,
  text: { readonly length: number }
): void {
  if (method === 'tools/call' && result['isError'] === true) record.isToolError = true
  record.answerBytes = text.length
  if (record.sample !== undefined) record.sample.result = sampleOfResult(record.sample.config, result)
}
