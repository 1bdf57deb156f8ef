// Kill switches: what those who run the gateway have stopped at once, besides all rules.

import { reservedIssuerPrefix } from '../config/auth/auth-config.ts'
import type { Kill, KillInForce } from '../config/policy/kill.ts'

interface StoppedTenant {
  readonly kills?: readonly KillInForce[] | undefined
}

/**
 * @param route an upstream and its own name of a tool
 * @returns of what has come under another name, the kill of that name
 */
export function killOfRoute(
  { kills = [] }: StoppedTenant,
  { upstream, name }: { readonly upstream: string; readonly name: string }
): Kill | undefined {
  for (const { kill, also } of kills) {
    if (kill.kind === 'tenant') return kill
    if (kill.kind !== 'upstream' && !(kill.kind === 'tool' && kill.tool === name)) continue
    if (kill.upstream === upstream || also.has(upstream)) return { ...kill, upstream }
  }
  return undefined
}

/**
 * @param issuer of API keys it is the reserved one, and the subject is the name of the key
 * @returns of a key that has come under another name, the kill of that name
 */
export function killOfCaller(
  { kills = [] }: StoppedTenant,
  { issuer, subject }: { readonly issuer: string; readonly subject: string }
): Kill | undefined {
  const isKey = issuer === `${reservedIssuerPrefix}key`
  for (const { kill, also } of kills) {
    if (kill.kind !== 'principal' && kill.kind !== 'key') continue
    if (kill.kind === 'principal' && kill.issuer === issuer && kill.subject === subject) return kill
    if (isKey && ((kill.kind === 'key' && kill.key === subject) || also.has(subject)))
      return { kind: 'key', key: subject }
  }
  return undefined
}

/** Such as `the tool echo of up`. */
export function killedText(kill: Kill): string {
  switch (kill.kind) {
    case 'tool':
      return `the tool ${kill.tool} of ${kill.upstream}`
    case 'upstream':
      return `the upstream ${kill.upstream}`
    case 'principal':
      return `the caller ${kill.subject} of ${kill.issuer}`
    case 'key':
      return `the key ${kill.key}`
    case 'tenant':
      return 'the whole tenant'
  }
}
