// Where every change that an administrator makes is noted, whatever route makes it: in the log, and in the audit log
// where there is one.

import { createHash, hash } from 'node:crypto'
import type { AdministrativeChange } from '../audit/entries/refused-entry.ts'
import type { Audit } from '../audit/audit.ts'
import type { Log } from '../observe/log.ts'
import { canonicalJsonOf } from '../protocol/json-text.ts'
import { longTextSteps } from '../protocol/json-writer.ts'
import { runSteps } from '../time/turns.ts'

/**
 * Called once for each change that has been made, before it is answered: resolves when its record is written, or cannot
 * be now. Never rejects.
 */
export async function recordChange(
  { log, audit }: { readonly log: Log; readonly audit: Pick<Audit, 'changed'> | undefined },
  change: AdministrativeChange
): Promise<void> {
  log.info({ change }, 'an administrator made a change')
  await audit?.changed(change)
}

/** @returns SHA-256 in hexadecimal of the canonical form, for `before` and `after` */
export const changeHash = (value: unknown): string => hash('sha256', canonicalJsonOf(value))

/** The same of what may be as long as a document: in steps. */
export async function longChangeHash(value: unknown): Promise<string> {
  const { parts } = await runSteps(longTextSteps(value, undefined, true), { tenant: '', caller: 'admin' })
  const digest = createHash('sha256')
  for (const part of parts) digest.update(part)
  return digest.digest('hex')
}
