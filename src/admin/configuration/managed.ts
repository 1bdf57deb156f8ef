// Whether a tenant is managed by the configuration file or by this API; and the parts of a configuration that are
// shown.

import { Type } from '../../config/schema/type.ts'
import { treeOf, type Tree } from '../../config/shape.ts'
import type { Documents } from '../../control/compiled-documents.ts'
import type { Control } from '../../control/control.ts'
import { shownDocument, type TenantDocument } from '../../control/document/tenant-document.ts'
import { GatewayError } from '../../protocol/messages.ts'
import type { AdminRole } from '../access.ts'
import { etagOf } from './conditions.ts'
import { type PartKind, placeOf } from './parts.ts'

export const managedBySchema = Type.Enum(['file', 'api'], {
  description: 'Where it can be changed. `file`: only in the configuration file. `api`: by this API.'
})

export const versionSchema = Type.Union([Type.Integer(), Type.Null()], {
  description: 'Version of the last change of its tenant. null: the configuration file manages it.'
})

export const configurationSchema = Type.Union([Type.Object({}), Type.Null()], {
  description:
    'The configuration as it was sent, with `{"secret": true}` in place of each secret. null: the configuration ' +
    'file manages it, or the role may not change it.'
})

export const managedOf = (document: TenantDocument | undefined) => ({
  managedBy: document === undefined ? ('file' as const) : ('api' as const),
  version: document?.version ?? null
})

export const etagHeader = (document: TenantDocument | undefined): Readonly<Record<string, string>> =>
  document === undefined ? {} : { ETag: etagOf(document.version) }

/** Whether a role may read configurations: URLs and arguments may hold confidential data. */
export const mayRead = (role: AdminRole): boolean => role === 'platform-admin' || role === 'tenant-admin'

/**
 * What is shown of a part of the configuration of a tenant: no secret in it.
 * @returns null where there is none, or the role may not change it
 */
export function shownPart(
  document: TenantDocument | undefined,
  role: AdminRole,
  kind: PartKind,
  name: string
): Tree | null {
  if (document === undefined || !mayRead(role)) return null
  const part = placeOf(kind, name).read(shownDocument(document.tree))
  return part === undefined ? null : treeOf(part)
}

/** Returns the documents that are in use; none before the store was read. */
export function documentsKnown(control: Control): Documents {
  try {
    return control.documents()
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'unavailable') return new Map()
    throw error
  }
}
