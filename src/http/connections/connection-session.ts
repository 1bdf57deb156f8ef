// Who sits before the browser on the pages of connections: a sealed cookie of one tenant, for some hours.

import type { Principal } from '../../auth/principal.ts'
import type { Person } from '../../config/auth/upstream-auth.ts'
import type { TenantId } from '../../protocol/messages.ts'
import type { Sealer } from '../../store/seal.ts'
import { createHash, timingSafeEqual } from 'node:crypto'

export interface ConnectionSession {
  readonly person: Person
  /** What forms of their pages have to send back. */
  readonly csrf: string
  /** Of the tenant when they signed in: another one is another tenant, although it has the same name. */
  readonly epoch: number
}

const sessionMs = 8 * 60 * 60_000
const purpose = 'connections-session'

export function createConnectionSessions(sealer: Pick<Sealer, 'seal' | 'open'>, wall: { now(): number }) {
  const nameOf = (tenant: string, secure: boolean): string =>
    `${secure ? '__Host-' : ''}gatehouse-connections-${tenant}`
  const attributes = (secure: boolean): string => `Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`

  function valueOf(tenant: string, cookies: string | undefined, secure: boolean): string | undefined {
    const start = `${nameOf(tenant, secure)}=`
    return cookies
      ?.split(/; */)
      .find((each) => each.startsWith(start))
      ?.slice(start.length)
  }

  return {
    /** @param cookies the header. @returns undefined where there is none that holds */
    read(tenant: TenantId, cookies: string | undefined, secure: boolean): ConnectionSession | undefined {
      const value = valueOf(tenant, cookies, secure)
      const text = value === undefined ? undefined : sealer.open(purpose, [tenant], value)
      if (value === undefined || text === undefined) return undefined
      const [issuer, subject, until, epoch] = JSON.parse(text) as [string, string, number, number]
      if (wall.now() > until) return undefined
      return { person: { tenant, issuer, subject }, csrf: csrfOf(value), epoch }
    },
    /**
     * @param epoch of the tenant now
     * @returns the `Set-Cookie` of a person who has signed in; it ends with what they have signed in with
     */
    begin({ tenant, issuer, subject, expiresAt = Infinity }: Principal, epoch: number, secure: boolean): string {
      const until = Math.min(wall.now() + sessionMs, expiresAt)
      const value = sealer.seal(purpose, [tenant], JSON.stringify([issuer, subject, until, epoch]))
      return `${nameOf(tenant, secure)}=${value}; Max-Age=${sessionMs / 1000}; ${attributes(secure)}`
    },
    end: (tenant: string, secure: boolean): string => `${nameOf(tenant, secure)}=; Max-Age=0; ${attributes(secure)}`,
    /** Was the form on a page of this very session? */
    isOwnForm(given: string | undefined, csrf: string): boolean {
      const [one, other] = [Buffer.from(given ?? ''), Buffer.from(csrf)]
      return one.length === other.length && timingSafeEqual(one, other)
    }
  }
}

const csrfOf = (value: string): string => createHash('sha256').update(`form ${value}`).digest('base64url')
