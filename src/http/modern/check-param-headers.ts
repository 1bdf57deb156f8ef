// Checks the headers `Mcp-Param-*` of a tool call against the schema that the endpoint publishes (2026-07-28
// basic/transports/streamable-http "Server Behavior for Custom Headers").

import { GatewayError, type JsonObject } from '../../protocol/messages.ts'
import {
  type ParamHeader,
  paramHeaderPrefix,
  paramHeadersOf,
  paramMismatch
} from '../../protocol/translate/param-headers.ts'
import type { ModernCall } from '../../relay/call/call.ts'
import type { ModernRelay } from '../../relay/modern-relay.ts'

/** @returns the check, which rejects with GatewayError header_mismatch */
export function createParamHeaderCheck(
  relay: Pick<ModernRelay, 'schemaOf'>
): (rawHeaders: readonly string[], call: ModernCall) => Promise<void> {
  // Read once for each schema object, which lives as long as its listing.
  const known = new WeakMap<JsonObject, readonly ParamHeader[]>()

  function annotationsOf(schema: JsonObject): readonly ParamHeader[] {
    let annotations = known.get(schema)
    if (annotations === undefined) {
      const found = paramHeadersOf(schema)
      // Clients leave out a tool whose annotations are invalid, so there is nothing to check.
      annotations = typeof found === 'string' ? [] : found
      known.set(schema, annotations)
    }
    return annotations
  }

  return async (rawHeaders, call) => {
    const { name, arguments: args } = call.request.params ?? {}
    const schema = typeof name === 'string' ? await relay.schemaOf(call, name) : undefined
    if (schema === undefined) return // The relay refuses an unknown tool.
    const annotations = annotationsOf(schema)
    if (annotations.length === 0) return
    const mismatch = paramMismatch(annotations, args, paramHeadersIn(rawHeaders))
    if (mismatch !== undefined) throw new GatewayError('header_mismatch', mismatch)
  }
}

/** Each as often as it came: Node would join them, and a proxy on the way may have read the first only. */
function paramHeadersIn(rawHeaders: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? ''
    if (!name.startsWith(paramHeaderPrefix)) continue
    const values = found.get(name)
    if (values === undefined) found.set(name, [rawHeaders[at + 1] ?? ''])
    else values.push(rawHeaders[at + 1] ?? '')
  }
  return found
}
