// Where every change that an administrator makes is noted, whatever route makes it: in the log, and in the audit log
// where there is one.

import { hash } from 'node:crypto'
import type { Audit } from '../audit/audit.ts'
import type { Log } from '../observe/log.ts'
import { canonicalJsonOf } from '../protocol/json-text.ts'

export interface AdministrativeChange {
  /** Name of the admin key. */
  readonly actor: string
  readonly role: string
  /** Such as `session.end`. */
  readonly action: string
  /** undefined: the whole gateway. */
  readonly tenant: string | undefined
  /** What was changed, without anything secret. */
  readonly target: string
  /** Digest of what was there before; undefined: nothing. */
  readonly before: string | undefined
  /** Digest of what is there now; undefined: nothing. */
  readonly after: string | undefined
  /** From where the request came. */
  readonly address: string
}

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
