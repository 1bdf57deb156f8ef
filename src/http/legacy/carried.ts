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

export function carriedContext({ principal: { scopes, ...principal }, ...context }: CallContext): CarriedContext {
  return { ...carriedFields(context), principal: { ...principal, scopes: [...scopes] } }
}

/** The same at the process that it came to. */
export const contextOfCarried = ({ principal, ...carried }: CarriedContext) => ({
  ...carriedFields(carried),
  principal: { ...principal, scopes: new Set(principal.scopes) } satisfies Principal
})

/** At both ends: a process of a later version may send more. */
function carriedFields(context: Omit<CarriedContext, 'principal'>): Omit<CarriedContext, 'principal'> {
  const { requestId, address, traceHeaders, bodyBytes, messageBytes } = context
  return {
    requestId,
    ...(address !== undefined && { address }),
    // Strangers choose it: what nobody can use is not worth the way.
    ...(traceHeaders !== undefined && parentIn(traceHeaders) !== undefined && { traceHeaders }),
    ...(bodyBytes !== undefined && { bodyBytes }),
    ...(messageBytes !== undefined && { messageBytes })
  }
}
