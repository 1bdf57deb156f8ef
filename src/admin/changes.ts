// Where every change that an administrator makes is noted, whatever route makes it: in the log, and in the audit log
// where there is one.

import { hash } from 'node:crypto'
import type { AdministrativeChange, Audit } from '../audit/audit.ts'
import type { Log } from '../observe/log.ts'
import { canonicalJsonOf } from '../protocol/json-text.ts'

/** Called once for each change that has been made. */
export function recordChange(
  { log, audit }: { readonly log: Log; readonly audit: Pick<Audit, 'changed'> | undefined },
  change: AdministrativeChange
): void {
  log.info({ change }, 'an administrator made a change')
  audit?.changed(change)
}

/** @returns SHA-256 in hexadecimal of the canonical form, for `before` and `after` */
export const changeHash = (value: unknown): string => hash('sha256', canonicalJsonOf(value))
