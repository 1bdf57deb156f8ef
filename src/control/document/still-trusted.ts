// What goes on of a tenant whose document cannot be used, or not be read, at this process.

import { listOf, treeOf } from '../../config/shape.ts'
import type { Tenant } from '../../config/snapshot.ts'
import { canonicalJsonOf } from '../../protocol/json-text.ts'
import type { TenantDocument } from './tenant-document.ts'

interface UsedDocument {
  readonly document: TenantDocument
  /** As it is in use. */
  readonly tenant: Tenant | undefined
}

/**
 * Leaves out the keys and issuers that were taken away or changed since, because a revocation must not wait until the
 * rest of the document is mended.
 * @returns the same tenant where the document is the same
 */
export function stillTrusted({ document: before, tenant }: UsedDocument, after: TenantDocument): Tenant | undefined {
  if (tenant === undefined || before.text === after.text) return tenant
  const isKept = (list: 'keys' | 'issuers', member: 'name' | 'issuer', name: string): boolean => {
    const [one, other] = [before, after].map(({ tree }) =>
      listOf(treeOf(tree['auth'])[list]).find((each) => treeOf(each)[member] === name)
    )
    return one !== undefined && other !== undefined && canonicalJsonOf(one) === canonicalJsonOf(other)
  }
  const { auth } = tenant
  return {
    ...tenant,
    auth: {
      ...auth,
      keys: auth.keys.filter(({ name }) => isKept('keys', 'name', name)),
      issuers: auth.issuers.filter(({ issuer }) => isKept('issuers', 'issuer', issuer))
    }
  }
}
