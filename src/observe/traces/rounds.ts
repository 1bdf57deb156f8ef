// The spans of a request to an upstream: one until it is answered, whose context goes along; below it one for
// each time that it was sent, where that was more than once.

import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace as api } from '@opentelemetry/api'
import type { Attributes, Span, SpanContext, SpanOptions, Tracer } from '@opentelemetry/api'
import { isObject, RpcError } from '../../protocol/messages.ts'
import type { SentAgain } from '../../protocol/seams.ts'
import { sentErrorType } from '../metrics/call-attributes.ts'

/** @param parent the gateway's own span */
export function beginRound(
  tracer: Tracer,
  parent: Span,
  { title, method, attributes }: { readonly title: string; readonly method: string; readonly attributes: Attributes }
) {
  const startTime = Date.now()
  const span = tracer.startSpan(title, { kind: SpanKind.CLIENT, attributes, startTime }, contextOf(parent))
  let attempts = 0
  let running: Span | undefined
  let isOver = false

  function attempt(options: SpanOptions): Span {
    const made = tracer.startSpan(title, { ...options, kind: SpanKind.INTERNAL }, contextOf(span))
    return made.setAttribute('gatehouse.attempt', ++attempts)
  }

  /** Idempotent. @param type of its error; undefined: it is none */
  function end(type: string | undefined): void {
    if (isOver) return
    isOver = true
    if (running !== undefined) endSpan(running, type)
    endSpan(span, type)
  }

  return {
    spanContext: (): SpanContext => span.spanContext(),
    /** The upstream has refused it unread, and gets it once more. */
    again(why: SentAgain): void {
      if (isOver) return
      endSpan(running ?? attempt({ startTime }), why)
      running = attempt({ attributes: { 'gatehouse.again': why } })
    },
    /** @param answer a result, or why there is none */
    answered(answer: unknown): void {
      const error = answer instanceof Error ? answer : undefined
      const code = error instanceof RpcError ? String(error.error.code) : undefined
      const isToolError = method === 'tools/call' && isObject(answer) && answer['isError'] === true
      end(sentErrorType(error, isToolError, code))
    },
    end
  }
}

/** @param type of its error; undefined: it is none */
export function endSpan(span: Span, type: string | undefined): void {
  if (type !== undefined) span.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR })
  span.end()
}

const contextOf = (span: Span) => api.setSpan(ROOT_CONTEXT, span)
