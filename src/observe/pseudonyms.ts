// People in the log, in traces and among live calls, where the configuration wants them without their names: each under
// a pseudonym, the same in all of them and at every process, and another one in each tenant. Who has the key can say
// whose it is; nobody else can, nor try names. The audit log has names.

import { createHmac } from 'node:crypto'
import type { Snapshot } from '../config/snapshot.ts'
import type { ObservedPrincipal } from './calls.ts'

/** 96 bits. */
const pseudonymChars = 16

/** @param name subject of a token, or name of an API key. @returns the name itself where there are no pseudonyms */
export function shownName({ pseudonyms }: Pick<Snapshot, 'pseudonyms'>, tenant: string, name: string): string {
  if (pseudonyms === undefined) return name
  const text = JSON.stringify(['pseudonym', tenant, name])
  return `p_${createHmac('sha256', pseudonyms.key).update(text).digest('base64url').slice(0, pseudonymChars)}`
}

export type ShownCaller = (tenant: string, principal: ObservedPrincipal) => ObservedPrincipal

/** @returns undefined where callers are shown as they are */
export function createShownCaller(config: Pick<Snapshot, 'pseudonyms'>): ShownCaller | undefined {
  if (config.pseudonyms === undefined) return undefined
  /** One principal for all requests with a token, as long as that is remembered. */
  const known = new WeakMap<ObservedPrincipal, ObservedPrincipal>()
  return (tenant, principal) => {
    const found = known.get(principal)
    if (found !== undefined) return found
    const { kind, issuer, subject, clientId } = principal
    const name = shownName(config, tenant, subject)
    const shown = { kind, issuer, subject: name, clientId: clientId === subject ? name : clientId }
    known.set(principal, shown)
    return shown
  }
}
