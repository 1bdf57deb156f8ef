// How long documents of tenants may be, and how many there may be.

import { treeOf } from '../config/shape.ts'
import type { DocumentChange, Documents } from './compiled-documents.ts'
import { ControlError } from './control-error.ts'

/** The longest document as JSON, and the longest of all together, in characters. */
const maxDocumentChars = 256 * 1024
const maxAllChars = 16 * 1024 * 1024
const maxDocuments = 2_000
/** Upstreams of one document, and endpoints: each endpoint has a catalog of all that its upstreams offer. */
const maxMembers = 256

/** @throws ControlError limit_reached */
export function checkSizes(documents: Documents, changes: readonly DocumentChange[]): void {
  const after = new Map(documents)
  for (const { tenant, after: document } of changes)
    if (document === undefined) after.delete(tenant)
    else after.set(tenant, document)
  if (changes.some(({ after: document }) => document !== undefined && document.text.length > maxDocumentChars))
    throw isTooMuch('The document')
  if (after.size > maxDocuments && after.size > documents.size) throw isTooMuch('So many tenants')
  const all = [...after.values()].reduce((sum, document) => sum + document.text.length, 0)
  if (all > maxAllChars) throw isTooMuch('All documents together')
}

/** @throws ControlError limit_reached */
export function checkMembers(changes: readonly DocumentChange[]): void {
  for (const { after } of changes)
    for (const kind of ['upstreams', 'endpoints'])
      if (Object.keys(treeOf(after?.tree[kind])).length > maxMembers) throw isTooMuch(`More than ${maxMembers} ${kind}`)
}

const isTooMuch = (what: string): ControlError =>
  new ControlError('limit_reached', `${what} would be more than is kept.`, 'Remove what is not needed.')
