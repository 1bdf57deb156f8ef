// Ids of tasks as clients know them (extension io.modelcontextprotocol/tasks): sealed to whom they were told, so that
// any process can route them, and nobody else can use them. The same task has the same id each time.

import { callerBindingOf, type EndpointContext } from '../call/call.ts'
import type { Principal } from '../../auth/principal.ts'
import type { ClientCapabilities, UpstreamName } from '../../protocol/messages.ts'
import type { Sealer } from '../../store/seal.ts'

/** A caller at an endpoint. */
export type CallerContext = EndpointContext & { readonly principal: Principal }

/**
 * A task of 2025-11-25 runs on one connection. It is found again by the id of that connection, or on one that is opened
 * with the same capabilities and conversation.
 */
export interface LegacyTaskRef {
  /** The process that has the connection. */
  readonly node: string
  /** As the connection declared them. */
  readonly capabilities: ClientCapabilities
  /** `_meta["io.gatehouse/conversation"]` of the call; null: none. */
  readonly conversation: string | null
  /** Hash of the definition. */
  readonly definition: string
  /** `Upstream.id`: tasks of two connections may have the same id. */
  readonly connection: string
  /** As the server told it: on another connection it tells the task from others of the same id. */
  readonly createdAt?: string
}

export interface TaskRef {
  readonly upstream: UpstreamName
  readonly id: string
  /** Undefined: a task of 2026-07-28. */
  readonly legacy?: LegacyTaskRef
}

export interface SealedTaskIds {
  toClient(call: CallerContext, upstream: UpstreamName, id: string, legacy?: LegacyTaskRef): string
  /**
   * @returns undefined for an id that is forged, of another caller or endpoint, or of an upstream that has left the
   * endpoint
   */
  open(call: CallerContext, publicId: string): TaskRef | undefined
}

// Not the purpose of tasks of sessions: those are used with other methods.
const purpose = 'modern-task'

export function createSealedTaskIds(sealer: Pick<Sealer, 'seal' | 'open'>): SealedTaskIds {
  return {
    toClient: (call, upstream, id, legacy) =>
      sealer.seal(
        purpose,
        callerBindingOf(call),
        JSON.stringify(legacy === undefined ? [upstream, id] : [upstream, id, legacy])
      ),
    open(call, publicId) {
      const opened = sealer.open(purpose, callerBindingOf(call), publicId)
      if (opened === undefined) return undefined
      const [upstream, id, legacy] = JSON.parse(opened) as [UpstreamName, string, LegacyTaskRef?]
      return call.endpoint.members.some((member) => member.upstream === upstream)
        ? { upstream, id, ...(legacy !== undefined && { legacy }) }
        : undefined
    }
  }
}
