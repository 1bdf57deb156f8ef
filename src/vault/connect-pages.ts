// Links to the page where a person connects an upstream. The link holds the person, sealed: anybody else who opens it
// gets an error, and nothing is connected.

import { connectionsPath } from '../config/auth/upstream-auth.ts'
import type { TenantId, UpstreamName } from '../protocol/messages.ts'
import type { Sealer } from '../store/seal.ts'

/** How long a link is valid, in milliseconds. */
const linkMs = 60 * 60_000
const purpose = 'connect-link'

/** @param publicUrl returns the public URL; undefined until the gateway listens */
export function createConnectPages(
  sealer: Pick<Sealer, 'seal' | 'open'>,
  publicUrl: () => string,
  wall: { now(): number }
) {
  return {
    of:
      ({ tenant, name }: { readonly tenant: TenantId; readonly name: UpstreamName }) =>
      (person: string | undefined) => {
        const url = new URL(publicUrl() + connectionsPath(tenant))
        url.searchParams.set('upstream', name)
        const text = JSON.stringify([person ?? '', wall.now() + linkMs])
        if (person !== undefined) url.searchParams.set('for', sealer.seal(purpose, [tenant, name], text))
        return { url: url.href, message: `Connect your account of ${name} first: ${url.href}` }
      },
    /** Reads for which person a link was made. @returns undefined where the link is not valid */
    personOf(tenant: string, upstream: string, link: string): string | undefined {
      const text = sealer.open(purpose, [tenant, upstream], link)
      const [person, until] = text === undefined ? [] : (JSON.parse(text) as [string, number])
      return until !== undefined && wall.now() < until ? person : undefined
    }
  }
}
