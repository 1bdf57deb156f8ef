// The trace of a client where the gateway itself sends no spans: the line of the call names it, and its upstream gets
// the context as it came (W3C Trace Context section 4.2: one that takes no part changes nothing).

import { isObject } from '../../protocol/messages.ts'
import type { CallTrace, ObservedCall } from '../calls.ts'
import { parentOf, traceparentOf } from './trace-context.ts'

export const passedOnTraces = {
  /** @returns undefined where the client is not traced */
  begin({ request, record }: ObservedCall): CallTrace | undefined {
    const parent = parentOf(request.params, record?.traceHeaders)
    if (parent === undefined) return undefined
    const { traceId, spanId, tracestate } = parent
    const context = { traceparent: traceparentOf(parent), ...(tracestate !== undefined && { tracestate }) }
    return {
      traceId,
      spanId,
      isSampled: false,
      sent(given) {
        const meta = given.params?.['_meta']
        return { ...given, params: { ...given.params, _meta: { ...(isObject(meta) && meta), ...context } } }
      },
      again() {},
      answered() {},
      ended() {}
    }
  }
}
