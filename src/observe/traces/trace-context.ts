// Trace context (W3C Trace Context level 1), as HTTP headers carry it, and messages in their `_meta` (SEP-414).

import { isObject } from '../../protocol/messages.ts'

/** Strangers choose both. */
export type TraceHeaders = Readonly<Partial<Record<'traceparent' | 'tracestate', string | undefined>>>

export interface TraceParent {
  readonly traceId: string
  readonly spanId: string
  readonly traceFlags: number
  readonly tracestate?: string
}

// Section 3.2.2: a later version may have more after the flags.
const traceparent = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/
/** Section 3.3.1.5: what has to be passed on at least. */
const maxTracestateChars = 512

/** @param carrier headers, or `_meta`; strangers choose both. @returns undefined where none can be used */
export function parentIn(carrier: Readonly<Record<string, unknown>>): TraceParent | undefined {
  const { traceparent: text, tracestate } = carrier
  if (typeof text !== 'string' || text.length > 128) return undefined
  const [, traceId, spanId, flags] = traceparent.exec(text) ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  const state = typeof tracestate === 'string' && /^[\x20-\x7e]+$/.test(tracestate) ? tracestate : undefined
  const kept = state !== undefined && state.length <= maxTracestateChars ? { tracestate: state } : {}
  return { traceId, spanId, traceFlags: parseInt(flags, 16), ...kept }
}

/** Of a call: what its message carries goes before what its connection carries (SEP-414). */
export function parentOf(params: Readonly<Record<string, unknown>> | undefined, headers: TraceHeaders | undefined) {
  const meta = params?.['_meta']
  return parentIn(isObject(meta) ? meta : {}) ?? parentIn(headers ?? {})
}

export const traceparentOf = ({ traceId, spanId, traceFlags }: TraceParent): string =>
  `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
