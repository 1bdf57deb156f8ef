// The middle floor for requests of 2026-07-28, which belong to no session: each finds its upstream by what it says itself.

import type { JsonObject, Result } from '../../protocol/messages.ts'
import type { ModernCall, Seen } from '../call.ts'

export interface ModernRelay {
  /**
   * Every method but `subscriptions/listen`. The result has `resultType`, `ttlMs` and `cacheScope` where they belong, ids and URIs as the
   * client knows them, and a sealed `requestState`.
   * @throws GatewayError (unknown_method for what the endpoint has not), RpcError (an upstream's own; -32021 among them)
   */
  call (call: ModernCall): Promise<Result>
  /**
   * `subscriptions/listen`: `call.client.notify` gets `notifications/subscriptions/acknowledged` first, then what changed for this caller,
   * without subscription ids, which are the door's to add. Resolves with the final empty result where the gateway ends it; an aborted
   * signal ends it silently.
   * @throws GatewayError invalid_params, missing_capability, too_many, not_found, shutting_down
   */
  listen (call: ModernCall): Promise<Result>
  /**
   * `inputSchema` of a tool as it is published to the caller, for its `x-mcp-header` annotations; undefined for an unknown tool. Waits for upstreams on their way as
   * `call` does, which does not wait again where it gets the same object.
   */
  schemaOf (call: Seen, tool: string): Promise<JsonObject | undefined>
  /**
   * A reload: ends listen streams whose endpoint changed in what they were promised, and gives up calls that wait where nobody can come back to.
   * @param hashes of all definitions that there are now
   */
  retain (hashes: ReadonlySet<string>): void
  /** Ends listen streams and parked calls. */
  close (): Promise<void>
}

/** `tools/call` and the like exist for every endpoint; whether this endpoint offers them is the catalog's word. */
export const modernMethods: ReadonlySet<string> = new Set([
  'server/discover', 'tools/list', 'tools/call', 'prompts/list', 'prompts/get', 'resources/list', 'resources/templates/list', 'resources/read',
  'completion/complete', 'subscriptions/listen', 'tasks/get', 'tasks/update', 'tasks/cancel'
])

