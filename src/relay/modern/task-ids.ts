// Ids of tasks as clients know them (extension io.modelcontextprotocol/tasks): sealed to whom they were told, so that any process can
// route them, and nobody else can use them. The same task has the same id each time.

import type { Principal } from '../../auth/principal.ts'
import type { UpstreamName } from '../../protocol/ids.ts'
import type { ClientCapabilities } from '../../protocol/messages.ts'
import type { Sealer } from '../../store/seal.ts'
import type { Place } from '../call.ts'

/** Whoever asked, and where. */
export type Asking = Place & { readonly principal: Principal }

/** A task of 2025-11-25 runs on a connection of one process: that is found again by its name, and one like it by what it was made with. */
export interface OldTask {
  readonly node: string
  /** As the connection declared them. */
  readonly capabilities: ClientCapabilities
  /** `_meta["io.gatehouse/conversation"]` of the call; null: none. */
  readonly conversation: string | null
  /** Hash of the definition. */
  readonly definition: string
  /** As this process calls it: two connections may have tasks of the same id, the one that comes after it among them. */
  readonly connection: string
  /** As the server told it, which tells the task from others of its id wherever the server is asked over another connection. */
  readonly createdAt?: string
}

export interface OpenedTask {
  readonly upstream: UpstreamName
  readonly id: string
  /** Undefined: a task of 2026-07-28. */
  readonly old?: OldTask
}

export interface TaskIds {
  toClient (call: Asking, upstream: UpstreamName, id: string, old?: OldTask): string
  /** @returns undefined for what is forged, somebody else's, of another endpoint, or of an upstream that is no member of it any more */
  open (call: Asking, publicId: string): OpenedTask | undefined
}

// Not the purpose of tasks of 2025-11-25: those are other tasks, and spoken to by other methods.
const purpose = 'modern-task'

export function createTaskIds (sealer: Pick<Sealer, 'seal' | 'open'>): TaskIds {
  return {
    toClient: (call, upstream, id, old) => sealer.seal(purpose, bindingOf(call), JSON.stringify(old === undefined ? [upstream, id] : [upstream, id, old])),
    open (call, publicId) {
      const opened = sealer.open(purpose, bindingOf(call), publicId)
      if (opened === undefined) return undefined
      const [upstream, id, old] = JSON.parse(opened) as [UpstreamName, string, OldTask?]
      return call.endpoint.members.some((member) => member.upstream === upstream) ? { upstream, id, ...old !== undefined && { old } } : undefined
    }
  }
}

/** Tenant, endpoint and person: what anything that we seal for a caller is bound to. */
export function bindingOf ({ tenant, endpoint, principal: { issuer, subject, clientId } }: Asking): string[] {
  return [tenant.id, endpoint.name, issuer, subject, clientId]
}
