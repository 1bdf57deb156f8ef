// What of a request goes with it to the process that does the work: whose it is, and what policy, log and traces say of
// it. Of a token or key only what it said: the credential itself is never sent.

import type { Principal } from '../../auth/principal.ts'
import { parentIn } from '../../observe/traces/trace-context.ts'
import type { CallContext } from '../admission.ts'

interface CarriedPrincipal extends Omit<Principal, 'scopes'> {
  readonly scopes: readonly string[]
}

/** As one process sends it to another. A process of an earlier version sends less. */
export interface CarriedContext extends Pick<
  CallContext,
  'requestId' | 'address' | 'traceHeaders' | 'bodyBytes' | 'messageBytes'
> {
  readonly principal: CarriedPrincipal
}

export function carriedContext(context: CallContext): CarriedContext {
  const { requestId, principal, address, traceHeaders, bodyBytes, messageBytes } = context
  const { scopes, ...rest } = principal
  return {
    requestId,
    principal: { ...rest, scopes: [...scopes] },
    ...(address !== undefined && { address }),
    // Strangers choose it: what nobody can use is not worth the way.
    ...(traceHeaders !== undefined && parentIn(traceHeaders) !== undefined && { traceHeaders }),
    ...(bodyBytes !== undefined && { bodyBytes }),
    ...(messageBytes !== undefined && { messageBytes })
  }
}

/** The same at the process that it came to. What a later version sends besides is left out. */
export const contextOfCarried = (carried: CarriedContext) => {
  const { requestId, principal, address, traceHeaders, bodyBytes, messageBytes } = carried
  return {
    requestId,
    principal: { ...principal, scopes: new Set(principal.scopes) } satisfies Principal,
    address,
    traceHeaders,
    bodyBytes,
    messageBytes
  }
}
