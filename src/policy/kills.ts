// Kill switches: what those who run the gateway have stopped at once, besides all rules.

import { reservedIssuerPrefix } from '../config/auth/auth-config.ts'
import type { Kill } from '../config/snapshot.ts'

interface StoppedTenant {
  readonly kills?: readonly Kill[] | undefined
}

/** @param route an upstream and its own name of a tool */
export const killOfRoute = (
  { kills }: StoppedTenant,
  { upstream, name }: { readonly upstream: string; readonly name: string }
): Kill | undefined =>
  kills?.find(
    (kill) =>
      kill.kind === 'tenant' ||
      (kill.kind === 'upstream' && kill.upstream === upstream) ||
      (kill.kind === 'tool' && kill.upstream === upstream && kill.tool === name)
  )

/** @param issuer of API keys it is the reserved one, and the subject is the name of the key */
export const killOfCaller = (
  { kills }: StoppedTenant,
  { issuer, subject }: { readonly issuer: string; readonly subject: string }
): Kill | undefined =>
  kills?.find(
    (kill) =>
      (kill.kind === 'principal' && kill.issuer === issuer && kill.subject === subject) ||
      (kill.kind === 'key' && issuer === `${reservedIssuerPrefix}key` && kill.key === subject)
  )

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
