// Ids of tasks as clients know them (extension io.modelcontextprotocol/tasks): sealed to whom they were told, so that any process can
// route them, and nobody else can use them. The same task has the same id each time.

import type { Principal } from '../../auth/principal.ts'
import type { UpstreamName } from '../../protocol/ids.ts'
import type { Sealer } from '../../store/seal.ts'
import type { Place } from '../call.ts'

/** Whoever asked, and where. */
export type Asking = Place & { readonly principal: Principal }

export interface TaskIds {
  toClient (call: Asking, upstream: UpstreamName, id: string): string
  /** @returns undefined for what is forged, somebody else's, of another endpoint, or of an upstream that is no member of it any more */
  open (call: Asking, publicId: string): { readonly upstream: UpstreamName, readonly id: string } | undefined
}

// Not the purpose of tasks of 2025-11-25: those are other tasks, and spoken to by other methods.
const purpose = 'modern-task'

export function createTaskIds (sealer: Pick<Sealer, 'seal' | 'open'>): TaskIds {
  return {
    toClient: (call, upstream, id) => sealer.seal(purpose, bindingOf(call), JSON.stringify([upstream, id])),
    open (call, publicId) {
      const opened = sealer.open(purpose, bindingOf(call), publicId)
      if (opened === undefined) return undefined
      const [upstream, id] = JSON.parse(opened) as [UpstreamName, string]
      return call.endpoint.members.some((member) => member.upstream === upstream) ? { upstream, id } : undefined
    }
  }
}

/** Tenant, endpoint and person: what anything that we seal for a caller is bound to. */
export function bindingOf ({ tenant, endpoint, principal: { issuer, subject, clientId } }: Asking): string[] {
  return [tenant.id, endpoint.name, issuer, subject, clientId]
}
