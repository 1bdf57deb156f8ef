// Writes a change of a tenant and records it; a refused change is recorded, too.

import type { Tree } from '../../config/shape.ts'
import { ControlError } from '../../control/control-error.ts'
import type { DocumentChange } from '../../control/compiled-documents.ts'
import type { ChangeRequest } from '../../control/judge.ts'
import { shownDocument, type TenantDocument } from '../../control/document/tenant-document.ts'
import { longChangeHash, recordChange, recordRefusedChange } from '../changes.ts'
import type { AdminRequest, AdminServices } from '../route.ts'

export interface NotedChange extends Pick<ChangeRequest, 'admit' | 'change' | 'removed' | 'past' | 'isBehindFile'> {
  /** Such as `tenant.put`. */
  readonly action: string
  /** The target of the change, without anything secret. Default: each tenant has a record of its own, with its id. */
  readonly target?: string
  /** The tenants of the change, where the path names none. */
  readonly tenants?: readonly string[]
  /** Returns the changed part of a document as it is shown. */
  readonly partOf: (shown: Tree) => unknown
}

/** @returns the changes; none where everything is so already. @throws ControlError, and whatever the change throws */
export async function writeDocuments(
  { administrator, address, params }: AdminRequest,
  services: AdminServices,
  { action, target, tenants, partOf, ...request }: NotedChange
): Promise<readonly DocumentChange[]> {
  const { name, role } = administrator
  const author = { name, role }
  const made = await services.control
    .change({ ...request, author, action, charge: administrator.charge })
    .catch((error: unknown) => {
      if (error instanceof ControlError && error.code === 'forbidden')
        for (const tenant of tenants ?? [params['tenant']])
          recordRefusedChange(
            services,
            { actor: name, role, action, tenant, target: target ?? tenant ?? '', address },
            error.code
          )
      throw error
    })
  // Of what is shown: the digest of a secret would let whoever reads the log try secrets out.
  const digestOf = async (document: TenantDocument | undefined): Promise<string | undefined> => {
    const part = document && partOf(shownDocument(document.tree))
    return part === undefined ? undefined : await longChangeHash({ version: document?.version, part })
  }
  for (const { tenant, before, after } of made)
    await recordChange(services, {
      actor: name,
      role,
      action,
      tenant,
      target: target ?? tenant,
      before: await digestOf(before),
      after: await digestOf(after),
      address
    })
  return made
}
